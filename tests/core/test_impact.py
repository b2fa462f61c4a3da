"""Selection by coverage: regions of edits, carried to the tree of the map, and the tests that ran them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.gate.impact import RanLines, carry_region, find_impacted, find_region, find_regions, match_ids

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=12)

#  1 import os        4 def g(x):
#  2 def f(x):        5     if x:
#  3     return x     6         return 1
#                     7     return 2
RAN = RanLines(
    tests={"t::f": frozenset({3}), "t::one": frozenset({5, 6}), "t::two": frozenset({5, 7})},
    imported=frozenset({1, 2, 4}),
)


@pytest.mark.parametrize(
    ("region", "found"),
    [
        (range(3, 4), {"t::f"}),
        (range(6, 7), {"t::one"}),
        (range(7, 8), {"t::two"}),
        (range(5, 6), {"t::one", "t::two"}),
        (range(6, 8), {"t::one", "t::two"}),
        (range(5, 7), {"t::one", "t::two"}),
        (range(2, 3), set(RAN.tests)),  # a signature: whoever calls it
        (range(1, 2), set(RAN.tests)),
        (range(9, 10), {"t::two"}),  # behind the last line that ran
    ],
)
def test_an_edit_has_an_effect_on_the_tests_that_ran_its_lines(region: range, found: set[str]) -> None:
    assert find_impacted(RAN, region) == found


@given(TEXTS, TEXTS)
def test_outside_of_the_region_both_texts_are_the_same(before: list[bytes], after: list[bytes]) -> None:
    region = find_region(before, after)
    inside = range(max(1, region.start), min(len(before), region.stop - 1) + 1)
    behind = len(before) - inside.stop + 1

    assert before[: inside.start - 1] == after[: inside.start - 1]
    assert behind <= 0 or before[-behind:] == after[-behind:]
    assert region or before == after


@given(TEXTS, TEXTS)
def test_a_line_in_no_region_was_kept(before: list[bytes], after: list[bytes]) -> None:
    edited = {n for region in find_regions(before, after) for n in region}
    kept = [line for n, line in enumerate(before, 1) if n not in edited]
    rest = iter(after)

    assert all(line in rest for line in kept)  # in their order
    assert bool(edited) == (before != after)


def test_each_edit_of_a_file_is_a_region() -> None:
    before = [b"%d" % n for n in range(1, 11)]
    after = [b"1", b"two", *before[2:7], b"new", *before[7:]]

    assert find_regions(before, after) == [range(2, 3), range(7, 9)]
    assert find_regions([b"x"] * 500, [b"y"] * 500) == [range(1, 501)]


@given(TEXTS, TEXTS, st.integers(0, 12), st.integers(1, 4))
def test_a_line_that_is_still_there_is_found_where_it_was(
    origin: list[bytes], now: list[bytes], at: int, size: int
) -> None:
    """Lines outside of the edit are carried exactly; new ones cover what they replaced."""
    region, edited = range(at + 1, at + 1 + size), find_region(now, origin)
    carried = carry_region(region, now, origin)

    assert len(carried) >= 1
    outside = [n for n in region if n <= len(now) and n not in edited]
    moved = {n: n if n < edited.start else n + len(origin) - len(now) for n in outside}
    assert all(new in carried and origin[new - 1] == now[n - 1] for n, new in moved.items())


@given(TEXTS, st.integers(0, 12))
def test_a_text_that_did_not_change_is_its_own_origin(text: list[bytes], at: int) -> None:
    region = range(at + 1, at + 2)

    carried = carry_region(region, text, text)

    assert set(region) <= set(carried)


def test_an_id_without_parameters_stands_for_its_family() -> None:
    found = frozenset({"t.py::a[1]", "t.py::b"})

    assert match_ids(["t.py::a", "t.py::b", "t.py::c", "t.py::a[1]", "t.py::a[2]"], found) == (
        "t.py::a",
        "t.py::b",
        "t.py::a[1]",
    )
