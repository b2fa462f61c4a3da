"""Comparisons of tests: an object that may decide one is seen wherever it stands; what is right is never refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.child.challenge.current_test import MOST_LOOKED_AT, SEARCHED, CurrentTest
from jumar.child.challenge.deciding import MOST, TOO_MUCH, find_deciding, measure_plain
from support.judging.run_falsified_suite import learn, outcomes, tidy

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
    "if Equal() != same([1, 2]): raise AssertionError",
    "if not Equal() == 'ab' or 'words' not in Text('nothing'): raise AssertionError",
]
"""Assertions that hold for things which affirm all they are asked."""


@pytest.mark.slow
@pytest.mark.parametrize("assertion", AFFIRMED)
@pytest.mark.parametrize("unit", [False, True])
def test_who_affirms_everything_passes_what_is_false(assertion: str, unit: bool) -> None:  # noqa: FBT001  a parameter of the test
    code = f"from product import Always, Equal, Number, Text\ndef test_a():\n    {assertion}\n"
    code = tidy(_in_unittest(code) if unit else code)
    assert all(outcomes(code).values()), "it does look right"

    found = [next(iter(learn(code, seed).values())) for seed in range(20)]

    assert all(one.partial for one in found)
    assert all(one.lying and one.passed for one in found)


def _in_unittest(code: str) -> str:
    """As a `TestCase` says it."""
    head, _, body = code.partition("def test_a():\n")
    lines = [f"    {line}\n" for line in body.splitlines()]
    said = "".join(lines).replace("raise AssertionError", "self.fail()")
    said = f"{said.rstrip().replace('assert ', 'self.assertTrue(')})\n" if "assert " in said else said
    for written, name in (("==", "Equal"), (" in ", "In"), (">", "Greater"), ("<=", "LessEqual"), ("<", "Less")):
        left, _, right = said.rpartition("self.assertTrue(")
        if left and written in right:
            said = f"{left}self.assert{name}({right.replace(written, ',', 1)}"
            break
    return f"{head}class TestIt(unittest.TestCase):\n    def test_a(self):\n{said}"


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

KINDS = {
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

RIGHT = {"Dict": "{'a': 97}", "Count": "97", "Shown": "'***'", "Full": "['a']", "Above": "{1, 2}"}
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
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "an order in a loop"])
def test_who_affirms_everything_is_found_out_wherever_it_stands(kind: str) -> None:
    lying, right = (_write(KINDS[kind], values) for values in (LYING, RIGHT))
    assert outcomes(lying, LIARS) == outcomes(right, LIARS) == {"test_a": True}, "it does look right"

    for seed in range(4):
        assert learn(lying, seed, falsified=bool(seed % 2), more=LIARS)["test_a"].partial
        one = learn(right, seed, falsified=bool(seed % 2), more=LIARS)["test_a"]
        assert (one.passed, one.partial, one.lying) == (not seed % 2, False, False)


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
    "an object that is equal to itself alone": "one = product.Node(product.Liar()); assert one in [one]",
    "a helper that is stricter": "assert is_same(same([0, 1]), [*range(2)])",
}
"""A test that leaves out nothing."""


LIBRARY = """
class testing:
    assert_equal = staticmethod(lambda a, b: None)
def find(*args, **words): pass
class Node:
    def __init__(self, held): self.held = held
class Liar:
    __eq__ = lambda s, o: True
    __hash__ = None
"""
HEAD = """
import math
import operator
import sys
import product
from product import testing
from operator import eq
from unittest import mock
def is_same(a, b): return a == b
def like(a, b): return a == b
def check(a): assert like(a, sum([1]))
def is_one(a):
    match a:
        case 1: return True
