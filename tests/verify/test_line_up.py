"""Others beside what a test compares: an object that affirms those as well has affirmed nothing."""

from __future__ import annotations

import datetime as dt
import enum
import ipaddress
from collections.abc import Callable, Container
from decimal import Decimal
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.two_process.test_process.line_up import LineUp
from jumar.child.two_process.test_process.other_data import MADE_OF, draw_needles, draw_others
from support.judging.two_process_verifier import outcomes, run_bodies

DATA = st.recursive(
    st.booleans() | st.integers() | st.text() | st.binary() | st.dates() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=8,
)
"""Data that a test may compare with."""


class Lower:
    """Has all texts in small letters."""

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and text.islower()


class Fussy:
    """Refuses what it does not know."""

    def __contains__(self, text: object) -> bool:
        return bool({"abc": True}[str(text)])


class Letters:
    """Has each text of letters that it was given."""

    def __contains__(self, text: object) -> bool:
        return set(str(text)) <= set("green tea")


class Short:
    """Has each text of few letters."""

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and len(text) < 4


class Spoken:
    """Has each text in which vowels and other letters take turns."""

    def __contains__(self, text: object) -> bool:
        vowels = [letter in "aeiou" for letter in str(text)]
        return all(one is not other for one, other in pairwise(vowels))


class Small:
    """Has each number below a million."""

    def __contains__(self, number: Any) -> bool:
        return bool(number < 1e6)


class Forgetful:
    """Has what it is asked for first."""

    def __init__(self) -> None:
        self.asked = 0

    def __contains__(self, _: object) -> bool:
        self.asked += 1
        return self.asked == 1


class All:
    """Has whatever it is asked for."""

    def __contains__(self, _: object) -> bool:
        return True


def say(box: Any) -> Callable[[Any], Any]:
    return lambda one: one in box


def line_up() -> LineUp:
    return LineUp(lambda kind, *args: kind(*args), lambda: 0)


@pytest.mark.parametrize(
    ("box", "needle", "wrong"),
    [
        (Lower(), "abc", True),
        (Lower(), "a.b", True),
        (All(), "a", True),
        (All(), b"abc", True),
        (All(), 7, True),
        (All(), 0.5, True),
        (Letters(), "green", True),
        (Short(), "ab", True),
        (Spoken(), "banana", True),
        (Small(), 7, True),
        (Small(), 7.5, True),
        (range(-100, 100), 7, False),
        (All(), Decimal("1.5"), True),
        (All(), dt.date(2020, 1, 1), True),
        (All(), dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC), True),
        (All(), dt.time(5), True),
        (All(), "###", True),
        (Fussy(), "abc", False),
        (range(9), 3, False),
        ("the text", "text", False),
        ({"a", "b"}, "a", False),
        (["red", "green"], "green", False),
        (All(), (1, 2), True),
        (All(), {"a": 0.5}, True),
        ([(1, 2)], (1, 2), False),
        (All(), None, False),
        ([True], True, False),
        ([dt.date(2020, 1, 1)], dt.date(2020, 1, 1), False),
        ([(b"a", None)], (b"a", None), False),
        ([{1}], {1}, False),
    ],
)
def test_a_box_is_asked_for_others_that_look_alike(box: Container[Any], needle: Any, *, wrong: bool) -> None:
    why, has = line_up().look_into(box, needle, say, lambda: lambda one: one in box)
    assert (why != "") is wrong
    assert has in (None, True)


def test_who_has_the_first_text_alone_is_seldom_asked_for_that() -> None:
    def has() -> bool | None:
        box = Forgetful()
        return line_up().look_into(box, "abcd", say, lambda: box.__contains__)[1]

    heard = [has() for _ in range(60)]
    assert heard.count(False) > heard.count(True)


def test_a_box_that_is_asked_for_much_is_looked_into_ever_more_rarely() -> None:
    looking, asked = line_up(), list[Any]()
    for _ in range(400):
        looking.look_into([], "abcd", say, lambda: asked.append)
    often = len(asked)
    looking.begin_test()
    looking.look_into([], "abcd", say, lambda: asked.append)
    assert often < 400
    assert len(asked) > often


