"""Finds the shared containers that changed, or that nothing refers to, many at once."""

from __future__ import annotations

import collections
import operator
import sys
from collections.abc import Iterator
from itertools import chain, compress
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import CopiedFields

SMALL, LARGE = 16, 1024
"""Containers of a batch that is added to, and the most of one that is merged."""

WALKED = frozenset((list, set, collections.deque))

PAIRED = frozenset((dict, collections.defaultdict, collections.Counter, CopiedFields))


class Batch:
    """Containers that are compared at once. Those of other types are compared one by one."""

    def __init__(self) -> None:
        self.entries: dict[int, Any] = {}
        self.stale = True
        """True if the lists below are not those of the entries any more."""

    def _rebuild(self) -> None:
        # Sorted by kind, as the order is that of the comparison below.
        kinds = [(WALKED, 1), (PAIRED, 2)]
        plain = [
            (number, e, parts) for kind, parts in kinds for number, e in self.entries.items() if type(e.thing) in kind
        ]
        self._numbers = [number for number, _, _ in plain]
        self._things = [entry.thing for _, entry, _ in plain]
        self._walked = sum(parts == 1 for _, _, parts in plain)
        self._sizes = [len(entry.seen) // parts for _, entry, parts in plain]
        self._seen = list(chain.from_iterable(entry.seen for _, entry, _ in plain))
        self._odd = {number: e for number, e in self.entries.items() if type(e.thing) not in WALKED | PAIRED}
        self.stale = False

    def find_changed(self) -> list[tuple[Any, Any, list[Any]]]:
        """Return number, container and content of those that changed."""
        if self.stale:
            self._rebuild()
        walked, paired = self._things[: self._walked], self._things[self._walked :]
        now = chain(chain.from_iterable(walked), chain.from_iterable(chain.from_iterable(map(dict.items, paired))))
        same = self._sizes == list(map(len, self._things)) and all(map(operator.is_, self._seen, now))
        asked = ((number, e, e.find_change()) for number, e in (self._odd if same else self.entries).items())
        return [(number, entry, held) for number, entry, held in asked if held is not None]

    def find_unused(self) -> list[int]:
        """Return the numbers of those that nothing but this and the table refers to."""
        if self.stale:
            self._rebuild()
        odd = [entry.thing for entry in self._odd.values()]
        unused = list(compress(self._numbers, map(UNUSED.__ge__, map(sys.getrefcount, self._things))))
        return unused + list(compress(self._odd, map(UNUSED.__ge__, map(sys.getrefcount, odd))))


class Batches:
    """All shared containers: new and changing ones in small batches at the end, the others merged before them."""

    def __init__(self) -> None:
        self._batches: list[Batch] = [Batch()]

    def add(self, number: int, entry: Any) -> None:
        """Let *entry* be compared under *number*, with what was added last."""
        last = self._batches[-1]
        if len(last.entries) >= SMALL:
            self._merge()
            last = Batch()
            self._batches.append(last)
        last.entries[number] = entry
        entry.batch, last.stale = last, True

    def remove(self, number: int, entry: Any) -> None:
        """Stop comparing *entry*."""
        del entry.batch.entries[number]
        entry.batch.stale = True

    def _merge(self) -> None:
        """Merge batches at the end that are as large as those before them, so that there are few."""
        batches = self._batches
        while len(batches) > 1 and len(batches[-2].entries) <= 2 * len(batches[-1].entries):
            if len(batches[-1].entries) > LARGE:
                break
            last, into = batches.pop(), batches[-1]
            into.entries.update(last.entries)
            into.stale = True
            for entry in last.entries.values():
                entry.batch = into

    def find_changed(self) -> list[tuple[Any, Any, list[Any]]]:
        """Return number, container and content of those that changed."""
        return [found for batch in self._batches if batch.entries for found in batch.find_changed()]

    def find_unused(self) -> Iterator[int]:
        """Yield the numbers of those that nothing but a table refers to."""
        for batch in self._batches:
            yield from batch.find_unused() if batch.entries else ()


def _count_least() -> int:
    """Return the references that a container has which only an entry and a list of things refer to."""
    entry = [[]]  # type: ignore[var-annotated]  # in place of the attribute
    things = [entry[0]]
    return next(map(sys.getrefcount, things))


UNUSED = _count_least()
