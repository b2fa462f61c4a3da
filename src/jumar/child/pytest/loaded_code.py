"""Snapshots all code that is loaded: the names of every module and class, and the insides of their functions.

Nothing here asks an object under suspicion for anything that it could answer itself: no `==`, no attribute of its own
making.
"""

# ruff: noqa: B905  zip has no `strict` before Python 3.10

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, count
from operator import attrgetter, is_, is_not, ne
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from jumar.child.dict_versions import DictVersions
from jumar.child.pytest.code_identity import get_address, get_module_name, is_code, unwrap_function

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

HOLDERS = frozenset({FunctionType, MethodType, classmethod, staticmethod, property, functools.partial})
"""Kinds of values with a Python function in them."""

GONE = object()
"""Stands for a name that is no longer there."""

_CLASS_NAMES = vars(type)["__dict__"].__get__
_MODULE_NAMES = vars(ModuleType)["__dict__"].__get__
_SUBCLASSES = type.__subclasses__
_PARTS_OF_FUNCTION = {name: attrgetter(name) for name in ("__code__", "__defaults__", "__kwdefaults__")}


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
        """Return the name of the owner."""
        names: Any = _MODULE_NAMES(self.owner) if isinstance(self.owner, ModuleType) else {}
        return str(names.get("__name__") or f"{get_module_name(self.owner)}.{self.owner.__qualname__}")


class LoadedCode:
    """Everything that is loaded, but for files that are *inside* the room."""

    def __init__(self, inside: Callable[[str], bool]) -> None:
        self._inside, self._holds_room = inside, False
        self.by_owner: dict[int, Table] = {}
        self._earlier: dict[tuple[int, str], object] = {}
        self._functions: list[FunctionType] = []
        self._set_parts = watch_functions()
        self._holders: list[FunctionType] = []
        self._cells: list[Any] = []
        self._contents: list[object] = []
        self._keys: list[int] = []
        self._versions = DictVersions()
        self._seen: list[int | None] = []
        """The version of each table in which no code was changed; None: some was, or there are no versions."""
        self._add([*_list_modules(), *list_classes().values()])

    def go_on(self, inside: Callable[[str], bool]) -> LoadedCode:
        """Take what was loaded since the zygote took this; from now on *inside* says what lies in the room."""
        self._inside = inside
        if any(get_address(one) not in self.by_owner for one in _list_modules()):
            self.take_modules(lambda _: True)
        return self

    def take(self) -> list[Change]:
        """Take everything as it is now, and what was loaded since; return what had changed."""
        changes = list(self.find_changes())
        for change in changes:
            self._earlier[get_address(change.owner), change.name] = change.before
            if table := self.by_owner.get(get_address(change.owner)):
                self.by_owner[get_address(change.owner)] = table._replace(before=table.live.copy())  # type: ignore[attr-defined]
        self._set_parts.clear()
        if changes:
            self._contents = list(map(_get_content, self._cells))
        self.take_modules(lambda place: not self._inside(place))
        return changes

    def take_tests(self, wanted: Callable[[str], bool]) -> None:
        """Take modules of tests as `take_modules` does, and keep no state of theirs: what they drop has to be gone."""
        self._holds_room = True
        self.take_modules(wanted)
        self._holds_room = False

    def take_modules(self, wanted: Callable[[str], bool]) -> None:
        """Take modules that were loaded since, with their classes, if their file, or an empty name, is *wanted*."""
        new = [one for one in _list_modules() if get_address(one) not in self.by_owner]
        modules = [one for one in new if wanted(find_file(one))]
        fresh, owners, classes = set(map(get_address, modules)), self.by_owner, list_classes()
        others = [one for key, one in classes.items() if key not in owners]
        homes = [(one, get_address(sys.modules.get(get_module_name(one)))) for one in others]
        self._add([*modules, *(one for one, home in homes if home in owners or home in fresh)])

    def _add(self, owners: Iterable[Any]) -> None:
        tables = self._take([(one, (_CLASS_NAMES if isinstance(one, type) else _MODULE_NAMES)(one)) for one in owners])
        functions = _list_functions(tables)
        self._take([(one, one.__kwdefaults__) for one in functions if one.__kwdefaults__])
        if self._set_parts:  # what was set before it is known is how it came
            known = set(map(get_address, self._functions))
            for key in [key for key in self._set_parts if key[0] not in known]:
                del self._set_parts[key]
        held = [(one, cell) for one in functions for cell in one.__closure__ or () if is_code(_get_content(cell))]
        self._functions += functions
        self._holders += [one for one, _ in held]
        self._cells += [cell for _, cell in held]
        self._contents += map(_get_content, self._cells[len(self._contents) :])

    def _take(self, owned: Sequence[tuple[Any, Any]]) -> list[Table]:
        versions = self._versions.add([live for _, live in owned])  # before the copies: what is written later is seen
        inside = self._holds_room
        tables = [
            Table(one, live, {n: _keep(n, v) for n, v in live.items()} if inside else live.copy())
            for one, live in owned
        ]
        self._keys += [get_address(one) for one, _ in owned]
        self._seen += versions or [None] * len(tables)
        self.by_owner.update((get_address(table.owner), table) for table in tables)
        return tables

    def find_changes(self) -> Iterator[Change]:
        """Yield everything that has changed, but for what is again what it was before it was taken."""
        versions = self._versions.read()
        for n in list(compress(count(), map(ne, versions, self._seen))) if versions else range(len(self._keys)):
            changes = self._compare(self._keys[n])
            self._seen[n] = None if changes or not versions else versions[n]
            yield from (c for c in changes if self._earlier.get((get_address(c.owner), c.name), c) is not c.now)
        known = set(map(get_address, self._functions)) if self._set_parts else ()
        for function, name, old in list(self._set_parts.values()):
            if get_address(function) in known and _PARTS_OF_FUNCTION[name](function) is not old:
                yield Change(function, "its inside", old, function)
        contents = list(map(_get_content, self._cells))
        for n in compress(count(), map(is_not, contents, self._contents)):
            yield Change(self._holders[n], "what it holds", self._contents[n], contents[n])

    def _compare(self, key: int) -> list[Change]:
        """Return what has changed in one table. Where only state has, that is the state from now on."""
        table = self.by_owner[key]
        if len(table.live) == len(table.before) and all(map(is_, table.before.values(), table.live.values())):
            return []
        now = table.live.copy()  # type: ignore[attr-defined]  # a dict, or a view of one
        changes = list(find_changed_names(table, now))
        if not changes:  # a function where there was none is state as well
            kept = {
                name: table.before.get(name) if is_code(value) else _keep(name, value) for name, value in now.items()
            }
            self.by_owner[key] = table._replace(before=kept)
        return changes