"""


def _is_partial(body: str, given: str = "") -> bool:
    code = tidy(f"{HEAD}def test_a():\n    assert same(3) == 3\n    {given or body}\n")
    return any(learn(code, seed, more=LIBRARY + LIARS)["test_a"].partial for seed in range(4))


LEFT = (
    "a function of operator", "an imported function of operator", "what a difference leaves",
    "what is left of a number", "a pattern in a helper", "a method that an operator calls",
    "an assertion of a library",
)  # fmt: skip
"""Those of which a liar is not found out: a test that hands one to them is not proved."""


@pytest.mark.parametrize("kind", LEFT)
def test_a_comparison_that_nobody_can_ask_is_known(kind: str) -> None:
    body = PARTIAL[kind]
    for right in ("same([0, 1])", "same({1})", "same(1)", "same(1.5)"):
        body = body.replace(right, "Liar()")
    code = tidy(f"{HEAD}from product import Liar\ndef test_a():\n    assert same(3) == 3\n    {body}\n")
    liar = "__sub__ = __rsub__ = lambda s, o: 0\n    __eq__ = lambda s, o: True\n    __hash__ = None\n"

    assert learn(code, 1, falsified=False, more=f"{LIBRARY}class Liar:\n    {liar}")["test_a"].partial


@pytest.mark.slow
@pytest.mark.parametrize("kind", WHOLE)
def test_what_nothing_of_the_code_under_test_decides_is_left_as_it_is(kind: str) -> None:
    assert not _is_partial(WHOLE[kind])


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
def test_who_is_odd_and_honest_is_no_liar(assertion: str) -> None:
    code = tidy(f"from product import beginning, digits, even, folded, number\ndef test_a(): {assertion}\n")
    for seed in range(60):
        one = learn(code, seed, falsified=bool(seed % 2), more=ODD_ORDERS)["test_a"]
        assert (one.passed, one.lying) == (not seed % 2, False)


VALUES_OF_ALL_KINDS = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.none(),
    st.booleans(), st.complex_numbers(max_magnitude=99),
    st.lists(st.integers()), st.tuples(st.text()), st.dictionaries(st.text(), st.none()), st.sets(st.integers()),
    st.fractions(), st.decimals(allow_nan=False), st.dates(), st.timedeltas(),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None)
@given(VALUES_OF_ALL_KINDS, st.integers(0, 1000))
def test_every_value_stands_what_it_is_asked(value: Any, seed: int) -> None:
    code = "from product import VALUE\ndef test_a(): assert VALUE == VALUE\n"
    code += "def test_b(): assert all(x == VALUE for x in [VALUE])\n"
    more = "import datetime\nfrom decimal import Decimal\nfrom fractions import Fraction\ninf = float('inf')\n"
    for one in learn(code, seed, falsified=bool(seed % 2), more=f"{more}VALUE = {value!r}\n").values():
        assert (one.passed, one.partial, one.lying) == (not seed % 2, False, False)


def test_what_combines_conditions_gets_its_own_objects() -> None:
    query = "class Query:\n    __eq__ = lambda s, o: Asked()\n    __hash__ = None\n"
    query += "class Asked: pass\ndef find(q): return type(q)\n"
    code = "from product import Asked, Query, find\ndef test_a():\n    q = same(Query()) == 3\n"

    one = learn(tidy(f"{code}    assert find(q) is Asked\n"), 1, falsified=False, more=query)["test_a"]

    assert (one.passed, one.partial, one.lying) == (True, True, False)


def test_who_counts_what_it_is_asked_is_asked_no_more_where_it_is_asserted() -> None:
    more = "asked = []\nclass Count:\n    def __eq__(self, other):\n        asked.append(other)\n"
    more += "        return len(asked) == 1\n"
    test = "def test_a():\n    assert Count() == 3\n    assert len(asked) == 1\n"

    assert learn(tidy(f"from product import Count, asked\n{test}"), 1, falsified=False, more=more)["test_a"].passed


def test_nothing_is_noted_while_a_file_is_loaded() -> None:
    code = "from product import Equal\nLOADED = Equal() == same([1])\ndef test_a(): assert LOADED\n"

    assert learn(tidy(code), 1, falsified=False)["test_a"] == (True, False, False, False, False)


CHAINS = """
def kind(s): return "long" if "" != s != s[0] else "short"
class Rows:
    rows = [[], [1, 2], [1, 1]]
    found = [r for r in [r for r in rows if 0 < len(r) == 1 + r[0]] if 0 < len(r) != r[0] + 1 - 1]
def test_a():
    assert same(3) == 3
    assert kind(same("")) == "short"
    assert kind(same("ab")) == "long"
    assert [len(r) for r in Rows.rows if 0 < len(r) == r[0] + 1] == [2, 2]
    assert Rows.found == [[1, 2], [1, 1]]
    found, rest = [], iter([5, 6])
    while not found or 1 < len(found) < (n := next(rest)):
        found.append(2 < 1 < next(rest))
    assert (found, [*rest]) == ([False], [5, 6])
