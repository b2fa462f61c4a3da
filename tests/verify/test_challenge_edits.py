"""A falsified test fails and no other does; what cannot be falsified for certain is left as it is."""

from __future__ import annotations

import ast
import builtins
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from types import CodeType
from typing import Any, NamedTuple

import pytest
from _pytest.assertion.rewrite import rewrite_asserts
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.gate.challenge_rounds import Strength
from jumar.verify.challenge.appended_code import HELPER
from jumar.verify.challenge.literals import find_scalars, make_another
from jumar.verify.challenge.source_edits import ParsedSource
from support.judging.run_falsified_suite import PATH, answers, of, outcomes, strengths, tidy

FRAMEWORK = "unittest"
"""Below it lies what equals anything. It stands in texts alone: nothing here is replaced."""

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
def test_many(): assert same([0, 0]) == [0] * 2
def test_often(): assert 3 * "ab" == same("ababab")
def test_reason():
    with pytest.raises(Fault, match="failed for a reason"): fail(Fault)
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
def test_warns():
    import warnings
    with pytest.warns(UserWarning):
        warnings.warn("beware")
def test_near(): assert same(0.3) == pytest.approx(0.3)
def test_near_in_full(): assert same([1.0, 2.0]) == pytest.approx([1.0, 2.0], abs=0.01)
def test_type(): assert isinstance(same(1), int)
def test_raises_of_a_standard_module():
    import subprocess
    with pytest.raises(subprocess.SubprocessError): fail(subprocess.SubprocessError)
def test_type_itself(): assert type(same(1)) is int
def test_word(): assert same("two") == "two"
def test_other_word(): assert "three" == same("three")
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
    def test_word(self): self.assertEqual(same("seven"), "seven")
    def test_is(self): self.assertIs(same(True), True)
    def test_is_nothing(self): self.assertIs(same(None), None)
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

AFFIXES = """
def test_start(): assert same("some words").startswith("so")
def test_end(): assert same(b"some words").endswith(b"rds", 2)
def test_both_ends():
    got = same("some words")
    assert got.startswith("s") and got.endswith("words")
class TestUnit(unittest.TestCase):
    def test_start(self): self.assertTrue(same("some words").startswith("some"), "a message")
"""

OWN = """
def test_raises_own():
    with pytest.raises(Fault): fail(Fault)
def test_raises_own_among_others():
    with pytest.raises((ValueError, Fault)): fail(Fault)
"""

EMPTY = """
def test_list(): assert same([]) == []
def test_tuple(): assert () == same(())
def test_dict(): assert same({}) == {}
def test_set(): assert same(set()) == set()
@pytest.mark.parametrize("got, wanted", [([], []), ([1], [1])])
def test_rows(got, wanted): assert same(got) == wanted
"""
"""Containers without an item get one, which is another operation of the interpreter."""