@pytest.mark.parametrize(
    ("equals", "wrong"),
    [
        (lambda _: True, True),
        (lambda other: type(other) is str, True),
        (lambda other: len(other) == 11, True),
        (lambda other: other == "hello-world", False),
        (lambda other: other.casefold() == "hello-world", False),
        (lambda other: {"hello-world": True}[other], False),
    ],
)
def test_who_is_equal_to_others_as_well_is_found(equals: Callable[[Any], bool], *, wrong: bool) -> None:
    why, holds = line_up().compare("__eq__", object(), "hello-world", lambda _, __, other: equals(other))
    assert (why != "") is wrong
    assert holds is True


@pytest.mark.parametrize(("held", "wrong"), [(("__lt__",), False), (("__lt__", "__gt__"), True), ((), False)])
def test_an_order_that_holds_both_ways_is_none(held: tuple[str, ...], *, wrong: bool) -> None:
    why, holds = line_up().compare("__lt__", object(), "b", lambda _, name, __: name in held)
    assert (why != "") is wrong
    assert holds is ("__lt__" in held)


@pytest.mark.parametrize(
    ("name", "holds", "wrong"),
    [
        ("__gt__", lambda other: other < 2048, False),
        ("__gt__", lambda _: True, True),
        ("__le__", lambda other: other > 5, False),
        ("__le__", lambda other: other > -(10**20), True),
    ],
)
def test_who_is_beyond_all_numbers_is_found(name: str, holds: Callable[[Any], bool], *, wrong: bool) -> None:
    why, held = line_up().compare(name, object(), 2000, lambda _, asked, other: asked == name and holds(other))
    assert (why != "") is wrong
    assert held is True


@pytest.mark.parametrize(
    ("equals", "wrong", "holds"),
    [
        (lambda one, other: one.args == other.args, False, True),
        (lambda _, __: True, True, True),
        (lambda one, other: one is other, False, False),
    ],
)
def test_an_object_that_a_test_made_is_made_again_and_otherwise(
    equals: Callable[[Any, Any], bool], *, wrong: bool, holds: bool
) -> None:
    class Made:
        def __init__(self, args: Any, _: Any = None) -> None:
            self.args = args

    one, other = Made(("a", 5)), Made(("a", 5))
    for made in (one, other):
        vars(made).update({"_jumar_thing": True, MADE_OF: (made.args, {}, 0)})
    why, held = line_up().compare("__eq__", one, other, lambda left, _, right: equals(left, right))
    assert (why != "") is wrong
    assert held is holds


class Made:
    """Made of what a test gives; *order* has all of them as they were made."""

    order: ClassVar[list[Made]] = []

    def __init__(self, args: Any, words: Any) -> None:
        if args == ("odd",) or (args and args[0] not in ("a", "b") and words.get("fussy")):
            raise ValueError(args)
        self.args = args
        self.order.append(self)
        vars(self).update({"_jumar_thing": True, MADE_OF: (args, words, 0)})


def compare_made(looking: LineUp, equals: Callable[[Made, Made], bool], args: Any, words: Any = None) -> str:
    one, other = Made(args, words or {}), Made(args, words or {})
    return looking.compare("__eq__", one, other, lambda left, _, right: equals(left, right))[0]


def test_who_is_made_last_is_not_who_is_meant() -> None:
    found = [compare_made(line_up(), lambda _, right: right is not Made.order[-1], ("a",)) for _ in range(20)]
    assert all(found), "all others are made before one is asked about"


def test_what_is_made_of_things_is_made_again_of_others() -> None:
    assert compare_made(line_up(), lambda _, __: True, (Made(("a", 5), {}), Made(("b", 6), {})))
    same = compare_made(line_up(), lambda left, right: left.args[0].args == right.args[0].args, (Made(("a", 5), {}),))
    assert not same


