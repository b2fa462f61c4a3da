"""The same data comes to the same sum in any process, and other data to another one; nothing of an object is called."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.challenge.compared_data import DEEPEST, MOST, DataSum


class Text(str):
    """Text that raises whatever is done with it."""

    __slots__ = ()

    def __str__(self) -> str:
        raise AssertionError("nothing of an object is called")

    __eq__ = __len__ = __iter__ = __repr__ = __str__  # type: ignore[assignment]
    __hash__ = str.__hash__


class Row(list):  # type: ignore[type-arg]
    """List that raises when it is looked into."""

    def __iter__(self) -> Any:
        raise AssertionError("nothing of an object is called")

    __len__ = __bool__ = __iter__


def add(*values: Any) -> DataSum:
    return reduce(DataSum.add, values, DataSum())


def nest(levels: int, inner: object) -> object:
    return reduce(lambda held, _: [held], range(levels), inner)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@given(st.lists(DATA, max_size=4).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_the_order_of_comparisons_does_not_matter(orders: tuple[list[Any], list[Any]]) -> None:
    assert add(*orders[0]) == add(*orders[1])


@given(DATA)
def test_a_value_more_is_another_sum(value: object) -> None:
    assert add(value).whole != add(value, value).whole
    assert add(value).kinds == add(value, value).kinds


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a", "b", "c"}, {"c", "b", "a"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ("<Row at 0x7f3a5c0b1d90>", "<Row at 0x7f12345b1d90>"),
        ("/tmp/a1/tests/data.txt:3", "/somewhere/else/data.txt:3"),  # noqa: S108  nothing is written there
        (Text("four"), "four"),
        (object(), Row([1])),
        (Row([1]), Row([2])),
        (nest(DEEPEST + 2, 1), nest(DEEPEST + 2, 2)),
        ([*range(MOST), 1], [*range(MOST), 2]),
    ],
    ids=lambda _: "",  # pytest would make a name of each
)
def test_what_says_the_same_has_the_same_sums(one: object, other: object) -> None:
    assert add(one) == add(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 2), ("a", "b"), ([1, 2], [2, 1]), ({"a": 1}, {"a": 2}), ({1}, {2}), (b"a", b"b"), (1.0, 1.5), ([1], (1, 1)),
     ([10**5000], [10**5001]),      ("/a/data.txt", "/a/other.txt"), (["text"], [None]), (True, False)],
)  # fmt: skip
def test_other_data_of_its_kind_has_another_sum_of_data_alone(one: object, other: object) -> None:
    assert add(one).whole != add(other).whole
    assert add(one).kinds == add(other).kinds


def pair_all(values: Iterable[object]) -> list[tuple[object, object]]:
    listed = list(values)
    return [(one, other) for n, one in enumerate(listed) for other in listed[n + 1 :]]


@pytest.mark.parametrize(("one", "other"), pair_all([None, ..., [], [1], "", "a", 3, object()]))
def test_data_of_another_kind_has_other_sums(one: object, other: object) -> None:
    assert add(one).whole != add(other).whole
    assert add(one).kinds != add(other).kinds


def test_another_process_comes_to_the_same_sum() -> None:
    code = "from jumar.child.challenge import compared_data; print(*compared_data.DataSum().add([{'a', 'b'}, (1.5,)]))"
    run = [sys.executable, "-c", code]
    said = {subprocess.run(run, check=True, text=True, capture_output=True).stdout for _ in range(2)}

    assert said == {"{} {} {}\n".format(*add([{"a", "b"}, (1.5,)]))}
