"""Mutable containers: each side keeps a copy, and every message carries the changes made to it.

Loaded by path on both sides; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import collections
import operator
from typing import Any

CHANGING: dict[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray", collections.deque: "deque",
    collections.OrderedDict: "OrderedDict", collections.defaultdict: "defaultdict", collections.Counter: "Counter",
}  # fmt: skip
"""Containers that can change, with the names of their kinds."""

WALKED: dict[str, Any] = {"list": list, "set": set, "deque": collections.deque}


class SharedContainer:
    """A container that both sides know, and its content when they last exchanged it."""

    __slots__ = ("kind", "seen", "thing")

    def __init__(self, thing: Any, kind: str) -> None:
        self.thing, self.kind = thing, kind
        self.seen: list[Any] = []

    def held(self) -> list[Any]:
        """Return its current content, as C sees it: no method of a subclass is called."""
        thing, kind = self.thing, self.kind
        if kind in ("dict", "defaultdict", "Counter"):
            return [part for pair in dict.items(thing) for part in pair]
        if kind == "OrderedDict":
            return [part for pair in collections.OrderedDict.items(thing) for part in pair]
        if kind == "bytearray":
            return [bytes(memoryview(thing))]
        return list(WALKED[kind].__iter__(thing))

    def changed(self) -> list[Any] | None:
        """Return its content if that has changed, else None."""
        now = self.held()
        same = len(now) == len(self.seen) and all(map(operator.is_, now, self.seen))
        if same or (self.kind == "bytearray" and now == self.seen):
            return None
        return now

    def fill(self, items: list[Any]) -> None:
        """Let it hold *items*, and nothing else."""
        thing, kind = self.thing, self.kind
        if kind == "list":
            list.__setitem__(thing, slice(None), items)
        elif kind == "bytearray":
            bytearray.__setitem__(thing, slice(None), items[0])
        elif kind == "deque":
            collections.deque.clear(thing)
            collections.deque.extend(thing, items)
        elif kind == "set":
            new = set(items)
            set.clear(thing)
            set.update(thing, new)
        else:
            # Hashes may be asked of the other side: the thing itself is never seen half full.
            store: Any = collections.OrderedDict if kind == "OrderedDict" else dict
            pairs = store(zip(items[::2], items[1::2]))  # noqa: B905  Python 3.8 knows no strict one
            store.clear(thing)
            store.update(thing, pairs)
        self.seen = self.held()