def test_where_no_other_can_be_made_those_of_the_tests_are_asked_about() -> None:
    looking, fussy = line_up(), {"fussy": "yes"}
    assert not compare_made(looking, lambda _, __: True, ("a",), fussy), "there is none: who is fussy is believed"
    for args in (("a", 1), ("b",)):
        looking.note_made(Made, args, fussy)
    assert not compare_made(looking, lambda _, __: True, ("a",), fussy), (
        "they may be equal, as two names of a thing are"
    )
    looking.note_made(Made, ("b", 2), fussy)
    assert compare_made(looking, lambda _, __: True, ("a",), fussy)
    assert not compare_made(looking, lambda left, right: left.args == right.args, ("a",), fussy)


@pytest.mark.parametrize(
    ("equals", "wrong"),
    [(lambda other: sorted(other) == [1, 2, 3], True), (lambda other: set(other) <= {1, 2, 3}, True),
     (lambda other: other == [3, 1, 2], False)],
)  # fmt: skip
def test_what_stands_otherwise_is_another_list(equals: Callable[[Any], bool], *, wrong: bool) -> None:
    why, _ = line_up().compare("__eq__", object(), [3, 1, 2], lambda _, __, other: equals(other))
    assert (why != "") is wrong


class Colour(enum.Enum):
    """Of the tests."""

    RED = 1
    BLUE = 2


class Card(NamedTuple):
    """Of the tests."""

    suit: str
    rank: int


ADDRESS = ipaddress.ip_address("10.1.2.3")


@pytest.mark.parametrize(
    ("due", "equals"),
    [
        ({"a": 1, "b": 2}, lambda other: sorted(other.values()) == [1, 2]),
        ([[1], [2, 3]], lambda other: [*chain(*other)] == [1, 2, 3]),
        (3.0, lambda other: abs(other - 3.0) < 4),
        (dt.date(2024, 5, 6), lambda other: abs((other - dt.date(2024, 5, 6)).days) < 4),
        (ADDRESS, lambda other: other.is_private),
        (Colour.RED, lambda other: other.value < 10),
        (Card("hearts", 3), lambda other: other.rank < 10),
        (PurePosixPath("/home/ann/files"), lambda other: "ann" in other.parts),
    ],
)
def test_who_is_equal_to_what_is_near_or_stands_elsewhere_is_found(due: Any, equals: Callable[[Any], bool]) -> None:
    def compare(rule: Callable[[Any], bool]) -> tuple[str, bool | None]:
        return line_up().compare("__eq__", object(), due, lambda _, __, other: rule(other))

    assert compare(equals)[0]
    assert compare(lambda other: other == due) == ("", True)


class Span:
    """A container from one end to another; a *loose* one has whatever it is asked for."""

    loose = False

    def __init__(self, args: Any, words: Any) -> None:
        self.low, self.high = args
        vars(self).update({"_jumar_thing": True, MADE_OF: (args, words, 0)})

    def __contains__(self, one: Any) -> bool:
        return self.loose or self.low <= one <= self.high


class Loose(Span):
    """Has whatever it is asked for."""

    loose = True


@pytest.mark.parametrize(("kind", "wrong"), [(Span, False), (Loose, True)])
@pytest.mark.parametrize(
    "ends", [(dt.timedelta(1), dt.timedelta(3)), (Card("a", 1), Card("z", 1)), (ADDRESS, ADDRESS + 9)]
)
def test_a_box_is_made_otherwise_where_nothing_else_can_be_asked_for(
    kind: type[Span], ends: Any, *, wrong: bool
) -> None:
    box, looking = kind(ends, {}), line_up()
    looking.note_made(kind, (dt.timedelta(70), dt.timedelta(71)), {})
    why, has = looking.look_into(box, ends[0], say, lambda: box.__contains__)
    assert (why != "") is wrong
    assert has is True


class Circle(Span):
    """A disc of a radius around nothing, or with *flags* alone, a set of words that it has anyway."""

    def __init__(self, args: Any, words: Any) -> None:
        super().__init__((0, args[0]), words)
        vars(self)[MADE_OF] = (args, words, 0)

    def __contains__(self, one: Any) -> bool:
        return one == "word" or (type(one) is int and one**2 <= self.high**2)