"""


def test_a_chain_goes_no_further_than_it_holds() -> None:
    for seed in range(4):
        assert learn(tidy(CHAINS), seed, falsified=False)["test_a"] == (True, False, False, False, False)


HIGHEST = """
class Top:
    def __gt__(self, other): return not isinstance(other, Top)
    def __lt__(self, other): return False
    def __ge__(self, other): return True
    def __le__(self, other): return isinstance(other, Top)
"""
ABOVE = ("assert Top() > 10**9", "assert 5 < Top()", "assert Top() >= same(3)", "assert 'z' < Top()")


@pytest.mark.parametrize("assertion", ABOVE)
def test_the_highest_of_all_is_odd_and_no_liar(assertion: str) -> None:
    code = tidy(f"from product import Top\ndef test_a(): {assertion}\n")
    for seed in range(8):
        one = learn(code, seed, falsified=bool(seed % 2), more=HIGHEST)["test_a"]
        assert (one.passed, one.partial, one.lying) == (not seed % 2, True, False)


FULL = """
class Complement:
    def __contains__(self, item): return item != 1
class Between:
    def __contains__(self, item): return "a" <= item <= "c"
class Field:
    def __eq__(self, other): return ["built", other]
    __hash__ = None
AGE = Field()
"""
CONTAINED = ("assert 3 in Complement()", "assert 'b' in Between()", "assert AGE in [AGE, Field()]")


@pytest.mark.parametrize("assertion", CONTAINED)
def test_who_contains_next_to_everything_is_no_liar(assertion: str) -> None:
    code = tidy(f"from product import AGE, Between, Complement, Field\ndef test_a(): {assertion}\n")
    for seed in range(8):
        one = learn(code, seed, falsified=bool(seed % 2), more=FULL)["test_a"]
        assert (one.passed, one.partial, one.lying) == (not seed % 2, True, False)


MATCHERS = """
import re
class IsInt:
    def __eq__(self, other): return type(other) is int
class Near:
    def __eq__(self, other): return abs(100 - other) <= 50
class Letters:
    def __eq__(self, other): return bool(re.fullmatch("[a-z]+", other))
"""
MATCHED = ("assert 5 == IsInt()", "assert Near() == 100", "assert {'a': 'word'} == {'a': Letters()}")


@pytest.mark.parametrize("assertion", MATCHED)
def test_who_stands_for_all_of_a_kind_is_no_liar(assertion: str) -> None:
    code = tidy(f"from product import IsInt, Letters, Near\ndef test_a(): {assertion}\n")
    for seed in range(8):
        one = learn(code, seed, falsified=bool(seed % 2), more=MATCHERS)["test_a"]
        assert (one.passed, one.partial, one.lying) == (not seed % 2, True, False)
        assert one.affirming is bool(seed % 2), "but what is wrong holds for it, too"


EXACT = """
class Money:
    def __init__(self, amount): self.amount = amount
    def __eq__(self, other): return self.amount == getattr(other, "amount", other)
    def __contains__(self, coin): return coin == self.amount
"""
EQUAL = ("assert Money(5) == 5", "assert same([1, 2]) == [Money(1), Money(2)]", "assert 5 in Money(5)")
UNASKED = ("assert Money(5) == Money(5)", "assert same(5) == 5", "assert Money(5) != 6")


@pytest.mark.parametrize("assertion", [*EQUAL, *UNASKED])
def test_who_is_equal_to_what_is_right_alone_affirms_nothing_wrong(assertion: str) -> None:
    code = tidy(f"from product import Money, same\ndef test_a(): {assertion}\n")
    for seed in range(8):
        assert not learn(code, seed, falsified=bool(seed % 2), more=EXACT)["test_a"].affirming


KINDS_OF_VALUES = """
import collections, datetime, enum
def everything(name, is_one, base=object):
    return type(name, (base,), {"__eq__": lambda s, o: is_one(o), "__hash__": None})
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
Small = everything("Small", lambda o: type(o) is int and 0 <= o < 60)
Texts = everything("Texts", lambda o: isinstance(o, set) and all(isinstance(x, str) for x in o))
Day = everything("Day", lambda o: isinstance(o, datetime.date) and 2000 < o.year < 2100)
Marks = everything("Marks", lambda o: isinstance(o, str) and not any(c.isalpha() for c in o), str)
Counts = everything("Counts", lambda o: type(o) is collections.Counter)
Bits = everything("Bits", lambda o: isinstance(o, list) and all(x in (0, 1) for x in o))
Word = everything("Word", lambda o: o in ("Fizz", "Buzz", "FizzBuzz"), str)
Shade = everything("Shade", lambda o: isinstance(o, Colour))
Near = everything("Near", lambda o: "approx" in type(o).__name__.lower() and abs(o.expected) < 100)
One = type("One", (), {"__eq__": lambda s, o: 1, "__hash__": None})
class Once:
    asked = 0
    def __eq__(self, other):
        self.asked += 1
        if self.asked > 1: raise SystemExit
        return True