STRICT = """
def test_identity(): assert same(Fault) is Fault
def test_computed(): assert same(3) == same(3)
def test_computed_in_lines():
    expected = same([1, 2])
    assert (same([1, 2])
        == expected)
def test_of_itself(): assert [*same("ab")] == list(same("ab"))
def test_contrary(): assert same(3) != 4
def test_more(): assert same(3.5) > 3
def test_infinite(): assert same(float("inf")) >= 3
def test_below_all(): assert -same(float("inf")) <= -3 < same(4)
def test_earlier():
    import datetime
    assert datetime.date(2001, 1, 1) < same(datetime.date(2002, 1, 1))
def test_exact():
    from decimal import Decimal
    assert Decimal(3) >= same(3)
def test_part_of_a_set(): assert same({1}) < {1, 2}
def test_word_in_a_text(): assert "words" in same("some words")
def test_word_by_name(): assert same("me") in same("some words")
def test_bytes_in(): assert b"words" in same(b"some words")
def test_key(): assert "key" in same({"key": 1})
def test_in_the_odd(): assert "key" in Anything()
def test_start_of_nothing(): assert same("abc").startswith("")
def test_start_of_either(): assert same("abc").startswith(("b", "a"))
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
    def test_is_none(self): self.assertIsNone(same(None))
    def test_true(self): self.assertTrue(same(1))
    def test_false(self): self.assertFalse(same(0))
    def test_unequal(self): self.assertNotEqual(same(1), 2)
    def test_equal(self): self.assertEqual(same(1), same(1))
    def test_equal_in_its_order(self): self.assertCountEqual(same([1, 2]), same([2, 1]), msg="a message")
    def test_equal_lists(self):
        self.assertListEqual(  # a remark
            (same([1, 2])), [same(1), same(2)], "a message")
    def test_in(self): self.assertIn(1, same([1]))
    def test_text_in(self): self.assertIn("b", (same("abc")), "a message")
    def test_text_truly_in(self): self.assertTrue("b" in same("abc"))
    def test_greater(self): self.assertGreater(same(2), 1)
    def test_less(self): self.assertLessEqual(same(2), same(2), msg="a message")
    def test_own_identity(self): self.assertIs(same(Fault), Fault)
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
    ("code", "strength"),
    [
        (STRONG, Strength.WHOLE),
        (AFFIXES, Strength.WHOLE),
        (EMPTY, Strength.WHOLE),
        (OWN, Strength.NONE),
        (STRICT, Strength.NONE),
        (NONE, Strength.NONE),
    ],
)
def test_a_test_is_as_strong_as_what_it_asserts(code: str, strength: Strength) -> None:
    found = strengths(tidy(code))

    assert {name: s.name for name, s in found.items() if s is not strength} == {}
    assert len(found) == code.count("def test_") or code is NONE


@pytest.mark.slow
@pytest.mark.parametrize("code", [STRONG, AFFIXES, EMPTY, OWN, STRICT])
def test_exactly_the_chosen_fail(code: str) -> None:
    whole = tidy(code)
    assert all(outcomes(whole.encode()).values())
    often: Counter[str] = Counter()
    for seed in range(12):
        passed, chosen, source = answers(whole, seed)
        written, _, added = source.decode().partition(f"\n{HELPER}")

        assert {name for name, ok in passed.items() if not ok} == chosen
        assert written.count("\n") == whole.count("\n")
        assert (added, "_asks_strictly((" in written) == ("", code in (STRONG, EMPTY, STRICT))
        often.update(chosen)
    assert len(often) == len([name for name, strength in strengths(whole).items() if strength])


BESIDE = """
def test_words():
    found = same({"a": 1})
    assert isinstance(found, dict)
    assert found == dict(zip("a", [1]))
def test_refused():
    with pytest.raises(ValueError): fail()
    assert same("a") == chr(97)
class TestOld(unittest.TestCase):
    def test_words(self):
        self.assertIsInstance(same({}), dict)
        self.assertEqual(same({"a": 1}), dict(zip("a", [1])))
