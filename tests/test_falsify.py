"""A falsified test fails and no other does; what cannot be falsified for certain is left as it is."""

from __future__ import annotations

import ast
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsifying import PATH, answers, of, outcomes, strengths, tidy
from jumar.core.acceptance import Strength
from jumar.verify.falsify_literals import another, scalars
from jumar.verify.falsify_source import Source

STRONG = """
def test_number(): assert same(3) == 3
def test_left(): assert 1_000 == same(1000)
def test_hexadecimal(): assert same(255) == 0xff
def test_negative(): assert same(-1) == -1
def test_fraction(): assert same(0.5) == .5
def test_imaginary(): assert same(2j) == 2j
def test_text(): assert same("abc") == 'abc'
def test_escapes(): assert same("a\\n\\x41") == "a\\n\\x41"
def test_raw(): assert same("\\\\d") == r"\\d"
def test_pieces(): assert same("one two") == ("one "  # a remark
    "two")
def test_empty(): assert same("") == ""
def test_marks(): assert same("---") == "---"
def test_other_script(): assert same("дом") == "дом"
def test_bytes(): assert same(b"ab") == b"ab"
def test_truth(): assert same(True) is True
def test_none(): assert same(None) is None
def test_list(): assert same([1, [2, 3]]) == [1, [2, 3]]
def test_truths(): assert same([True, False]) == [True, False]
def test_dict(): assert same({"a": 1}) == {"a": 1}
def test_keys(): assert same({"a": same}) == {"a": same}
def test_set(): assert same({1, 2}) == {2, 1}
def test_sorted(): assert sorted(same([2, 1])) == sorted([1, 2])
def test_call(): assert same({1}) == set([1])
def test_joined(): assert same("a\\nb") == "\\n".join(["a", "b"])
def test_stripped(): assert same("a") == " a ".strip()
def test_sum(): assert same("a") + "b" == "a" + same("b")
def test_chain(): assert same(1) == same(1) == 1
def test_conjunction(): assert same(1) and same(2) == 2 and same(3)
def test_length():
    assert len(same("abc")) == 3
def test_message():
    expected = [1, 2]
    assert same([1, 2]) == expected, f"{expected}"
def test_local():
    expected = {"key": "value"}
    got = same({"key": "value"})
    print(expected)
    assert got == expected
TABLE = [(1, 1), (2, 2)]
@pytest.mark.parametrize("given, expected", TABLE)
def test_table(given, expected): assert same(given) == expected
@pytest.mark.parametrize("given, expected", [(1, 1), pytest.param("b", "b"), (None, None)])
def test_column(given, expected): assert same(given) == expected
@pytest.mark.parametrize("given, expected", [(1, True), (0, False)])
def test_truth_column(given, expected): assert bool(same(given)) == expected
@pytest.mark.parametrize("kind, expected", [(KeyError, KeyError), (OSError, OSError)])
def test_classes(kind, expected):
    with pytest.raises(expected):
        fail(kind)
def test_loop():
    for given, expected in [(1, 1), (2, 2)]:
        assert same(given) == expected
def test_inside_a_loop():
    for given in range(3):
        assert same("x") == "x"
EXPECTED = "only here"
def test_constant(): assert same("only here") == EXPECTED
def test_raises():
    with pytest.raises(ValueError, match="reason"):
        fail()
def test_raises_called(): pytest.raises((ValueError, KeyError), fail)
def test_raises_own():
    with pytest.raises(Fault): fail(Fault)
def test_warns():
    import warnings
    with pytest.warns(UserWarning):
        warnings.warn("beware")
def test_near(): assert same(0.3) == pytest.approx(0.3)
def test_near_in_full(): assert same([1.0, 2.0]) == pytest.approx([1.0, 2.0], abs=0.01)
def test_type(): assert isinstance(same(1), int)
def test_part(): assert "failing words" in str(same("some failing words"))
def test_in_a_context(tmp_path=None):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        assert len(same("abc")) == 3
def test_finally():
    try:
        assert same(1) == 1
    finally:
        same(2)
def test_in_the_end():
    if same(0):
        same(1)
    assert same(2) == 2
    return None
def check(given, expected):
    print(given)
    assert same(given) == expected
def test_by_a_function(): check("text", "text")
def test_mock():
    from unittest import mock
    m = mock.Mock()
    m(1, key="a")
    m.assert_called_once_with(1, key="a")
class TestPlain:
    def test_method(self): assert same(1) == 1
class TestUnit(unittest.TestCase):
    def agree(self, given, expected): self.assertEqual(same(given), expected)
    def test_equal(self): self.assertEqual(same("a"), "a")
    def test_first(self): self.assertEqual("a", same("a"), "a message")
    def test_count(self): self.assertCountEqual(same([1, 2]), [2, 1])
    def test_true(self): self.assertTrue(same(3) == 3)
    def test_is(self): self.assertIs(same(True), True)
    def test_is_none(self): self.assertIsNone(same(None))
    def test_almost(self): self.assertAlmostEqual(same(1.23), 1.2345, places=2)
    def test_almost_delta(self): self.assertAlmostEqual(same(100), 101, delta=2)
    def test_type(self): self.assertIsInstance(same(""), str)
    def test_raises(self):
        with self.assertRaises(ValueError): fail()
    def test_raises_called(self): self.assertRaisesRegex(ValueError, "reason", fail)
    def test_by_a_method(self): self.agree(1, 1)
    def test_subtests(self):
        for given, expected in ((1, 1), (2, 2)):
            with self.subTest(given=given, expected=expected):
                self.assertEqual(same(given), expected)
"""