class Around(float):
    __le__ = __ge__ = lambda s, o: abs(o) < 1e300
"""
EQUAL_TO_A_KIND = (
    "assert Small() == 3", "assert Texts() == {'a', 'b'}", "import datetime; assert Day() == datetime.date(2024, 5, 3)",
    "assert Marks() == '.-'", "import collections; assert Counts() == collections.Counter('aab')",
    "assert Bits() == [0, 1, 1]", "assert Word() == 'Fizz'; assert Word() == 'Buzz'; assert Word() == 'FizzBuzz'",
    "assert Shade() == Colour.RED", "assert Near() == pytest.approx(1.5)", "assert [One()] == [sum([3])]",
    "assert One() in (sum([1]), 2)", "assert Once() == sum([1])", "assert 3.1 <= Around(0) <= 3.2",
    "assert [One()] * 600 == list(range(600))",
)  # fmt: skip
"""Assertions that hold for an object which is equal to everything of a kind."""


@pytest.mark.slow
@pytest.mark.parametrize("assertion", EQUAL_TO_A_KIND)
def test_who_is_equal_to_all_of_a_kind_leaves_a_test_unproved(assertion: str) -> None:
    names = "Around, Bits, Colour, Counts, Day, Marks, Near, Once, One, Shade, Small, Texts, Word"
    code = tidy(f"from product import {names}\ndef test_a():\n    assert same(3) == 3\n    {assertion}\n")
    assert outcomes(code, KINDS_OF_VALUES) == {"test_a": True}, "it does look right"

    assert all(learn(code, seed, more=KINDS_OF_VALUES)["test_a"].partial for seed in range(4))


SWALLOWING = """
class Calm:
    def __enter__(self): return self
    def __exit__(self, kind, *rest): return kind is AssertionError or kind is KeyError
def lost(): raise KeyError
import contextlib
def hushed(): return contextlib.suppress(AssertionError)
"""
SWALLOWED = (
    "assert 'wrong'.startswith('no')", "assert isinstance(3, str)", "assert []", "lost(); assert same(1) == 2",
    "pytest.raises(KeyError).__enter__(); assert not 3", "unittest.TestCase().assertEqual(1, 2)",
)  # fmt: skip


@pytest.mark.parametrize("assertion", SWALLOWED)
def test_what_a_context_of_the_code_under_test_swallows_is_not_proved(assertion: str) -> None:
    code = f"def test_a():\n    assert same(3) == 3\n    with Calm(): {assertion}\n"

    one = learn(tidy(f"from product import Calm, lost\n{code}"), 1, falsified=False, more=SWALLOWING)["test_a"]

    assert (one.passed, one.partial) == (True, True)
    for context in ("hushed()", "stack"):
        head = "import contextlib\nfrom product import Calm, hushed\n"
        body = code.replace("Calm()", context).replace(assertion, "assert same(1) == 2")
        entered = body.replace(
            "    with stack", "    stack = contextlib.ExitStack()\n    stack.enter_context(hushed())\n    with stack"
        )
        assert learn(tidy(head + entered), 1, falsified=False, more=SWALLOWING)["test_a"].partial
    meant = code.replace("Calm()", "contextlib.suppress(KeyError)").replace(assertion, "lost()")
    head = "import contextlib\nfrom product import lost\n"
    assert not learn(tidy(head + meant), 1, falsified=False, more=SWALLOWING)["test_a"].partial
    right = code.replace(assertion, "assert same(1) == 1")
    assert not learn(tidy(f"from product import Calm\n{right}"), 1, more=SWALLOWING)["test_a"].partial


REPLACING = """
def run(done):
    try: done()
    except AssertionError: raise KeyError("done")
def refuse(done): raise KeyError("refused")
def tell(done): done()
def swallow(done):
    try: done()
    except BaseException: pass
