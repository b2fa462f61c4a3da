"""Every comparison of a test is falsified or stricter, or its function is known as one that leaves some out."""

from __future__ import annotations

from random import Random

import pytest

from jumar.core.gate.challenge_rounds import Strength
from support.judging.run_falsified_suite import PATH, of, outcomes, tidy

LIARS = """
class Dict(dict):
    __eq__ = __contains__ = lambda s, o: True
    __ne__ = lambda s, o: False
    __hash__ = None
class Count(int):
    __eq__ = lambda s, o: isinstance(o, int)
    __ne__ = lambda s, o: not isinstance(o, int)
    __hash__ = int.__hash__
class Shown(str):
    __contains__ = lambda s, o: False
class Above(set):
    __ge__ = lambda s, o: True
class Full:
    __contains__ = lambda s, o: True
"""
"""Objects that are equal to everything, or to everything of their kind."""

STRICTER = {
    "an identity with True": "assert ({Dict} == wanted()) is True",
    "a part of a tuple": "assert (1, {Dict}) == (1, wanted())",
    "a value of a dict": "assert {'size': 1, 'letters': {Dict}} == {'size': 1, 'letters': wanted()}",
    "a literal value of a dict": "assert {'size': 1, 'letters': {Dict}} == {'size': 1, 'letters': {'a': 97}}",
    "the rest of a dict": "rest = {'b': wanted()}; assert {'a': 1, 'b': {Dict}} == {'a': 1, **rest}",
    "an item of a list of computed ones": "assert [{Dict}] == [wanted()]",
    "a number among computed ones": "assert {'a': {Count}} == wanted()",
    "a list of what is missing": "found = {Dict}; missing = [x for x in 'a' if x not in found]; assert missing == []",
    "a set of what is wrong": "assert not {k for k, v in wanted().items() if {Count} != v}",
    "a condition": "if {Dict} != wanted(): pytest.fail()",
    "the number of what was found": "assert len([x for x in 'a' if x in {Dict}]) == 1",
    "a table of truths": "assert [x in {Dict} for x in 'a'] == [True]",
    "a part of a text": "found = {Shown}; assert isinstance(found, str); assert 'a' not in found",
    "one that differs": "assert not any(x != {Count} for x in wanted().values())",
    "a negation": "assert not {Dict} != wanted()",
    "a truth with a name": "holds = {Dict} == wanted(); assert holds",
    "a helper that returns": "assert is_same({Dict}, wanted())",
    "a loop that gathers": "errors = []\n    for k, v in wanted().items():\n"
    "        if {Count} != v: errors.append(k)\n    assert not errors",
    "a chain": "assert {Dict} == wanted() == wanted()",
    "an order in a loop": "for v in wanted().values(): assert {Dict} == v",
    "a plain object that contains everything": "assert all(x in {Full} for x in 'a')",
    "an order of sets": "assert {1} <= {Above}",
    "all of them": "assert all({Count} == v for v in wanted().values())",
    "one of two": "assert {Dict} in (wanted(), 3)",
    "items of a dict": "assert {'a': {Dict}}.items() <= {'a': wanted()}.items()",
    "a deque": "import collections as c; assert c.deque([{Dict}]) == c.deque([wanted()])",
    "a field": "import types as t; assert t.SimpleNamespace(a={Dict}) == t.SimpleNamespace(a=wanted())",
}
"""A test of which `{Dict}` is what the code under test gave."""

HONEST = {"Dict": "{'a': 97}", "Count": "97", "Shown": "'***'", "Full": "['a']", "Above": "{1, 2}"}
LYING = {
    "Dict": "Dict()",
    "Count": "Count()",
    "Shown": "Shown('a')",
    "Full": "Full()",
    "Above": "Above()",
}


