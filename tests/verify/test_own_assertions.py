"""Assertions that stand in a test: one that it did not come to was not checked."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from jumar.child.challenge.own_assertions import OwnAssertion, list_assertions, list_missed
from support.judging.two_process_verifier import confirm

BODIES: dict[str, list[Any]] = {
    "assert f() == 1": [(2, 2)],
    "assert (\n    f() ==\n    1)": [(2, 4)],
    "self.assertEqual(f(), 1); thing.assert_called_once_with(1)": [(2, 2), (2, 2)],
    "for row in f():\n    assert row": [(3, 3)],
    "if f():\n    assert 1 == f()\nelse:\n    assert f() == 2": [(3, 3), (5, 5)],
    "def check(row):\n    assert row\nf(check)": [(3, 3)],
    "async with f():\n    assert f()": [(3, 3)],
    "pytest.raises(KeyError, f)": [(2, 2)],
    "try:\n    assert f()\nfinally:\n    assert f()": [(3, 3), (5, 5)],
    "assert all(\n    row == 1 for row in f())": [(2, 3), (3, 3, True)],
    "bad = [row for row in f() if row != 1 and f(row) == 2]\nassert not bad": [(2, 2, True), (3, 3)],
    "assert {f(row): row == 1 for row in f()}": [(2, 2), (2, 2, True)],
    "if f() != 1:\n    pytest.fail('no')": [(2, 2)],
    "if (\n    f() == 1\n):\n    f()\nelse:\n    raise AssertionError": [(2, 3)],
    "if f():\n    f()\nelif f() != 1:\n    self.fail('no')": [(4, 4)],
    "try:\n    f()\nexcept KeyError:\n    pass\nelse:\n    self.fail()": [(4, 5)],
    "try:\n    f()\n    self.fail()\nexcept KeyError:\n    pass\nexcept OSError:\n    f()": [(5, 8)],
    "match f():\n    case 1:\n        f()\n    case _:\n        raise AssertionError": [(4, 4)],
    # It is right not to come there.
    "if f():\n    f()\n    self.fail()": [],
    "if f():\n    job.fail()": [],
    "while f():\n    if f() > 9:\n        pytest.fail('too late')": [],
    "if f():\n    raise AssertionError\nelse:\n    raise AssertionError": [],
    "try:\n    f()\n    self.fail()\nexcept Exception:\n    pass": [],
    "try:\n    f()\nexcept KeyError:\n    self.fail()": [],
    "match f():\n    case 1:\n        f()": [],
    "assert [row == 1 for row in f() if row]": [(2, 2)],
    "assert f(lambda: all(row == 1 for row in f()))": [(2, 2)],
    "assert False, 'never'": [],
    "try:\n    f()\nexcept KeyError:\n    assert f()": [],
    "with pytest.raises(KeyError) as caught, f():\n    assert f()": [],
    "with contextlib.suppress(KeyError):\n    assert f()": [],
    "f(lambda: 1)": [],
}


@pytest.mark.parametrize("body", BODIES)
def test_assertions_are_listed_where_they_stand(body: str) -> None:
    tree = ast.parse(f"def test():\n{indent(body, '    ')}\ndef helper():\n    assert f()\n")

    assert list_assertions(ast.walk(tree)) == {1: [OwnAssertion(*one) for one in BODIES[body]]}


def test_a_decorated_test_begins_with_its_decorators() -> None:
    assert list_assertions(ast.walk(ast.parse("@a\n@b\nasync def test():\n    assert f()\n"))) == {
        1: [OwnAssertion(4, 4)]
    }


def test_an_assertion_of_several_lines_is_reached_in_any_of_them() -> None:
    assert list_missed([OwnAssertion(2, 4), OwnAssertion(5, 5), OwnAssertion(7, 9)], [4, 6, 7], [5]) == [5]
    assert list_missed([OwnAssertion(2, 4), OwnAssertion(5, 6, compares=True)], [2, 5], [2]) == [5]


TESTS = """
import logging
import unittest
import pytest
from product import set_up

