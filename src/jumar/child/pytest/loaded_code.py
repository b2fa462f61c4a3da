"""Snapshots all code that is loaded: the names of every module and class, and the insides of their functions.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer. Nothing here asks an object
under suspicion for anything that it could answer itself: no `==`, no attribute of its own making.
"""

# ruff: noqa: B905  zip has no `strict` before Python 3.10

from __future__ import annotations

import builtins
import functools
import sys
import types
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

PARTS = (
    FunctionType, type, ModuleType, BuiltinFunctionType, MethodType, classmethod, staticmethod, property,
    type(functools.lru_cache(lambda: None)), types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
"""Kinds of values that are code. Other values are state, which changes."""

FRAMEWORK = ("_pytest", "pytest", "pluggy", "unittest")
"""Packages that decide what became of a test."""

GONE = object()
"""Stands for a name that is no longer there."""

_CLASS_NAMES = vars(type)["__dict__"].__get__
_MODULE_NAMES = vars(ModuleType)["__dict__"].__get__
_BASES = vars(type)["__bases__"].__get__
_SUBCLASSES = type.__subclasses__
_INSIDES = (attrgetter("__code__"), attrgetter("__defaults__"), attrgetter("__kwdefaults__"))


class Table(NamedTuple):
    """Names of a module or a class."""

    owner: Any
    live: Mapping[str, object]
    before: Mapping[str, object]


class Change(NamedTuple):
    """Code that is not what it was."""

    owner: Any
    """The module, class or function."""
    name: str
    before: object
    now: object

    @property
    def where(self) -> str:
        """Name of the owner."""
        names: Any = _MODULE_NAMES(self.owner) if isinstance(self.owner, ModuleType) else {}
        return str(names.get("__name__") or f"{get_module_name(self.owner)}.{self.owner.__qualname__}")


class LoadedCode:
    """Everything that is loaded, but for files that are *inside* the room.

    *earlier* is a snapshot whose modules and classes are part of this one, wherever they say that they come from.
    """

    def __init__(self, inside: Callable[[str], bool], earlier: LoadedCode | None = None) -> None:
        known = {id(table.owner): table.owner for table in earlier.tables} if earlier else {}
        for module in list(sys.modules.values()):
            if issubclass(type(module), ModuleType) and id(module) not in known:
                place = _MODULE_NAMES(module).get("__file__")
                if not (isinstance(place, str) and inside(place)):
                    known[id(module)] = module
        for kind in _list_classes():
            home = sys.modules.get(get_module_name(kind))
            if earlier is None or id(home) in known:
                known.setdefault(id(kind), kind)
        self.tables: list[Table] = [
            Table(one, names, names.copy()) for one in known.values() for names in [get_names(one)]
        ]
        self.by_owner = {id(table.owner): table for table in self.tables}
        self._functions = list(_list_functions(self.tables))
        self._insides = [list(map(get, self._functions)) for get in _INSIDES]
        self._held = [(one, held) for one in self._functions for held in [_list_held(one)] if held]

    def find_changes(self) -> Iterator[Change]:
        """Yield everything that changed."""
        yield from find_changed_names(self.tables)
        for get, before in zip(_INSIDES, self._insides):
            if not all(map(is_, before, map(get, self._functions))):
                for function, old in zip(self._functions, before):
                    if get(function) is not old:
                        yield Change(function, "the inside", old, function)
        for function, held in self._held:
            if not are_identical(held, _list_held(function)):
                yield Change(function, "the inside", held, function)


def find_changed_names(tables: Iterable[Table]) -> Iterator[Change]:
    """Yield the names in *tables* that stand for other code than before."""
    for owner, live, before in tables:
        same = len(live) == len(before) and all(map(is_, before.values(), live.values()))
        if same and all(map(is_, before, live)):
            continue
        now = live.copy()  # type: ignore[attr-defined]  # a dict or a view of one
        for name, old in before.items():
            if now.get(name, GONE) is not old and is_code(old):
                yield Change(owner, name, old, now.get(name, GONE))
        for name in now:
            if name not in before and is_code(now[name]) and _hides(owner, name):
                yield Change(owner, name, GONE, now[name])


def _hides(owner: Any, name: str) -> bool:
    """Return whether a new *name* of *owner* hides what was inherited, or a built-in."""
    if isinstance(owner, type):
        return any(is_code(_CLASS_NAMES(base).get(name)) for base in owner.__mro__[1:])
    return owner.__name__ != "builtins" and name in _MODULE_NAMES(sys.modules["builtins"])


def get_names(owner: Any) -> Any:
    """Return the live names of a module or a class."""
    return _CLASS_NAMES(owner) if isinstance(owner, type) else _MODULE_NAMES(owner)


def get_module_name(thing: Any) -> str:
    """Return the name of the module in which a function or a class says that it was made."""
    if isinstance(thing, FunctionType):
        return str(thing.__module__)
    return str(_CLASS_NAMES(thing).get("__module__") or "builtins")


def is_code(value: object) -> bool:
    """Return whether *value* is code: a function, a class, a descriptor."""
    return isinstance(value, PARTS)


def _list_classes() -> Iterator[type]:
    todo, seen = [object], {id(object)}
    while todo:
        kind = todo.pop()
        yield kind
        for heir in _SUBCLASSES(kind):
            if id(heir) not in seen:
                seen.add(id(heir))
                todo.append(heir)


def _list_functions(tables: Iterable[Table]) -> Iterator[FunctionType]:
    """Yield the Python functions in *tables*, and those that they hold."""
    todo: list[object] = [value for table in tables for value in table.before.values() if isinstance(value, PARTS)]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        function = value if type(value) is FunctionType else None if type(value) is type else unwrap_function(value)
        if function is not None and id(function) not in seen:
            seen.add(id(function))
            yield function
            if function.__closure__:
                todo += _list_held(function)


def _list_held(function: FunctionType) -> list[object]:
    """Return the code in the cells and keyword defaults of *function*."""
    held: list[object] = []
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # nothing was put into it yet
            continue
    return [one for one in (*held, *(function.__kwdefaults__ or {}).values()) if isinstance(one, PARTS)]


def are_identical(before: Sequence[object], now: Sequence[object]) -> bool:
    """Return whether both hold the very same objects."""
    return len(before) == len(now) and all(map(is_, before, now))


def unwrap_function(value: object) -> FunctionType | None:
    """Return the Python function below *value*, without asking *value* for anything that it could answer itself."""
    for _ in range(4):
        if isinstance(value, FunctionType):
            return value
        if isinstance(value, (classmethod, staticmethod, MethodType)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif type(value).__name__ == "partial" and type(value).__module__ == "functools":
            value = value.func  # type: ignore[attr-defined]
        else:
            break
    return None


def find_places(value: object) -> list[str]:
    """Return the files that *value*, a function, a class or any object, comes from."""
    function = unwrap_function(value)
    if function is not None:
        written, loaded = function.__code__.co_filename, function.__globals__.get("__file__")
        return [place for place in (written, loaded) if isinstance(place, str) and place[:1] != "<"]
    kind = value if isinstance(value, type) else type(value)
    module = sys.modules.get(str(kind.__module__))
    place = getattr(module, "__file__", None)
    return [place] if isinstance(place, str) else []


def is_same_again(before: object, now: object) -> bool:
    """Return whether *now* is what *before* was, made again from the same source: its module was reloaded."""
    if isinstance(before, type) and isinstance(now, type):
        old, new = _CLASS_NAMES(before), _CLASS_NAMES(now)
        pairs = [*zip(_BASES(before), _BASES(now)), *((old.get(name), new.get(name)) for name in {**old, **new})]
        same = len(_BASES(before)) == len(_BASES(now)) and get_module_name(before) == get_module_name(now)
        return same and all(a is b or not (is_code(a) or is_code(b)) or is_same_again(a, b) for a, b in pairs)
    if type(before) is not type(now) or not isinstance(before, PARTS):
        return False
    if isinstance(before, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return True  # of a class that was made again
    one, other = unwrap_function(before), unwrap_function(now)
    return (
        one is not None and other is not None and one.__globals__ is other.__globals__ and _have_same_inside(one, other)
    )


def _have_same_inside(one: FunctionType, other: FunctionType) -> bool:
    given, words = list(zip(one.__defaults__ or (), other.__defaults__ or ())), other.__kwdefaults__ or {}
    given += [(value, words.get(name)) for name, value in (one.__kwdefaults__ or {}).items()]
    plain = all(a is b or (type(a) is type(b) and type(a) in (int, str, float) and a == b) for a, b in given)
    return (
        plain
        and one.__code__ == other.__code__
        and len(one.__defaults__ or ()) == len(other.__defaults__ or ())
        and not one.__closure__
    )