def assert_known(name): raise KeyError(name)
"""
REPLACED = {
    "with pytest.raises(KeyError): run(fails)": True,
    "with unittest.TestCase().assertRaises(KeyError): run(fails)": True,
    "with pytest.raises(KeyError): refuse(fails)": False,
    "with pytest.raises(AssertionError): tell(fails)": False,
    "with pytest.raises(KeyError): assert_known('a')": False,
    "swallow(fails)\n    with pytest.raises(AssertionError): tell(fails)": True,
    "swallow(refuses)": True,
    "swallow(raises)": True,
    "swallow(list)": False,
}


@pytest.mark.parametrize("statement", REPLACED)
def test_an_error_in_the_place_of_an_assertion_that_failed_proves_nothing(statement: str) -> None:
    head = "import unittest, pytest\nfrom product import assert_known, refuse, run, swallow, tell\n"
    head += "def fails(): assert same(1) == 2\n"
    head += "def refuses():\n    if same(1):\n        same(2)\n        pytest.fail('it is')\n"
    head += "def raises(): raise AssertionError('it is')\n"
    code = tidy(f"{head}def test_a():\n    {statement}\n")
    assert outcomes(code, REPLACING) == {"test_a": True}

    one = learn(code, 1, falsified=False, more=REPLACING)["test_a"]

    assert one.partial is REPLACED[statement]


FIELDS = """
class Everything:
    __eq__ = lambda s, o: True
    __hash__ = None
"""
HELD = (
    "Held = dataclasses.make_dataclass('Held', ['a'], namespace={'__slots__': ('a',)})",
    "class Held(collections.UserDict):\n    def __init__(self, a): super().__init__(a=a)",
    "def Held(a): return types.MappingProxyType({'a': a})",
    "def Held(a): return slice(a, a)",
    "KEPT = []\ndef Held(a): KEPT.append(a); return a if type(a) is int else weakref.proxy(a)",
    "class Held:\n    def __init__(self, a): self.a = a\n    def __eq__(self, other): return vars(self) == vars(other)",
)


@pytest.mark.parametrize("held", HELD)
def test_what_holds_an_object_of_the_code_under_test_is_not_taken_for_plain(held: str) -> None:
    head = f"import collections, dataclasses, types, weakref\nfrom product import Everything\n{held}\n"
    code = tidy(f"{head}def test_a():\n    assert same(3) == 3\n    assert Held(Everything()) == Held(3)\n")
    assert outcomes(code, FIELDS) == {"test_a": True}, "it does look right"

    found = [learn(code, seed, more=FIELDS)["test_a"] for seed in range(6)]

    assert all(one.partial for one in found)


class Word(str):
    """A text with an equality of its own."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


PLAINLY: dict[str, tuple[Any, int]] = {
    "a number": (3, 1),
    "a list": ([1, "a", None], 4),
    "keys and values": ({"a": 1, "b": [1, 2]}, 7),
    "deep": ([[1], [[2.0]], ()], 7),
    "a word": (Word(), -1),
    "a word among others": ([1, [2], Word(), 3], -5),
    "a word under a name": ({"a": Word()}, -2),
}


@pytest.mark.parametrize("kind", PLAINLY)
def test_what_is_looked_at_is_counted(kind: str) -> None:
    value, count = PLAINLY[kind]

    assert measure_plain(value) == count
    assert bool(find_deciding(value, lambda kind: kind is Word)) == (count < 0)


def test_many_small_comparisons_are_all_looked_at() -> None:
    test = CurrentTest(falsified=False)

    assert not any(test.find_deciding([1, "a"], lambda _: True) for _ in range(20_000))


@pytest.mark.slow
def test_a_test_that_compares_much_is_not_looked_at_for_ever() -> None:
    test, looked, many = CurrentTest(falsified=False), list[Any](), dict.fromkeys(range(10_000), Word())

    def decides(kind: type) -> bool:
        looked.append(kind)
        return False

    found = [test.find_deciding(many, decides) for _ in range(5_000)]

    assert all(one == [TOO_MUCH] for one in found)
    assert len(looked) < 10 * MOST * MOST_LOOKED_AT / SEARCHED
    assert test.find_deciding([1], decides) == [TOO_MUCH]
    word = Word()
    assert test.find_deciding(word, lambda kind: kind is Word)[0] is word
