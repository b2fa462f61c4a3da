"""Data that both sides hold: containers that change, fields of objects, and copies of the standard library's objects.

Each side keeps a copy of a container, and every message carries the changes made to it.
"""

from __future__ import annotations

import collections
import enum
import functools
import io
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.wire import stand_ins
from jumar.child.two_process.wire.signatures import DATA

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
        """Replace the data by *held*."""
        self.clear()
        self.update(held)


class OwnFields:
    """Public data of *thing*, an object of the tests: what its instance holds, and nothing that code computes."""

    def __init__(self, thing: Any, admits: Any) -> None:
        self._thing, self._admits = thing, admits

    def get_thing(self) -> Any:
        """Return the object whose data it is."""
        return self._thing

    def read(self) -> dict[str, Any]:
        """Return the data by name: of the instance, of slots, of a named tuple, of a member of an enumeration."""
        thing = self._thing
        if isinstance(thing, enum.Enum):
            return {"name": thing._name_, "value": thing._value_}
        held = dict(getattr(thing, "__dict__", {}))
        kind = type(thing)
        names = [n for k in kind.__mro__ for n in _list_names(vars(k).get("__slots__", ()))]
        names += _list_names(vars(kind).get("_fields", ()))
        held.update({n: getattr(thing, n) for n in names if hasattr(thing, n)})
        return {n: v for n, v in held.items() if type(n) is str and not n.startswith("_") and self._admits(v)}

    def write(self, told: dict[str, Any]) -> None:
        """Apply the changes of the product: data alone, and nothing that a class has under that name."""
        now, held = self.read(), getattr(self._thing, "__dict__", {})
        for name in now.keys() - told.keys():
            if _may_set(self._thing, name, None):
                held.pop(name, None)
        for name, value in told.items():
            if now.get(name, self) is value or not _may_set(self._thing, name, value):
                continue
            if name in held or isinstance(find_in_class(self._thing, name), proxies.Proxy):
                held[name] = value  # no descriptor of the product is asked here
            else:
                object.__setattr__(self._thing, name, value)


class GivenFields(OwnFields):
    """Data of an instance that has a stand-in: what the product set where nothing was, as long as it is that."""

    def __init__(self, thing: Any, admits: Any) -> None:
        super().__init__(thing, admits)
        self._set: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Return the data by name."""
        return {name: value for name, value in super().read().items() if self._set.get(name, self) is value}

    def write(self, told: dict[str, Any]) -> None:
        """Apply the changes of the product, but for names that the instance or its class has otherwise."""
        mine, all_names = self.read(), super().read()
        free = {name for name in told if name in mine or (name not in all_names and self._is_free(name))}
        super().write({name: told[name] for name in free})
        self._set = {name: told[name] for name in free}

    def _is_free(self, name: Any) -> bool:
        found = find_in_class(self._thing, name)
        return found is None or isinstance(found, (proxies.Proxy, types.MemberDescriptorType))


def open_fields(value: Any, admits: Any) -> OwnFields:
    """Return the public data of *value*, an object of the tests, or of what it stands for."""
    kind = GivenFields if stand_ins.is_one(value) else OwnFields
    return kind(stand_ins.unwrap(value), admits)


def _list_names(names: Any) -> tuple[str, ...]:
    return (names,) if type(names) is str else tuple(names)


def _may_set(thing: Any, name: Any, value: Any) -> bool:
    """Return whether the product may set *name* of *thing*: data, as in a list or dict."""
    if type(name) is not str or not name.isidentifier() or name.startswith("_") or callable(value):
        return False
    found = find_in_class(thing, name)
    plain: Any = object.__setattr__
    own = type(thing).__setattr__ is plain
    return own and (type(found) in DATA or isinstance(found, (types.MemberDescriptorType, proxies.Proxy)))


def find_in_class(thing: Any, name: str) -> Any:
    """Return what the first class of *thing* that has *name* has there, or None."""
    return next((vars(kind)[name] for kind in type(thing).__mro__ if name in vars(kind)), None)


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

    __slots__ = ("batch", "kind", "seen", "thing")

    def __init__(self, thing: Any, kind: str) -> None:
        self.thing, self.kind = thing, kind
        self.seen: list[Any] = []
        self.batch: Any = None

    def get_subject(self) -> Any:
        """Return the container, or the object whose data it stands for."""
        return self.thing.get_thing() if isinstance(self.thing, OwnFields) else self.thing

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
        now = self.get_content()
        same = len(now) == len(self.seen) and all(map(operator.is_, now, self.seen))
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


PLAIN = (*CHANGING, bool, int, str, float, complex, bytes, tuple, frozenset)
"""Types whose methods cross with the value that they belong to."""

NO_COPIES = ("builtins", "itertools", "argparse", "types", "_io", "unittest.mock")
"""Modules whose objects are not copied: iterators and files are used up, namespaces are shared."""

CONSTANTS: dict[str, tuple[int, dict[int, tuple[str, str]]]] = {}
"""Package of a library -> modules that were loaded when it was looked at; names in it, by the identity of a value."""

NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
"""Types of functions, classes and methods of classes: what a library has under a name the product's process has too."""