WEAK = """
def test_computed(): assert same(3) == same(3)
def test_contrary(): assert same(3) != 4
def test_less(): assert same(3) < same(4)
def test_at_most(): assert (same(3)
    <= same(3))
def test_true(): assert same(3)
def test_not(): assert not same(0)
def test_not_both(): assert not (same(0) or same([]))
def test_either(): assert same(0) or same(1)
def test_choice(): assert same(1) if same(1) else same(0)
def test_in(): assert 1 in same([1])
def test_one_of_many(): assert "no 1 of" in str(same("no 1 of 2, no 2 of 2"))
def test_short_text(): assert "a" in str(same("abc"))
def test_not_in(): assert 2 not in same([1])
def test_not_none(): assert same(1) is not None
def test_all(): assert all(x == 1 for x in same([1]))
def test_both(): assert same(1) and not same(0)
def test_lenient(): assert 3 == Anything()
def test_lenient_by_name():
    thing = Anything()
    assert thing == 3
class TestUnit(unittest.TestCase):
    def test_true(self): self.assertTrue(same(1))
    def test_false(self): self.assertFalse(same(0))
    def test_unequal(self): self.assertNotEqual(same(1), 2)
    def test_equal(self): self.assertEqual(same(1), same(1))
    def test_in(self): self.assertIn(1, same([1]))
    def test_greater(self): self.assertGreater(same(2), 1)
"""

