"""Data of objects that crosses: public fields of those of the tests, and copies of those of libraries."""

from __future__ import annotations

import enum
import functools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from jumar.child.two_process import proxies
from jumar.child.two_process.wire import library_values, own_instances, signatures, stand_ins
from jumar.child.two_process.wire.containers.shared_container import CHANGING, get_fact, is_same
from jumar.child.two_process.wire.signatures import DATA

EMPTIABLE = (tuple, frozenset, list, dict, set)
"""Types of values of which an empty one is there to be replaced. A zero or an empty text may be what is expected."""


class OwnFields:
    """Public data of *thing*, an object of the tests: what its instance holds, and nothing that code computes."""

    def __init__(self, thing: Any, admits: Any) -> None:
        self._thing, self._admits = thing, admits
        self._given: dict[str, Any] = {}
        """Values that the product set, by name."""
        self._withheld: dict[str, Any] = {}
        """The same of those that it set where the tests have others."""
        kind = type(thing)
        self._slots = [n for k in kind.__mro__ for n in _list_names(vars(k).get("__slots__", ()))]
        self._slots += _list_names(vars(kind).get("_fields", ()))
        self._known: list[Any] | None = None
        """Names and public values at the time of `note_unchanged`; None: they are not known to be those."""

    def read(self) -> dict[str, Any]:
        """Return the data by name: of the instance, of slots, of a named tuple, of a member of an enumeration."""
        thing = self._thing
        if isinstance(thing, enum.Enum):
            return {"name": thing._name_, "value": thing._value_}
        held = {**getattr(thing, "__dict__", {}), **{n: getattr(thing, n) for n in self._slots if hasattr(thing, n)}}
        return {n: v for n, v in held.items() if type(n) is str and not n.startswith("_") and self._admits(v)}

    def is_unchanged(self) -> bool:
        """Return whether all is as it was at the time of `note_unchanged`, in a tenth of the time of `read`."""
        known = self._known
        if known is None:
            return False
        now = self._list_values()
        return len(known) == len(now) and all(map(operator.is_, known, now))

    def note_unchanged(self, *, unchanged: bool) -> None:
        """Note whether the data as it is now is what the other side knows."""
        self._known = self._list_values() if unchanged else None

    def _list_values(self) -> list[Any]:
        """Return all names, and the values of public ones."""
        held = getattr(self._thing, "__dict__", {})
        values = [value for name, value in held.items() if type(name) is not str or name[:1] != "_"]
        return [*held, *values, *(getattr(self._thing, name, None) for name in self._slots)]

    def write(self, told: dict[str, Any]) -> None:
        """Apply the changes of the product: data alone, and no other where the tests put a value."""
        now, held = self.read(), getattr(self._thing, "__dict__", {})
        for name in self._list_given() - told.keys():
            if _may_set(self._thing, name, None):
                held.pop(name, None)
        self._withheld = {}
        for name, value in told.items():
            if _is_private(name):
                self._withheld[name] = value
            if is_same(now.get(name, self), value) or not _may_set(self._thing, name, value):
                continue
            if self._is_open(name):
                self._given[name] = value
                self._set(name, value)
            else:
                self._withheld[name] = value

    @property
    def is_withheld(self) -> bool:
        """Return whether the product has set something where the tests have another value."""
        return bool(self._withheld)

    def keep(self) -> bool:
        """Set what was withheld, private data too; return whether there is something public."""
        held = getattr(self._thing, "__dict__", {})
        held.update((name, value) for name, value in self._withheld.items() if _is_private(name))
        now = OwnFields.read(self)
        public = [name for name in self._withheld if name in now]
        for name in public:
            self._set(name, self._withheld[name])
        return bool(public)

    def _set(self, name: str, value: Any) -> None:
        held = getattr(self._thing, "__dict__", {})
        if name in held or isinstance(find_in_class(type(self._thing), name), proxies.Proxy):
            held[name] = value  # no descriptor of the product is asked here
        else:
            object.__setattr__(self._thing, name, value)

    def _list_given(self) -> set[str]:
        """Return the names that the product has set, and the tests not since."""
        now = OwnFields.read(self)
        return {name for name, value in self._given.items() if now.get(name, self) is value}

    def _is_open(self, name: str) -> bool:
        """Return whether the product may set *name*: the tests left it out or empty, or it is the product's."""
        value = OwnFields.read(self).get(name, find_in_class(type(self._thing), name))
        blank = value is None or (type(value) in EMPTIABLE and not value) or type(value) is types.MemberDescriptorType
        return blank or isinstance(value, proxies.Proxy) or name in self._list_given()