def encode_made(value: Any, encode: Callable[[Any], Any]) -> Any:
    """Return the form of what libraries name, or of what is made from data, else None.

    That is made from data: methods of containers, partial functions, objects that `copy` can copy.
    """
    named = _find_name(value)
    if named is not None:
        return ["q", *named]
    owner = value.__self__ if type(value) is types.BuiltinMethodType else None
    if owner is not None and (type(owner) in PLAIN or proxies.is_library_class(owner)):
        return ["w", encode(owner), value.__name__]
    if type(value) is functools.partial:
        return ["p", encode(value.func), encode(value.args), encode(value.keywords)]
    kind = type(value)
    if not proxies.is_library_class(kind) or kind.__module__ in NO_COPIES or isinstance(value, BaseException):
        return None
    name = _find_constant(value)
    parts = None if name else _reduce(value)
    return ["q", *name] if name else parts and ["d", *(encode(part) for part in parts)]


def _find_name(value: Any) -> tuple[str, str] | None:
    """Return the module and the name of *value*, if it is a function or class of a library, or a method of a class."""
    if not issubclass(type(value), NAMED):  # the class that a mock says it has is no class of it
        return None
    module = getattr(getattr(value, "__objclass__", value), "__module__", None)  # a method of a built-in type has none
    name = getattr(value, "__qualname__", "")
    return (module, name) if isinstance(module, str) and proxies.find_library_object(module, name) is value else None


def _find_constant(value: Any) -> tuple[str, str] | None:
    """Return the module and the name by which the library that *value* is of has it, or None."""
    top = type(value).__module__.partition(".")[0]
    if CONSTANTS.get(top, (0,))[0] != len(sys.modules):
        loaded = [n for n in list(sys.modules) if n.partition(".")[0] == top and proxies.is_library(n)]
        names = {id(v): (module, name) for module in loaded for name, v in vars(sys.modules[module]).items()}
        CONSTANTS[top] = len(sys.modules), names
    found = CONSTANTS[top][1].get(id(value))
    return found if found and vars(sys.modules[found[0]]).get(found[1]) is value else None


def _reduce(value: Any) -> tuple[Any, ...] | None:
    """Return the parts that `copy` would make another *value* from, if it can."""
    try:
        reduced: Any = value.__reduce_ex__(2)
    except (TypeError, ValueError):
        return None
    if type(reduced) is not tuple:
        return None
    made, args, state, items, pairs = (*reduced, None, None, None)[:5]
    return (made, args, state, tuple(items or ()), tuple(pairs or ()))


def rebuild(made: Any, args: tuple[Any, ...], state: Any, items: tuple[Any, ...], pairs: tuple[Any, ...]) -> Any:
    """Return an object of a library from the parts that `copy` would make it from."""
    thing = made(*args)
    if hasattr(thing, "__setstate__") and state is not None:
        thing.__setstate__(state)
    elif state is not None:
        held, slots = state if type(state) is tuple else (state, None)
        for name, value in {**(held or {}), **(slots or {})}.items():
            object.__setattr__(thing, name, value)
    for item in items:
        thing.append(item)
    for key, value in pairs:
        thing[key] = value
    return thing