NONE = """
import contextlib
import os
def test_nothing(): same(1)
def test_itself(): assert 1 == 1
def test_truth(): assert True
def test_after_a_return():
    if same(1): return
    assert same(1) == 1
def test_under_a_condition():
    if same(1): assert same(1) == 1
def test_in_a_loop_over_nothing():
    for x in same([]): assert x == 1
def test_in_an_empty_table():
    for x in []: assert x == 1
def test_caught():
    try: assert same(1) == 1
    except AssertionError: pass
def test_suppressed():
    with contextlib.suppress(AssertionError): assert same(1) == 1
def test_in_a_context_of_the_product():
    with Anything(): assert same(1) == 1
def test_in_another_function():
    def later(): assert same(1) == 1
def test_generator():
    yield
    assert same(1) == 1
@pytest.mark.xfail
def test_expected_failure(): assert same(1) == 1
@pytest.mark.skipif("sys.platform == 'win32'")
def test_skip(): assert same(1) == 1
@pytest.mark.flaky(reruns=3)
def test_again(): assert same(1) == 1
def swallow(function): return lambda: None
@swallow
def test_decorated(): assert same(1) == 1
def test_used(): assert same(1) == 1
def test_user(): test_used()
def test_named_in_a_text(): assert same(1) == 1
NAMED = "test_named_in_a_text"
def test_twice(): assert same(1) == 1
def test_twice(): assert same(1) == 1
def test_skips():
    if same(0): pytest.skip("not here")
    assert same(1) == 1
def test_leaves_things_behind():
    assert same(1) == 1
    os.environ.pop("x", None)
def test_broad():
    with pytest.raises(Exception): fail()
def test_interrupt():
    with pytest.raises(KeyboardInterrupt): fail(KeyboardInterrupt)
def test_exit():
    with pytest.raises(SystemExit): fail(SystemExit)
def test_raised_within():
    with Anything(), pytest.raises(ValueError): fail()
def raises(kind):
    return contextlib.suppress(kind)
def test_own_raises():
    with raises(ValueError): fail()
async def later(given, expected): assert given == expected
def test_never_awaited(): later(same(1), 1)
def one_by_one(given, expected):
    assert given == expected
    yield
def test_never_gone_through(): one_by_one(same(1), 1)
ROWS = [(1, 1), pytest.param(2, 3, marks=pytest.mark.xfail)]
@pytest.mark.parametrize("given, expected", ROWS)
def test_rows(given, expected): assert same(given) == expected
class TestBase:
    def test_inherited(self): assert same(1) == 1
class TestHeir(TestBase): pass
class TestMarked:
    pytestmark = pytest.mark.xfail(strict=False)
    def test_method(self): assert same(1) == 1
class TestMeta(metaclass=type):
    def test_method(self): assert same(1) == 1
"""


@pytest.mark.parametrize(
    ("code", "strength"), [(STRONG, Strength.STRONG), (WEAK, Strength.WEAK), (NONE, Strength.NONE)]
)
def test_a_test_is_as_strong_as_what_it_asserts(code: str, strength: Strength) -> None:
    found = strengths(tidy(code))

    assert {name: s.name for name, s in found.items() if s is not strength} == {}
    assert len(found) > 20


@pytest.mark.parametrize("code", [STRONG, WEAK])
def test_exactly_the_chosen_fail(code: str) -> None:
    whole = tidy(code)
    assert all(outcomes(whole.encode()).values())
    often: Counter[str] = Counter()
    for seed in range(12):
        passed, chosen, source = answers(whole, seed)

        assert {name for name, ok in passed.items() if not ok} == chosen
        assert source.count(b"\n") == whole.count("\n")
        often.update(chosen)
    assert len(often) == len(strengths(whole))


def test_what_cannot_be_falsified_stays_as_it_is() -> None:
    made = of(tidy(NONE))

    assert made.falsified((), Random(1)) == {PATH: tidy(NONE).encode()}
    with pytest.raises(ValueError, match="test_nothing cannot be falsified"):
        made.falsified([f"{PATH}::test_nothing"], Random(1))


def test_another_time_it_is_falsified_in_another_way() -> None:
    made = of(tidy("def test_a(): assert same([10, 20, 'some words']) == [10, 20, 'some words']\n"))

    assert len({made.falsified([f"{PATH}::test_a"], Random(seed))[PATH] for seed in range(20)}) > 10


def test_what_other_files_mention_is_left_alone() -> None:
    code = tidy("def test_a(): assert same(1) == 1\ndef test_b(): assert same(1) == 1\nWORD = 1\n")

    assert strengths(code, "from test_it import test_a") == {"test_a": Strength.NONE, "test_b": Strength.STRONG}
    assert set(strengths(code, "from test_it import *").values()) == {Strength.NONE}
    assert strengths(code, "HOOK = 'test_it.py::test_b'")["test_b"] is Strength.NONE


def test_a_value_that_a_fixture_takes_is_no_expectation() -> None:
    code = tidy("@pytest.mark.parametrize('a, b', [(1, 1)])\ndef test_a(a, b, made): assert same(a) == b\n")

    assert strengths(code)["test_a"] is Strength.STRONG
    assert strengths(code, "import pytest\n@pytest.fixture\ndef made(b): return b\n")["test_a"] is Strength.WEAK


