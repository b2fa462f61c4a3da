"""Mutable containers: each side keeps a copy, and every message carries the changes made to it.

Loaded by path on both sides; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import collections
import enum
import io
import operator
import types
from typing import Any

CHANGING: dict[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray", collections.deque: "deque",
    collections.OrderedDict: "OrderedDict", collections.defaultdict: "defaultdict", collections.Counter: "Counter",
    io.StringIO: "StringIO", io.BytesIO: "BytesIO",
}  # fmt: skip
"""Containers that can change, with the names of their kinds."""

WALKED: dict[str, Any] = {"list": list, "set": set, "deque": collections.deque}


FILES: dict[str, Any] = {"StringIO": io.StringIO, "BytesIO": io.BytesIO}

FIELDS = "fields"
"""Kind of the public data of an object of the tests."""


class CopiedFields(dict):  # type: ignore[type-arg]  # no generic class before 3.9
    """Public data of an object of the tests, in the product's process."""

    def read(self) -> dict[str, Any]:
        """Return what it holds."""
        return self

    def write(self, held: dict[str, Any]) -> None:
        """Let it hold *held*."""
        self.clear()
        self.update(held)


class OwnFields:
    """Public data of *thing*, an object of the tests: what its instance holds, and nothing that code computes."""

    def __init__(self, thing: Any, admits: Any) -> None:
        self._thing, self._admits = thing, admits

    def read(self) -> dict[str, Any]:
        """Return the data by name: of the instance, of slots, of a named tuple, of a member of an enumeration."""
        thing = self._thing
        if isinstance(thing, enum.Enum):
            return {"name": thing._name_, "value": thing._value_}
        held = dict(getattr(thing, "__dict__", {}))
        kind = type(thing)
        slots = [n for k in kind.__mro__ for n in _listed(vars(k).get("__slots__", ()))]
        held.update(
            {n: getattr(thing, n) for n in (*slots, *_listed(vars(kind).get("_fields", ()))) if hasattr(thing, n)}
        )
        return {n: v for n, v in held.items() if type(n) is str and not n.startswith("_") and self._admits(v)}

    def write(self, told: dict[str, Any]) -> None:
        """Follow what the product set: data alone, and nothing that a class has under that name."""
        now, held = self.read(), getattr(self._thing, "__dict__", {})
        for name in now.keys() - told.keys():
            held.pop(name, None)
        for name, value in told.items():
            if now.get(name, self) is not value and _may_set(self._thing, name, value):
                object.__setattr__(self._thing, name, value)


def _listed(names: Any) -> tuple[str, ...]:
    return (names,) if type(names) is str else tuple(names)


def _may_set(thing: Any, name: Any, value: Any) -> bool:
    """Return whether the product may set *name* of *thing*: data, as in a list or dict."""
    if type(name) is not str or not name.isidentifier() or name.startswith("_") or callable(value):
        return False
    found = getattr(type(thing), name, None)
    plain: Any = object.__setattr__
    own = type(thing).__setattr__ is plain
    return own and (found is None or type(found) is types.MemberDescriptorType)


def _fill_file(thing: Any, text: Any, place: int) -> None:
    if text is None:
        thing.close()
        return
    thing.seek(0)
    thing.truncate()
    thing.write(text)
    thing.seek(place)


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
        if kind in FILES:
            return [None, 0] if thing.closed else [FILES[kind].getvalue(thing), FILES[kind].tell(thing)]
        if kind == FIELDS:
            return [part for pair in thing.read().items() for part in pair]
        return list(WALKED[kind].__iter__(thing))

    def changed(self) -> list[Any] | None:
        """Return its content if that has changed, else None."""
        now = self.held()
        same = len(now) == len(self.seen) and all(map(operator.is_, now, self.seen))
        if same or ((self.kind == "bytearray" or self.kind in FILES) and now == self.seen):
            return None
        return now

    def fill(self, items: list[Any]) -> None:
        """Let it hold *items*, and nothing else."""
        thing, kind = self.thing, self.kind
        if kind == "list":
            list.__setitem__(thing, slice(None), items)
        elif kind == "bytearray":
            bytearray.__setitem__(thing, slice(None), items[0])
        elif kind in FILES:
            _fill_file(thing, *items)
        elif kind == FIELDS:
            thing.write(dict(zip(items[::2], items[1::2])))  # noqa: B905  as below
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