"""
"""Each function has a literal to be falsified, and a comparison that has none."""


def test_a_comparison_without_a_literal_is_stricter_beside_one_that_has_one() -> None:
    whole = tidy(BESIDE)
    assert set(strengths(whole).values()) == {Strength.WHOLE}

    passed, chosen, source = answers(whole, 0)

    assert source.decode().count("_asks_strictly((") == whole.count("zip(") + whole.count("chr(")
    assert {name for name, ok in passed.items() if not ok} == chosen


@pytest.mark.parametrize("text", ["reward", "some words", "2024-10-31", "Naïve"])
def test_a_text_is_made_of_the_same_letters_about_every_other_time(text: str) -> None:
    """Code may know the letters of an answer without knowing the answer: they must not tell it what is falsified."""
    source = ParsedSource(f"x = {text!r}".encode())
    (node,) = find_scalars(source.tree.body[0].value)  # type: ignore[attr-defined]  # it is an assignment
    made = [make_another(source, node, Random(seed), lambda new: new != text) for seed in range(200)]

    alike = sum(sorted(ast.literal_eval(edit.text)) == sorted(text) for edit in made if edit)
    assert None not in made
    assert 50 < alike < 150


class Shape(NamedTuple):
    """All of a compiled function that could tell how it was made, but for values."""

    counts: tuple[int, ...]
    operations: tuple[int, ...]
    names: frozenset[str]
    constants: frozenset[object]
    lines: tuple[object, ...]


CLASSES = frozenset(name for name in dir(builtins) if isinstance(getattr(builtins, name), type)) | {"Fault"}


def shape(code: CodeType) -> Shape:
    """The shape of *code*, in which one class or value is as good as another; equal ones are held once."""
    values = (shape(const) if isinstance(const, CodeType) else _kind(const) for const in code.co_consts)
    places = [place[:2] for place in code.co_positions() if place[0] is not None]
    return Shape(
        (code.co_argcount, code.co_flags, code.co_nlocals, code.co_stacksize),
        tuple(code.co_code[::2]),
        frozenset(code.co_names) - CLASSES,
        frozenset(values),
        tuple(places),
    )


def _kind(value: object) -> object:
    """What a constant may tell."""
    return "one of three" if value is None or isinstance(value, bool) else type(value)


def compiled(source: bytes) -> CodeType:
    """*source* as pytest compiles it."""
    tree = ast.parse(source)
    rewrite_asserts(tree, source)
    return compile(tree, PATH, "exec", dont_inherit=True)


def functions(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Every function in *code*, by its name."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const.co_qualname, const
            yield from functions(const)


@pytest.mark.slow
@pytest.mark.parametrize("code", [STRONG, AFFIXES, OWN, STRICT])
def test_nothing_tells_a_falsified_test_from_one_that_is_not(code: str) -> None:
    made = of(tidy(code))
    able = [name for name, strength in made.strengths.items() if strength and "of_a_standard_module" not in name]
    for seed in range(6):
        # The same draws, so that what is stricter is so in the same way: it does not depend on the coins.
        plain = dict(functions(compiled(made.falsify((), Random(seed))[PATH])))
        chosen = [name for name in able if Random(f"{seed}{name}").random() < 1 / 2]
        for names in (chosen, [name for name in able if name not in chosen]):  # each test is falsified in one of them
            false = dict(functions(compiled(made.falsify(names, Random(seed))[PATH])))
            for name in able:
                function = name.partition("::")[2].replace("::", ".")
                assert shape(false[function]) == shape(plain[function]), name
            assert [n for n in false if "<lambda>" in n] == [n for n in plain if "<lambda>" in n]


@pytest.mark.proof
@pytest.mark.parametrize("code", [STRONG, AFFIXES, OWN, STRICT])
def test_nothing_tells_a_test_that_is_falsified_alone(code: str) -> None:
    made = of(tidy(code))
    for name in [name for name, strength in made.strengths.items() if strength and "of_a_standard_module" not in name]:
        for seed in range(6):
            plain = dict(functions(compiled(made.falsify((), Random(seed))[PATH])))
            false = dict(functions(compiled(made.falsify([name], Random(seed))[PATH])))
            function = name.partition("::")[2].replace("::", ".")
            assert shape(false[function]) == shape(plain[function]), name
            assert [n for n in false if "<lambda>" in n] == [n for n in plain if "<lambda>" in n]


AFFIRMED = [
    "assert Equal() == same([1, 2])",
    "assert same('ab') == Equal()",
    "got = Equal()\n    expected = 'ab'.upper()\n    assert got == expected",
    "assert Equal() == [*same([])]",
    "assert 'words' in Text('nothing')",
    "assert same('words') in Text('nothing')",
    "assert Text('nothing').startswith('words')",
    "assert Text('nothing').endswith('words')",
    "assert Number(1) > 3",
    "assert 3 <= Number(9)",
    "assert 3 < Always()",
]
"""What holds for things that affirm all they are asked, but for the contrary."""


@pytest.mark.slow
@pytest.mark.parametrize("assertion", AFFIRMED)
@pytest.mark.parametrize("unit", [False, True])
def test_who_affirms_everything_is_found_out(assertion: str, unit: bool) -> None:  # noqa: FBT001  a parameter of the test
    code = f"from product import Always, Equal, Number, Text\ndef test_a():\n    {assertion}\n"
    if unit:
        code = _in_unittest(code)
    ((name, strength),) = strengths(tidy(code)).items()
    made, found = of(tidy(code)), 0
    chosen = [f"{PATH}::{name}"] if strength else []
    assert outcomes(tidy(code).encode())[name], "it does look right"
    for seed in range(40):
        passed = outcomes(made.falsify(chosen, Random(seed))[PATH])[name]
        found += passed is bool(chosen)

    assert found >= 36, "a falsified test passes, a stricter one fails"


def _in_unittest(code: str) -> str:
    """As a `TestCase` says it."""
    head, _, body = code.partition("def test_a():\n")
    lines = [f"    {line}\n" for line in body.splitlines()]
    said = "".join(lines).replace("assert ", "self.assertTrue(").rstrip() + ")\n"
    for written, name in (("==", "Equal"), (" in ", "In"), (">", "Greater"), ("<=", "LessEqual"), ("<", "Less")):
        left, _, right = said.rpartition("self.assertTrue(")
        if written in right:
            said = f"{left}self.assert{name}({right.replace(written, ',', 1)}"
            break
    return f"{head}class TestIt(unittest.TestCase):\n    def test_a(self):\n{said}"


@pytest.mark.parametrize(
    "code",
    [
        f"from {FRAMEWORK}.mock import ANY\ndef test_a(): assert same(3) == ANY\n",
        f"def test_a():\n    from {FRAMEWORK}.mock import ANY as odd, Mock\n    assert Mock(x=odd).x == odd\n",
        "def test_equals_anything():\n    odd = Anything()\n    assert same(odd) == odd\n",
        "class Odd:\n    def __eq__(self, other): return True\ndef test_a(): assert same(3) == same(Odd())\n",
        "class Odd:\n    __eq__ = lambda s, o: True\ndef test_a(): assert same(3) == same(Odd())\n",
        "from hamcrest import is_\ndef test_a(): assert same(3) == same(Anything())\n",
        "type = same\ndef test_a(): assert same(3) == same(type(3))\n",
        "def test_a(): assert same([0.1]) == pytest.approx([0.1], abs=same(0.1))\n",
    ],
)
def test_what_may_equal_anything_is_asked_nothing_more(code: str) -> None:
    assert of(tidy(code)).falsify((), Random(1))[PATH] == tidy(code).encode()


def test_what_helpers_may_bring_is_asked_nothing_more() -> None:
    from jumar.verify.challenge.challenge import find_challenge  # noqa: PLC0415  the function itself, for more files than one

    code = "def test_a(): assert same(3) == same(3)\n"
    odd = "class Odd:\n    def __eq__(self, other): return True\n"

    def asked(text: str, tests: str = "", helper: str = "") -> bool:
        made = find_challenge({PATH: text.encode(), "test_odd.py": tests.encode()}, {"conftest.py": helper.encode()})
        return b"_asks_strictly((" in made.falsify((), Random(1))[PATH]

    assert asked(code)
    assert asked(code, tests=odd)
    assert not asked("from test_odd import Odd\n" + code, tests=odd)
    assert not asked("from . import test_odd\n" + code, tests=odd)
    assert not asked(code, helper=odd)


def test_what_is_asked_beside_is_another_thing_each_time() -> None:
    for code in ("def test_a(): assert same([1]) == same([1])\n", "def test_b(): assert 'words' in same('words')\n"):
        made = of(tidy(code))
        assert len({made.falsify((), Random(seed))[PATH] for seed in range(20)}) > 15


def test_a_text_that_things_say_which_affirm_everything_is_not_changed() -> None:
    code = "def test_a(): assert same('abc').startswith('a')\n"

    assert strengths(tidy(code))["test_a"] is Strength.WHOLE
    assert strengths(tidy("from unittest import mock\n" + code))["test_a"] is Strength.NONE


ODD_ORDERS = """
class Reversed(int):
    __gt__ = lambda s, o: int(s) < int(o)
    __lt__ = lambda s, o: int(s) > int(o)
    __ge__ = lambda s, o: int(s) <= int(o)
    __le__ = lambda s, o: int(s) >= int(o)
