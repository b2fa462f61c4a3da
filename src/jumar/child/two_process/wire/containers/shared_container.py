"""Containers that change: each side keeps a copy, and every message carries the changes made to it."""

from __future__ import annotations

import collections
import io
import operator
from typing import Any

CHANGING: dict[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray", collections.deque: "deque",
    collections.OrderedDict: "OrderedDict", collections.defaultdict: "defaultdict", collections.Counter: "Counter",
    io.StringIO: "StringIO", io.BytesIO: "BytesIO",
}  # fmt: skip
"""Containers that can change, with the names of their kinds."""

WALKED: dict[str, Any] = {"list": list, "set": set, "deque": collections.deque}

FILES: dict[str, Any] = {"StringIO": io.StringIO, "BytesIO": io.BytesIO}

THING = "_jumar_thing"
"""Attribute of what stands for a thing of the other side: its number."""

CROSSING = frozenset((bool, int, float, str, bytes))
"""Types of values that are made anew wherever they cross."""

FIELDS = "fields"
"""Kind of the public data of an object of the tests (`object_data`)."""


class CopiedFields(dict):  # type: ignore[type-arg]  # no generic class before 3.9
    """Public data of an object of the tests, in the product's process."""

    def read(self) -> dict[str, Any]:
        """Return what it holds."""
        return self

    def write(self, held: dict[str, Any]) -> None:
        """Replace the data by *held*."""
        self.clear()
        self.update(held)

    def is_unchanged(self) -> bool:
        """Return False: nothing is noted of it, as it is compared at once with others."""
        return False

    def note_unchanged(self, *, unchanged: bool) -> None:
        """Note nothing."""


def begin_container(thing: Any, base: Any, more: list[Any]) -> None:
    """Make *thing*, whose class extends the container *base*, an empty one, with what it is made from beside items."""
    if base is collections.deque:
        collections.deque.__init__(thing, (), *more)
    elif more or CHANGING[base] in FILES:
        base.__init__(thing, *more)


def is_same(one: Any, other: Any) -> bool:
    """Return whether *one* is the *other*, or a number or text like it, which is another one each time it crosses."""
    return one is other or (type(one) is type(other) and type(one) in CROSSING and bool(one == other))


def get_fact(proxy: Any, name: str) -> Any:
    """Return what this side has noted of *proxy* under *name*, or None; its `__dict__` is the other side's."""
    try:
        return object.__getattribute__(proxy, name)
    except AttributeError:
        return None


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

    __slots__ = ("batch", "is_open", "kind", "seen", "thing")

    def __init__(self, thing: Any, kind: str) -> None:
        self.thing, self.kind = thing, kind
        self.seen: list[Any] = []
        self.batch: Any = None
        self.is_open = kind == FIELDS
        """True if the side that made it left it empty: the other one may fill it. Fields are opened one by one."""

    def note_own(self, held: list[Any]) -> None:
        """Note that *held* is what the side that made it put there; a place in a file that moved is no content."""
        if self.kind == FIELDS or (self.kind in FILES and self.seen and held[0] == self.seen[0]):
            return
        parts = held[0] or () if self.kind in FILES or self.kind == "bytearray" else held
        self.is_open = not (any(parts) if self.kind == "bytearray" else parts)

    def note_seen(self, held: list[Any]) -> None:
        """Note that *held* is the content that both sides know."""
        self.seen = held
        if self.kind == FIELDS:
            self.thing.note_unchanged(unchanged=False)  # it may be another one already

    def is_moved(self, items: list[Any]) -> bool:
        """Return whether *items* are its content: of a file that was read or closed, of an object but for `_names`."""
        if self.kind == FIELDS:
            public = [part for pair in zip(items[::2], items[1::2]) if pair[0][:1] != "_" for part in pair]  # noqa: B905  as below
            now = self.get_content()
            return len(public) == len(now) and all(map(is_same, public, now))
        return self.kind in FILES and items[0] in (None, self.seen[0])

    def copy(self) -> SharedContainer:
        """Return an empty one of its kind, or itself, if no other can be made: of a class of the tests."""
        kind: Any = type(self.thing)
        base: Any = next(base for base, name in CHANGING.items() if name == self.kind)
        number = None if kind is base else get_fact(self.thing, THING)
        if kind is not base and number is None:
            return self
        made = base.__new__(kind)
        if self.kind == "deque":
            base.__init__(made, (), self.thing.maxlen)
        else:
            base.__init__(made, *([self.thing.default_factory] if self.kind == "defaultdict" else []))
        if number is not None:
            object.__setattr__(made, THING, number)
        return SharedContainer(made, self.kind)

    def get_content(self) -> list[Any]:
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

    def find_change(self) -> list[Any] | None:
        """Return its content if that has changed, else None."""
        if self.kind == FIELDS and self.thing.is_unchanged():
            return None
        now = self.get_content()
        same = len(now) == len(self.seen) and all(map(operator.is_, now, self.seen))
        if self.kind == FIELDS:
            self.thing.note_unchanged(unchanged=same)
        if same or ((self.kind == "bytearray" or self.kind in FILES) and now == self.seen):
            return None
        return now

    def fill(self, items: list[Any]) -> list[Any]:
        """Replace the content by *items*; return the content."""
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
        return self.get_content()
