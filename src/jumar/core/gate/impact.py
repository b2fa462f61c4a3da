"""Selects the tests that an edit can have an effect on, by the lines that each test ran on an earlier tree.

A selection that misses a test costs time and no verdict: only what is red in it is believed, and everything else is
run. So lines are compared as text, and no code of a candidate is parsed. (Regression test selection by coverage, as in
pytest-testmon; what coverage does not see is code that runs at import, and data files.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from jumar.core.state.verdict import get_function

COMPARED = 400
"""Most lines that are compared with each other."""


class RanLines(msgspec.Struct, frozen=True):
    """Lines of one file that ran on the tree of a map."""

    tests: Mapping[str, frozenset[int]]
    """Test -> line numbers, from 1."""
    imported: frozenset[int] = frozenset()
    """Lines that ran while the tests were imported."""

    @property
    def executable(self) -> frozenset[int]:
        """Line numbers that ran at all."""
        return self.imported.union(*self.tests.values())


def find_regions(before: Sequence[bytes], after: Sequence[bytes]) -> list[range]:
    """Return the line numbers of *before* that each edit replaced; of an insertion, those on its two sides.

    Where the edited part is long, it counts as one edit, as to compare it takes the square of its lines.
    """
    whole = find_region(before, after)
    if before == after:
        return []
    old, new = before[max(0, whole.start - 1) : whole.stop - 1], after[max(0, whole.start - 1) :]
    new = new[: max(0, len(old) + len(after) - len(before))]
    if max(len(old), len(new)) > COMPARED:
        return [whole]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    edits = [(a + whole.start, b + whole.start) for kind, a, b, _, _ in blocks if kind != "equal"]
    return [range(first, stop) if first < stop else range(first - 1, stop + 1) for first, stop in edits]


def find_region(before: Sequence[bytes], after: Sequence[bytes]) -> range:
    """Return the lines of *before* between what both texts begin with and end with; of an insertion, its sides."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    first, last = head + 1, len(before) - tail
    return range(first, last + 1) if first <= last else range(first - 1, last + 2)


def carry_region(region: range, now: Sequence[bytes], origin: Sequence[bytes]) -> range:
    """Return the range in *origin* of *region* of the text *now*; new lines stand for all that they replaced."""
    edited, shift = find_region(now, origin), len(origin) - len(now)
    if region.stop <= edited.start:
        return region
    if region.start >= edited.stop:
        return range(region.start + shift, region.stop + shift)
    first, last = min(region.start, edited.start), max(region.stop, edited.stop)
    return range(first, max(first + 1, last + shift))


def find_impacted(ran: RanLines, region: range) -> frozenset[str]:
    """Return the tests that ran a line of *region*, or the one before or behind it that is code.

    Where no test ran these, but an import did (a signature, a constant), all tests that ran any line of the file.
    """
    lines = ran.executable
    first = max((n for n in lines if n <= region.start), default=region.start)
    last = min((n for n in lines if n >= region.stop - 1), default=region.stop)
    near = frozenset(range(first, last + 1)).intersection(lines)
    found = frozenset(test for test, own in ran.tests.items() if near & own)
    return frozenset(ran.tests) if near & ran.imported or not found else found


def match_ids(expected: Iterable[str], found: frozenset[str]) -> tuple[str, ...]:
    """Return the ids in *expected* that are *found*; one without parameters stands for all its parametrisations."""
    families = {get_function(test) for test in found}
    return tuple(i for i in expected if i in found or i in families)