def _write(body: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        body = body.replace(f"{{{name}}}", f"same({value})")
    helpers = "def is_same(a, b): return a == b\ndef wanted(): return dict(a=97)\n"
    test = f"def test_a():\n    assert same(3) == 3\n    {body}\n"
    return tidy(f"from product import Above, Count, Dict, Full, Shown\n{helpers}{test}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in STRICTER if kind != "an order in a loop"])
def test_a_comparison_is_stricter_wherever_it_stands(kind: str) -> None:
    lying, honest = (_write(STRICTER[kind], values) for values in (LYING, HONEST))
    assert outcomes(lying.encode(), LIARS) == outcomes(honest.encode(), LIARS) == {"test_a": True}, "it does look right"
    found = 0
    for seed in range(30):
        found += not outcomes(of(lying).falsify((), Random(seed))[PATH], LIARS)["test_a"]
        assert outcomes(of(honest).falsify((), Random(seed))[PATH], LIARS)["test_a"]

    assert set(of(lying).strengths.values()) == {Strength.WHOLE}
    assert found >= 18, "which question is asked is drawn"


PARTIAL = {
    "a function of operator": "assert operator.eq(same([0, 1]), [*range(2)])",
    "an imported function of operator": "assert eq(same([0, 1]), [*range(2)])",
    "a call that a mock had": "m = mock.Mock(); m(same([0, 1])); m.assert_called_once_with([*range(2)])",
    "any call that a mock had": "m = mock.Mock(); m(same([0, 1])); m.assert_any_call([1])",
    "what a difference leaves": "assert not {1} - same({1})",
    "the length of what is left": "assert len({1} - same({1})) == 0",
    "what is left under a name": "left = {1} - same({1}); assert left == set()",
    "what is left of a number": "assert abs(same(1.5) - 1.5) < 1e-9",
    "a pattern in a helper": "assert is_one(same(1))",
    "a comparison beside something lenient": "anything = same([0, 1]); assert anything == [*range(2)]",
    "a truth that a list holds": "assert [same([0, 1]) == [*range(2)]] == [1]",
    "a computed number that is near": "assert same(0.1) == pytest.approx(sum([0.1]))",
    "a helper beside something lenient": "assert like(same(1), sum([1]))",
    "a method that an operator calls": "assert same([0, 1]).__eq__([*range(2)])",
    "an assertion of a library": "testing.assert_equal(same([0, 1]), [*range(2)])",
    "numbers that are near": "assert math.isclose(same(1.5), sum([1.5]))",
    "a fixture that compares": "assert agreed(same(1)) if same(0) else True",
    "a helper of a helper": "check(same(1))",
}
"""A test of which a comparison is left as it is."""

WHOLE = {
    "sets of Python's own": "assert not {1} - set(same([0, 1]))",
    "a time": "import time; start = time.monotonic(); assert time.monotonic() - start < 100",
    "a platform": "assert sys.platform == sys.platform",
    "a predicate": "assert same(lambda x: x == 1)(1)",
    "a named predicate": "is_odd = lambda x: x == 1; same(is_odd)",
    "a query": "product.find(same(1) == 2, key=(same(2) == 3))",
    "an identity": "assert same(None) is None",
    "a literal": "assert same({'a': [1, 2]}) == {'a': [1, 2]}",
    "a mock with literals": "m = mock.Mock(); m([1]); m.assert_called_once_with([1])",
    "a loop": "for x in same([0, 1]): assert x == 1",
    "a helper that is stricter": "assert is_same(same([0, 1]), [*range(2)])",
}
"""A test that leaves out nothing."""


def _is_partial(body: str) -> bool:
    head = "import operator\nimport sys\nimport product\nfrom operator import eq\nfrom unittest import mock\n"
    head += (
        "import math\nfrom numpy import testing\n@pytest.fixture\ndef agreed(): return lambda like: like == sum([1])\n"
    )
    head += "def is_same(a, b): return a == b\ndef like(a, b): return a == b\ndef check(a): assert like(a, sum([1]))\n"
    head += "def is_one(a):\n    match a:\n        case 1: return True\n"
    made = of(tidy(f"{head}def test_a():\n    assert same(3) == 3\n    {body}\n"))
    return made.strengths[f"{PATH}::test_a"] is Strength.PARTIAL


@pytest.mark.parametrize("kind", PARTIAL)
def test_a_comparison_that_no_round_changes_is_known(kind: str) -> None:
    assert _is_partial(PARTIAL[kind])


@pytest.mark.parametrize("kind", WHOLE)
def test_what_nothing_of_the_code_under_test_decides_is_left_as_it_is(kind: str) -> None:
    assert not _is_partial(WHOLE[kind])


def test_a_helper_of_another_file_is_not_made_stricter() -> None:
    helper = "def is_same(a, b): return a == b\n"
    test = "def test_a():\n    assert same(3) == 3\n    assert is_same(same([0, 1]), [*range(2)])\n"

    assert of(tidy("from conftest import is_same\n" + test), helper).strengths == {f"{PATH}::test_a": Strength.PARTIAL}
    assert of(tidy("from product import is_same\n" + test), "").strengths == {f"{PATH}::test_a": Strength.WHOLE}


def test_what_a_file_calls_while_it_is_loaded_is_left_as_it_is() -> None:
    helper = "def is_one(a): return a == sum([1])\ndef make(): return [a for a in (1, 2) if is_one(a)]\n"
    made = of(tidy(f"{helper}TABLE = make()\ndef test_a():\n    assert same(3) == 3\n    assert is_one(same(1))\n"))
    source = made.falsify((), Random(1))[PATH]

    assert outcomes(source) == {"test_a": True}
    assert made.strengths == {f"{PATH}::test_a": Strength.PARTIAL}


def test_a_name_that_is_made_of_itself_is_read_once() -> None:
    helper = "def walk(a):\n    a = set(a - {1})\n    a = list(a)\n    return 3\n"
    made = of(tidy(f"{helper}def test_a():\n    assert walk({{1}}) == same(3)\n    assert same(3) == 3\n"))

    assert outcomes(made.falsify((), Random(1))[PATH]) == {"test_a": True}
    assert made.strengths == {f"{PATH}::test_a": Strength.WHOLE}


def test_the_end_of_a_chain_is_not_evaluated_where_its_beginning_is_false() -> None:
    condition = "    assert [w for w in ('', same('ab')) if '' != w != w[0]] == ['ab']\n"
    made = of(tidy(f"def test_a():\n{condition}\ndef test_b(): assert 1 < same(2) < len([1, 2, same(3)])\n"))

    assert outcomes(made.falsify((), Random(1))[PATH]) == {"test_a": True, "test_b": True}
    assert made.strengths[f"{PATH}::test_a"] is Strength.PARTIAL


def test_a_file_may_end_with_a_comparison() -> None:
    made = of(tidy("def test_a(): assert same(3) == same(3)").rstrip())

    assert outcomes(made.falsify((), Random(1))[PATH]) == {"test_a": True}


def test_what_combines_conditions_gets_its_own_objects() -> None:
    query = "class Query:\n    __eq__ = lambda s, o: Asked()\n    __hash__ = None\n"
    query += "class Asked: pass\ndef find(q): return type(q)\n"
    code = tidy(
        "from product import Asked, Query, find\n"
        "def test_a():\n    q = same(Query()) == 3\n    assert find(q) is Asked\n"
    )
    for seed in range(10):
        source = of(code).falsify((), Random(seed))[PATH]
        assert b"_asks_strictly((" in source
        assert outcomes(source, query)["test_a"]