@pytest.mark.parametrize("name", ["a", "b"])
def test_branches(name):
    if name == "a":
        assert set_up(name) == "a"
    else:
        assert set_up(name) == "b"

@pytest.mark.filterwarnings("ignore")
def test_handlers():
    assert set_up("c") == "c"
    for handler in logging.getLogger("c").handlers:
        assert handler.level == 10

class TestLevels(unittest.TestCase):
    def test_levels(self):
        self.assertEqual(
            set_up("d"),
            "d",
        )
        for handler in logging.getLogger("d").handlers:
            self.assertEqual(handler.level, 10)
"""
PRODUCT = """
import logging
def set_up(name):
    handler = logging.StreamHandler()
    handler.setLevel(10)
    logging.getLogger(name).addHandler(handler)
    return name
"""


@pytest.mark.slow
def test_a_loop_that_has_no_round_in_two_processes_is_told(tmp_path: Path) -> None:
    report = confirm(tmp_path, {"product.py": PRODUCT, "test_product.py": TESTS})

    assert report.missed["test_product.py::test_handlers"] == (18,)
    assert report.missed["test_product.py::TestLevels::test_levels"] == (27,)
    assert {i for i in report.missed if "branches" not in i} == {
        "test_product.py::test_handlers",
        "test_product.py::TestLevels::test_levels",
    }


SHARED = """
import pytest
from product import double

@pytest.fixture(scope="module")
def known():
    assert double(1) == 2
    yield 4
    assert double(2) == 4

@pytest.fixture
def own():
    assert double(1) == 2
    yield
    assert double(2) == 4

def test_one(known): assert double(2) == known
def test_two(known, own): assert double(2) == known
def test_any():
    for n in range(3): assert double(n) == 2 * n
test_any.hypothesis = None  # as that marks its tests
"""


@pytest.mark.slow
def test_all_that_a_test_comes_to_is_counted_with_its_set_up_and_its_clean_up(tmp_path: Path) -> None:
    report = confirm(tmp_path, {"product.py": "def double(n): return 2 * n\n", "test_product.py": SHARED})

    shared = {f"test_product.py:{line}{what}": 1 for line in (7, 9) for what in ("", " compares")}
    found = {name.partition("::")[2]: dict(reached) for name, reached in report.reached.items()}
    assert {name: {p: count for p, count in own.items() if p not in shared} for name, own in found.items()} == {
        "test_one": {"test_product.py:17": 1, "test_product.py:17 compares": 2},
        "test_two": {
            "test_product.py:13": 1,
            "test_product.py:13 compares": 1,
            "test_product.py:15": 1,
            "test_product.py:15 compares": 1,
            "test_product.py:18": 1,
            "test_product.py:18 compares": 2,
        },
        "test_any": {"test_product.py:20": 1, "test_product.py:20 compares": 1},
    }
    assert sorted((p, own[p]) for own in found.values() for p in own if p in shared) == sorted(shared.items())


GUESSING = """
import pytest
from product import find

@pytest.mark.parametrize("count", [3, 30])
def test_callback(count):
    left = {count: "here"}
    assert find(left.pop, 40) == "here"

@pytest.mark.parametrize("calls", [3, 30])
def test_call_by_call(calls):
    assert [find({1: "here"}.pop, 2) for _ in range(calls)] == ["here"] * calls

def test_iterator():
    assert [*find(lambda number: iter([number]), 1)] == [0]
"""
FIND = """
def find(ask, count):
    for number in range(count):
        try:
            return ask(number)
        except KeyError:
            pass
"""


@pytest.mark.slow
def test_code_that_catches_many_errors_of_the_tests_could_guess_what_is_right(tmp_path: Path) -> None:
    report = confirm(tmp_path, {"product.py": FIND, "test_product.py": GUESSING})

    why = "a function that the product called failed, and it went on without a word"
    assert {name.partition("::")[2]: why for name, why in report.doubted.items() if "[" in name} == {
        "test_callback[30]": why,
        "test_call_by_call[30]": why,
    }