def test_a_constant_that_is_used_twice_is_no_expectation() -> None:
    code = tidy("WORD = 'a'\ndef test_a(): assert same('a') == WORD\ndef test_b(): assert same('a') == WORD\n")

    assert set(strengths(code).values()) == {Strength.WEAK}


def test_a_function_of_another_module_is_an_assertion_where_it_was_imported() -> None:
    helper = "def agrees(given, expected):\n    assert given == expected\n"
    code = "def test_a(): agrees(same(1), 1)\n"

    assert strengths(tidy("from conftest import agrees\n" + code), helper)["test_a"] is Strength.STRONG
    assert strengths(tidy("from product import same as agrees\n" + code), helper)["test_a"] is Strength.NONE


def test_a_method_that_takes_the_name_of_an_assertion_is_none() -> None:
    code = "class TestIt(unittest.TestCase):\n    def assertEqual(self, *_): pass\n"
    code += "    def test_a(self): self.assertEqual(same(1), 1)\n"

    assert strengths(tidy(code)) == {"TestIt::test_a": Strength.NONE}


def test_who_has_a_say_in_what_fails_is_not_challenged() -> None:
    code = tidy("def test_a(): assert same(1) == 1\n")
    hook = "def pytest_runtest_makereport(item, call):\n    outcome = yield\n    outcome.get_result().{} = 'passed'\n"

    assert strengths(code, hook.format("note")) == {"test_a": Strength.STRONG}
    assert strengths(code, hook.format("outcome")) == {"test_a": Strength.NONE}


def test_an_equality_of_its_own_is_not_turned() -> None:
    code = "class TestUnit(unittest.TestCase):\n    def setUp(self): self.addTypeEqualityFunc(float, print)\n"
    code += "    def test_a(self): self.assertEqual(same(1.0), same(1.0))\n"

    assert strengths(tidy(code)) == {"TestUnit::test_a": Strength.NONE}


@pytest.mark.parametrize(
    "data", [b"def test_a(:", b"\0", b"# coding: nonsense\n", b"x = " + b"(" * 400 + b")" * 400, b"\xff"]
)
def test_a_file_that_does_not_parse_is_handed_on(data: bytes) -> None:
    from jumar.verify.falsify import challenge  # noqa: PLC0415  the function itself, for odd bytes

    made = challenge({PATH: data, "test_b.py": b"from x import f\ndef test_b(): assert f() == 1\n"})

    assert made.falsified(["test_b.py::test_b"], Random(1))[PATH] == data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1251"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_around_an_edit_stay(encoding: str, newline: str) -> None:
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    word = "дом" if encoding in ("utf-8", "cp1251") else "né"
    text = f"{cookie}x = '{word}'\ndef test_a():\n    '{word}'; assert x + '{word}' == '{word}one'\n\f\n# {word}\n"
    data = text.replace("\n", newline).encode(encoding)
    from jumar.verify.falsify import challenge  # noqa: PLC0415  as above

    new = challenge({PATH: data}).falsified([f"{PATH}::test_a"], Random(3))[PATH]

    assert len(new) == len(data)
    assert sum(a != b for a, b in zip(new, data, strict=True)) <= 2
    assert new != data


SCALARS = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.booleans(),
    st.none(),
)
VALUES = st.recursive(
    SCALARS,
    lambda some: st.one_of(
        st.lists(some, max_size=4),
        st.tuples(some, some),
        st.dictionaries(st.text(max_size=4), some, max_size=3),
        st.sets(st.integers(), min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES, st.integers())
def test_another_literal_is_of_the_same_shape_and_never_equal(value: Any, seed: int) -> None:
    source = Source(f"é = {value!r}\n".encode())
    statement = source.tree.body[0]
    assert isinstance(statement, ast.Assign)
    for place in scalars(statement.value):
        edit = another(source, place, Random(seed), lambda _: True)
        if edit is None:
            assert isinstance(ast.literal_eval(place), str | bytes), "only a text of odd characters is left alone"
            continue
        new = ast.literal_eval(source.rewritten([edit]).decode().partition("=")[2].strip())
        assert new != value
        assert type(new) is type(value) or value is None
        assert not hasattr(value, "__len__") or len(new) == len(value) or not value