_remembered: list[LoadedCode] = []
"""Everything that the zygote took of which this process is a fork; empty in any other process."""


def remember() -> None:
    """Take all that is loaded, for the processes that are forked from this one."""
    code = LoadedCode(lambda _: False)
    _remembered[:] = [code] if not list(code.find_changes()) else []


def touch() -> None:
    """Compare the remembered code once, so that the next comparison costs less."""
    for code in _remembered:
        list(code.find_changes())
        list(list_classes())


def take_loaded_code(inside: Callable[[str], bool]) -> LoadedCode:
    """Return everything that is loaded; what the zygote took of it already is not taken again."""
    return _remembered[0].go_on(inside) if _remembered else LoadedCode(inside)


def watch_functions() -> dict[tuple[int, str], tuple[FunctionType, str, object]]:
    """Return the parts of functions that are set from now on, with what they were: empty, and filled as it happens.

    The interpreter raises an audit event for it (PEP 578). To compare the parts of all functions took longer than all
    else here.
    """
    found: dict[tuple[int, str], tuple[FunctionType, str, object]] = {}
    parts = _PARTS_OF_FUNCTION

    def watch_setting(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__setattr__" or event == "object.__delattr__":  # noqa: PLR1714  asked with every event
            function, name = arguments[:2]
            if type(function) is FunctionType and name in parts and (get_address(function), name) not in found:
                found[get_address(function), name] = (function, name, parts[name](function))

    sys.addaudithook(watch_setting)
    return found


def find_changed_names(table: Table, now: Mapping[str, object]) -> Iterator[Change]:
    """Yield the names in *table* that *now* stand for other code."""
    for name, old in table.before.items():
        # A constant decides as code does; what was None waits for its value.
        if now.get(name, GONE) is not old and (is_code(old) or (name.isupper() and old is not None)):
            yield Change(table.owner, name, old, now.get(name, GONE))
    for name in now:
        if name not in table.before and is_code(now[name]) and _hides(table.owner, name, now[name]):
            yield Change(table.owner, name, GONE, now[name])


def _hides(owner: Any, name: str, value: object) -> bool:
    """Return whether a new *name* of *owner* hides what was inherited, or a built-in.

    A module does not: nobody can call it. `encodings.ascii` comes to its package when it is imported.
    """
    if type(value) is ModuleType:
        return False
    if isinstance(owner, FunctionType):
        return True
    if isinstance(owner, type):
        return any(is_code(_CLASS_NAMES(base).get(name)) for base in owner.__mro__[1:])
    return owner.__name__ != "builtins" and name in _MODULE_NAMES(sys.modules["builtins"])


def find_file(owner: Any) -> str:
    """Return the file of the module that *owner* is, or was made in; empty if there is none."""
    module = owner if issubclass(type(owner), ModuleType) else sys.modules.get(get_module_name(owner))
    place = _MODULE_NAMES(module).get("__file__") if isinstance(module, ModuleType) else None
    return place if isinstance(place, str) else ""


def _list_modules() -> list[ModuleType]:
    return [one for one in list(sys.modules.values()) if issubclass(type(one), ModuleType)]


def list_classes() -> dict[int, type]:
    """Return all classes by their identity: a metaclass may say what it likes of equality."""
    seen: dict[int, type] = {}
    level: dict[int, Any] = {get_address(object): object}
    while level:
        seen.update(level)
        subclasses = list(chain.from_iterable(map(_SUBCLASSES, level.values())))
        level = {key: subclass for key, subclass in zip(map(get_address, subclasses), subclasses) if key not in seen}
    return seen


def _list_functions(tables: Iterable[Table]) -> list[FunctionType]:
    """Return the Python functions in *tables*, and those that they hold."""
    every = [value for _, _, names in tables for value in names.values()]
    values = list(compress(every, map(HOLDERS.__contains__, map(type, every))))
    found: dict[int, FunctionType] = {get_address(value): value for value in values if type(value) is FunctionType}
    held: list[object] = [value for value in values if type(value) is not FunctionType]
    more = list(found.values())
    while more or held:
        held += [_get_content(cell) for one in more for cell in one.__closure__ or ()]
        below = [function for function in map(unwrap_function, held) if function is not None]
        new = {get_address(function): function for function in below if get_address(function) not in found}
        found.update(new)
        more, held = list(new.values()), []
    return list(found.values())


def _keep(name: str, value: object) -> object:
    """Return *value* if it decides, under *name*: code, or a constant; None for state, which is not looked at."""
    return value if is_code(value) or name.isupper() else None


def _get_content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it
        return None
