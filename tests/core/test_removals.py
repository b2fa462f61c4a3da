"""Which files of the best tree a candidate deletes: a table, and random runs against trees as dictionaries."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.events import Write
from jumar.core.state.removals import Removals, apply_write, mark_kept, mark_reverted

A, B = "a" * 64, "b" * 64
Step = tuple[str, str, str]
"""A path, and the hashes of its bytes before and after."""

TABLE: dict[str, tuple[tuple[Step, ...], tuple[str, ...]]] = {
    "nothing was written": ((), ()),
    "a file is deleted": ((("x", A, ""),), ("x",)),
    "it is changed first": ((("x", A, B), ("x", B, "")), ("x",)),
    "it is made again": ((("x", A, ""), ("x", "", B)), ()),
    "it is made again and deleted again": ((("x", A, ""), ("x", "", B), ("x", B, "")), ("x",)),
    "a file that was only just made is deleted": ((("x", "", A), ("x", A, "")), ()),
    "it is moved": ((("x", A, ""), ("y", "", A)), ()),
    "it is moved, the new name first": ((("y", "", A), ("x", A, "")), ()),
    "it is moved and changed": ((("x", A, ""), ("y", "", B)), ("x",)),
    "it is moved and changed afterwards": ((("y", "", A), ("x", A, ""), ("y", A, B)), ("x",)),
    "it is moved, and the new one deleted": ((("y", "", A), ("x", A, ""), ("y", A, "")), ("x",)),
    "another file is changed to its text": ((("y", B, A), ("x", A, "")), ("x",)),
    "two are deleted, one is moved": ((("w", A, ""), ("x", A, ""), ("y", "", A)), ("x",)),
}


def after(steps: tuple[Step, ...], removals: Removals | None = None) -> Removals:
    removals = removals or Removals()
    for path, before, now in steps:
        removals = apply_write(removals, Write(path=path, before=before, after=now, tree="t"))
    return removals


@pytest.mark.parametrize("name", TABLE)
def test_what_is_deleted(name: str) -> None:
    steps, deleted = TABLE[name]

    assert after(steps).deleted == deleted


def test_a_file_that_was_made_in_a_candidate_before_is_a_move_still() -> None:
    made = mark_kept(after((("y", "", A),)))

    assert after((("x", A, ""),), made).deleted == ()


def test_what_went_back_counts_no_more() -> None:
    back = mark_reverted(after((("y", "", A), ("x", A, ""))))

    assert back == Removals()
    assert after((("x", A, ""),), back).deleted == ("x",)


PATHS = ("p", "q", "r", "s")
ops = st.one_of(st.tuples(st.sampled_from(PATHS), st.sampled_from(["", A, B])), st.sampled_from(["kept", "reverted"]))


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(PATHS), st.sampled_from([A, B])), st.lists(ops, max_size=25))
def test_what_is_deleted_is_what_the_trees_say(best: dict[str, str], tried: list[tuple[str, str] | str]) -> None:
    now, made, made_best, removals = dict(best), dict[str, str](), dict[str, str](), Removals()
    last = dict(best)
    for op in tried:
        if op == "kept":
            best, made_best, removals = dict(now), dict(made), mark_kept(removals)
        elif op == "reverted":
            now, made, removals = dict(best), dict(made_best), mark_reverted(removals)
        elif not isinstance(op, str) and (before := now.get(op[0], "")) != op[1]:
            path, digest = op
            removals = apply_write(removals, Write(path=path, before=before, after=digest, tree="t"))
            last[path] = before
            now.pop(path, None)
            was_made = made.pop(path, "") or not before
            if digest:
                now[path] = digest
                made |= {path: digest} if was_made else {}

        missing = [path for path in best if path not in now]
        places = Counter(made.values()) & Counter(last[path] for path in missing)
        assert set(removals.deleted) <= set(missing)
        assert len(removals.deleted) == len(missing) - places.total()