@pytest.mark.parametrize(
    ("args", "needle", "wrong"), [((3,), 2, False), ((True,), "word", False), ((3,), "word", True)]
)
def test_a_box_that_has_it_anyway_is_believed_if_it_is_made_of_flags(args: Any, needle: Any, *, wrong: bool) -> None:
    box = Circle(args, {})
    why, has = line_up().look_into(box, needle, say, lambda: box.__contains__)
    assert (why != "") is wrong
    assert has is True


class Room:
    """A container that has what is not below nothing, and of which few others can be made: no number is beyond ten."""

    def __init__(self, args: Any, words: Any) -> None:
        if any(abs(one.args[1]) > 10 for one in (*args, *words.values())):
            raise ValueError(args)
        vars(self).update({"_jumar_thing": True, MADE_OF: (args, words, 0)})

    def __contains__(self, one: Any) -> bool:
        return bool(one.args[1] >= 0)


@pytest.mark.parametrize("named", [False, True])
def test_a_box_that_was_made_of_things_is_made_of_others(*, named: bool) -> None:
    corner = Made(("a", 5), {})
    box = Room((), {"low": corner}) if named else Room((corner,), {})
    assert line_up().look_into(box, Made(("a", 5), {}), say, lambda: box.__contains__)[0]


@given(DATA, st.integers(0, 1000))
def test_others_are_of_the_same_type_and_other(value: Any, seed: int) -> None:
    assert all(type(other) is type(value) and other != value for other in draw_others(value, Random(seed)))


@pytest.mark.parametrize(
    "value",
    [
        Decimal("1.5"), dt.date(2020, 2, 29), dt.timedelta(seconds=1), {"a": [1, 2]}, {3}, [dt.date.max, "a"],
        dt.date.min, [ipaddress.ip_address("255.255.255.255"), 1], [Decimal("NaN"), 1], float("inf"), ADDRESS,
    ],
)  # fmt: skip
def test_there_are_others_of_each_kind_of_data(value: Any) -> None:
    assert draw_others(value, Random(1))


@pytest.mark.parametrize("value", [None, object(), [], [None], {}])
def test_of_what_holds_no_data_there_are_no_others(value: Any) -> None:
    assert not draw_others(value, Random(1))
    assert not draw_needles(value, Random(1))


PRODUCT = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

class Node:
    pass

class Bag:
    def __init__(self, *held):
        self.held, self.hits = held, 0

    def __contains__(self, one):
        self.hits += one in self.held
        return one in self.held

class Half:
    def __contains__(self, point):
        return point.x >= 0

class First:
    def __init__(self):
        self.asked = 0

    def __contains__(self, _):
        self.asked += 1
        return self.asked == 1

class Rows(set):
    def __contains__(self, row):
        return len(row) == 2

class Counted:
    made = {}

    def __init__(self, x):
        self.x = x
        self.made[x] = self.made.get(x, 0) + 1

    def __eq__(self, other):
        return self.made[self.x] > 1 and self.made[other.x] > 1

class Any:
    def __contains__(self, _):
        return True
"""
"""Containers, of which some affirm what they should not."""

BODIES = [
    "assert (1, 2) in Bag((1, 2)) and (1, 3) not in Bag((1, 2))",
    "assert Point(1, 2) in Bag(Point(1, 2)) and Point(1, 3) not in Bag(Point(1, 2))",
    "assert Point(1, 2) in Half()",
    "bag = Bag('text')\n    assert 'text' in bag and bag.hits == 1",
    "node = Node()\n    assert node in Bag(node) and Node() not in Bag(node)",
    "assert 'text' in Any()",
    "assert (1, 2) in Any()",
    "assert Point(1, 2) in Any()",
    "assert 'text' in First() and 'text' in First() and 'text' in First() and 'text' in First()",
    "assert [1, 2] in Rows()",
    "assert Counted(1) == Counted(1)",
]


@pytest.mark.slow
def test_a_container_that_a_test_made_is_believed_if_it_has_what_is_meant_alone(tmp_path: Path) -> None:
    report = run_bodies(tmp_path, PRODUCT, "from product import *", BODIES)

    assert list(outcomes(report).values()) == ["passed"] * 5 + ["failed"] * 6