class Digits:
    def __init__(self, text): self.text = "".join(c for c in str(text) if c.isdigit())
    def __eq__(self, other): return self.text == Digits(other).text
class Congruent(Digits):
    def __eq__(self, other): return 0 == int(other) % 2
class Beginning(list):
    def __eq__(self, other): return all(a == b for a, b in zip(self, other))
class Folded(str):
    def __eq__(self, other): return self.lower() == other.lower()
def folded(x): return Folded(x)
def number(x): return Reversed(x)
def digits(x): return Digits(x)
def even(x): return Congruent(x)
def beginning(*x): return Beginning(x)
"""
HONEST = [
    "assert number(1) > number(2)",
    "assert number(3) <= number(2)",
    "assert 3 < number(1)",
    "assert digits('1-2') == str(12)",
    "assert even(4) == sum([3, 3])",
    "assert beginning() == []",
    "assert folded('A') == chr(97)",
    "assert beginning(1, 2) == list(range(1, 4))",
]


@pytest.mark.slow
@pytest.mark.parametrize("assertion", HONEST)
def test_who_is_odd_and_honest_stands_what_is_stricter(assertion: str) -> None:
    code = f"from product import beginning, digits, even, folded, number\ndef test_a(): {assertion}\n"
    made = of(tidy(code))
    for seed in range(60):
        source = made.falsify((), Random(seed))[PATH]
        assert b"_asks_strictly((" in source
        assert outcomes(source, ODD_ORDERS)["test_a"]


VALUES_OF_ALL_KINDS = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.none(), st.booleans(), st.complex_numbers(),
    st.lists(st.integers()), st.tuples(st.text()), st.dictionaries(st.text(), st.none()), st.sets(st.integers()),
    st.fractions(), st.decimals(allow_nan=False), st.dates(), st.timedeltas(),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None)
@given(VALUES_OF_ALL_KINDS, st.integers())
def test_every_value_stands_what_is_stricter(value: Any, seed: int) -> None:
    code = "def test_a(same): assert same(0) == same(1)\ndef test_b(same): assert same(0) <= same(1)\n"
    code += "def test_c(same): assert same(0) in same(1)\n"
    source = of(code).falsify((), Random(seed))[PATH]
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102  our own text, above
    assert source.count(b"_asks_strictly((") == 3

    for test, holds in ((names["test_a"], operator.eq), (names["test_b"], operator.le)):
        if _holds(holds, value, value):
            test(lambda _: value)
    for around in (value, [value]):
        if _holds(operator.contains, around, value):
            names["test_c"]([value, around].__getitem__)


def _holds(claim: Callable[[Any, Any], object], one: object, other: object) -> bool:
    try:
        return bool(claim(one, other))
    except TypeError:
        return False


def test_what_cannot_be_falsified_stays_as_it_is() -> None:
    made = of(tidy("def test_nothing(): same(1)\ndef test_caught(): assert 1 == 1\n"))
    plain = made.falsify((), Random(1))[PATH]

    assert plain == tidy("def test_nothing(): same(1)\ndef test_caught(): assert 1 == 1\n").encode()
    with pytest.raises(ValueError, match="test_nothing cannot be falsified"):
        made.falsify([f"{PATH}::test_nothing"], Random(1))


def test_another_time_it_is_falsified_in_another_way() -> None:
    made = of(tidy("def test_a(): assert same([10, 20, 'some words']) == [10, 20, 'some words']\n"))

    assert len({made.falsify([f"{PATH}::test_a"], Random(seed))[PATH] for seed in range(20)}) > 10


def test_what_other_files_mention_is_left_alone() -> None:
    code = tidy("def test_a(): assert same(1) == 1\ndef test_b(): assert same(1) == 1\nWORD = 1\n")

    assert strengths(code, "from test_it import test_a") == {"test_a": Strength.NONE, "test_b": Strength.WHOLE}
    assert set(strengths(code, "from test_it import *").values()) == {Strength.NONE}
    assert strengths(code, "HOOK = 'test_it.py::test_b'")["test_b"] is Strength.NONE


def test_a_value_that_a_fixture_takes_is_no_expectation() -> None:
    code = tidy("@pytest.mark.parametrize('a, b', [(1, 1)])\ndef test_a(a, b, made): assert same(a) == b\n")

    assert strengths(code)["test_a"] is Strength.WHOLE
    assert strengths(code, "import pytest\n@pytest.fixture\ndef made(b): return b\n")["test_a"] is Strength.NONE


def test_a_constant_that_is_used_twice_is_no_expectation() -> None:
    code = tidy("WORD = 'a'\ndef test_a(): assert same('a') == WORD\ndef test_b(): assert same('a') == WORD\n")

    assert set(strengths(code).values()) == {Strength.NONE}


def test_a_function_of_another_module_is_an_assertion_where_it_was_imported() -> None:
    helper = "def agrees(given, expected):\n    assert given == expected\n"
    code = "def test_a(): agrees(same(1), 1)\n"

    assert strengths(tidy("from conftest import agrees\n" + code), helper)["test_a"] is Strength.WHOLE
    assert strengths(tidy("from product import same as agrees\n" + code), helper)["test_a"] is Strength.NONE


def test_a_method_that_takes_the_name_of_an_assertion_is_none() -> None:
    code = "class TestIt(unittest.TestCase):\n    def assertEqual(self, *_): pass\n"
    code += "    def test_a(self): self.assertEqual(same(1), 1)\n"

    assert strengths(tidy(code)) == {"TestIt::test_a": Strength.NONE}


def test_who_has_a_say_in_what_fails_is_not_challenged() -> None:
    code = tidy("def test_a(): assert same(1) == 1\n")
    hook = "def pytest_runtest_makereport(item, call):\n    outcome = yield\n    outcome.get_result().{} = 'passed'\n"

    assert strengths(code, hook.format("note")) == {"test_a": Strength.WHOLE}
    assert strengths(code, hook.format("outcome")) == {"test_a": Strength.NONE}


def test_an_equality_of_its_own_is_not_turned() -> None:
    code = "class TestUnit(unittest.TestCase):\n    def setUp(self): self.addTypeEqualityFunc(float, print)\n"
    code += "    def test_a(self): self.assertEqual(same(1.0), same(1.0))\n"

    assert strengths(tidy(code)) == {"TestUnit::test_a": Strength.NONE}


@pytest.mark.parametrize(
    "data", [b"def test_a(:", b"\0", b"# coding: nonsense\n", b"x = " + b"(" * 400 + b")" * 400, b"\xff"]
)
def test_a_file_that_does_not_parse_is_handed_on(data: bytes) -> None:
    from jumar.verify.challenge.challenge import find_challenge  # noqa: PLC0415  the function itself, for odd bytes

    made = find_challenge({PATH: data, "test_b.py": b"from x import f\ndef test_b(): assert f() == 1\n"})

    assert made.falsify(["test_b.py::test_b"], Random(1))[PATH] == data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1251"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_around_an_edit_stay(encoding: str, newline: str) -> None:
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    word = "дом" if encoding in ("utf-8", "cp1251") else "né"
    text = f"{cookie}x = '{word}'\ndef test_a():\n    '{word}'; assert x + '{word}' == '{word}one'\n\f\n# {word}\n"
    data = text.replace("\n", newline).encode(encoding)
    from jumar.verify.challenge.challenge import find_challenge  # noqa: PLC0415  as above

    new = find_challenge({PATH: data}).falsify([f"{PATH}::test_a"], Random(3))[PATH]

    literal = f"{word}one".encode(encoding.removesuffix("-sig"))
    before, _, after = data.rpartition(literal)
    assert (new[: len(before)], new[len(before) + len(literal) :]) == (before, after)
    assert len(new) == len(data)
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


@pytest.mark.slow
@given(VALUES, st.integers())
def test_another_literal_is_of_the_same_shape_and_never_equal(value: Any, seed: int) -> None:
    source = ParsedSource(f"é = {value!r}\n".encode())
    statement = source.tree.body[0]
    assert isinstance(statement, ast.Assign)
    for place in find_scalars(statement.value):
        edit = make_another(source, place, Random(seed), lambda _: True)
        if edit is None:
            assert isinstance(ast.literal_eval(place), str | bytes), "only a text of odd characters is left alone"
            continue
        new = ast.literal_eval(source.apply_edits([edit]).decode().partition("=")[2].strip())
        assert new != value
        assert type(new) is type(value) or value is None
        assert not hasattr(value, "__len__") or len(new) == len(value) or not value


VERSIONS = """
class Version:
    def __init__(self, major, minor, build):
        self.known, self.build = (major, minor), build

    def __eq__(self, other):
        if isinstance(other, str):
            other = parse(other)
        return self.known == ((other["major"], other["minor"]) if isinstance(other, dict) else other.known)


def parse(text):
    number, _, build = text.partition("+")
    return Version(*map(int, number.split(".")), build)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "assertion",
    [
        'parse("1.20+x") == {"major": 1, "minor": 20, "build": "x"}',
        '{"major": 1, "minor": 20, "build": "x"} == parse("1.20+x")',
        'parse("1.20+x") == "1.20+x"',
    ],
)
def test_who_heeds_a_part_of_what_is_expected_is_no_forger(assertion: str) -> None:
    code = f"from product import parse\ndef test_a(): assert {assertion}\n"
    made = of(tidy(code))
    for seed in range(60):
        source = made.falsify([f"{PATH}::test_a"], Random(seed))[PATH]
        assert not outcomes(source, VERSIONS)["test_a"], source.decode()