class GivenFields(OwnFields):
    """Data of an instance that has a stand-in: what the product set where nothing was, as long as it is that."""

    def read(self) -> dict[str, Any]:
        """Return the data by name."""
        given = self._list_given()
        return {name: value for name, value in super().read().items() if name in given}

    def _is_open(self, name: str) -> bool:
        found = find_in_class(type(self._thing), name)
        free = found is None or isinstance(found, (proxies.Proxy, types.MemberDescriptorType))
        return name in self._list_given() or (free and name not in OwnFields.read(self))


def open_fields(value: Any, admits: Any) -> OwnFields:
    """Return the public data of *value*, an object of the tests, or of what it stands for."""
    kind = GivenFields if stand_ins.is_one(value) else OwnFields
    return kind(stand_ins.unwrap(value), admits)


def _list_names(names: Any) -> tuple[str, ...]:
    return (names,) if type(names) is str else tuple(names)


def _is_private(name: Any) -> bool:
    """Return whether *name* is that of private data, and no name of Python's own (`__class__`)."""
    return type(name) is str and name.isidentifier() and name[:1] == "_" and name[:2] != "__"


def _may_set(thing: Any, name: Any, value: Any) -> bool:
    """Return whether the product may set *name* of *thing*: data, as in a list or dict."""
    if type(name) is not str or not name.isidentifier() or name.startswith("_") or callable(value):
        return False
    found = find_in_class(type(thing), name)
    plain: Any = object.__setattr__
    own = type(thing).__setattr__ is plain
    return own and (type(found) in DATA or isinstance(found, (types.MemberDescriptorType, proxies.Proxy)))


def find_in_class(kind: type, name: str) -> Any:
    """Return what the first of *kind* and the classes above it that has *name* has there, or None."""
    return next((vars(k)[name] for k in type.__getattribute__(kind, "__mro__") if name in vars(k)), None)


TELLING = ("__hash__", "__repr__")
"""Special methods from which all that an object holds can be read, or guessed without a word to the tests."""


def tells_private(name: Any, function: Any) -> bool:
    """Return whether *function*, the special method *name*, was generated from fields, private ones among them."""
    codes = [each.__code__ for each in signatures.list_wrapped(function)] if name in TELLING else []
    names = [name for code in codes if code.co_filename.startswith("<") for name in code.co_names]
    return any(name.startswith("_") and not name.endswith("__") for name in names)


PLAIN = (*CHANGING, *library_values.LASTING)
"""Types whose methods cross with the value that they belong to."""

NO_COPIES = ("builtins", "_collections", "itertools", "argparse", "types", "_io", "unittest.mock")
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


def split_body(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of the *body* of a class stays here, and what the other side makes its own class from."""
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for key, value in body.items():
        if isinstance(value, (staticmethod, classmethod)):
            ours[key], theirs[key] = value, (type(value).__name__, value.__func__)
        elif isinstance(value, property):
            ours[key], theirs[key] = value, ("property", value.fget, value.fset, value.fdel)
        elif type(value).__name__ == "function":
            ours[key], theirs[key] = value, ("function", value)
        elif key not in ("__classcell__", "__module__", "__slots__"):
            theirs[key] = ("value", value)
    kept = ("__classcell__", "__module__", "__qualname__", "__doc__")
    ours.update({key: body[key] for key in kept if key in body})
    return ours, theirs


def get_flags(thing: Any) -> Any:
    """Return the value of *thing* that crossed with it, if it is a combination of flags; else None."""
    if isinstance(thing, int) and any((k.__module__, k.__name__) == ("enum", "IntFlag") for k in type(thing).__mro__):
        return library_values.get_bare_value(thing, int)
    return get_fact(thing, signatures.FLAGS) if isinstance(thing, proxies.Proxy) else None


def hold_flags(thing: Any, needle: Any) -> bool | None:
    """Return whether flags have those of *needle*, a constant of their class; None: they are none, or it is none."""
    constant = type(thing) is type(needle) and get_fact(needle, own_instances.CONSTANT) is True
    flags = get_flags(thing) if constant else None
    return None if flags is None else flags | get_flags(needle) == flags
