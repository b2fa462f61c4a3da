"""Takes and compares the snapshots of the tamper check: framework names, hook functions, parts of a test.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer. Nothing here asks an object
under suspicion for anything that it could answer itself: no `==`, no attribute of its own making.
"""

from __future__ import annotations

import sys
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from jumar.child.start import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FRAMEWORK = ("_pytest", "pytest", "pluggy", "unittest")
"""Packages that decide what became of a test."""

PURE = ("AssertionError", "abs", "all", "any", "bool", "bytes", "callable", "dict", "divmod", "enumerate", "filter",
        "float", "frozenset", "getattr", "hasattr", "hash", "int", "isinstance", "issubclass", "iter", "len", "list",
        "map", "max", "min", "next", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple",
        "type", "zip")  # fmt: skip
"""Builtins that assertions are made of. The others (open, print, input, __import__) are replaced by honest programs."""

ASKED = ("cmath", "collections", "decimal", "difflib", "fractions", "json", "math", "operator", "re", "statistics")
"""Modules whose functions tests ask whether something is right. Those of them are compared that are loaded early."""

PARTS = (FunctionType, type, BuiltinFunctionType, classmethod, staticmethod, property)
"""Kinds of values that are compared. Other values of the framework are its state."""


class Namespace(NamedTuple):
    """Names of a module or class whose values must stay the same."""

    where: str
    owner: object
    table: Mapping[str, object]
    """The live names of a module or class."""
    size: int
    names: tuple[str, ...]
    values: tuple[object, ...]
    state: frozenset[str] = frozenset()
    """The names that are not compared."""


class TestFingerprint(NamedTuple):
    """Parts of a collected test: its function, its code and its parameters."""

    parts: tuple[object, ...]
    """Its function, its code and the values of its parameters."""
    content: int
    """The hash of its code: constants can be overwritten in place."""


class HookFingerprint(NamedTuple):
    """The way a hook is called, and its implementations."""

    caller: Any
    called: tuple[object, object]
    implementations: Sequence[Any]
    functions: Sequence[object]
    below: Sequence[FunctionType]
    """The functions, without what binds them."""
    codes: Sequence[object]

    @property
    def parts(self) -> tuple[object, ...]:
        """All that must stay what it is."""
        return (*self.called, *self.functions, *self.codes)


def list_spaces() -> Iterator[Namespace]:
    """Yield the modules of the framework, their classes, the pure builtins, and what those modules are imported as."""
    seen: set[int] = set()
    for full, module in sorted(sys.modules.items()):
        if full.partition(".")[0] in FRAMEWORK and isinstance(module, ModuleType):
            yield _space(full, module, vars(module))
            for value in list(vars(module).values()):
                own = isinstance(value, type) and value.__module__.partition(".")[0] in FRAMEWORK
                if own and id(value) not in seen:
                    seen.add(id(value))
                    yield _space(f"{value.__module__}.{value.__qualname__}", value, vars(value))
    builtins = vars(sys.modules["builtins"])
    yield Namespace("builtins", None, builtins, len(builtins), PURE, tuple(map(builtins.get, PURE)))
    for name in filter(sys.modules.__contains__, ASKED):
        yield _space(name, sys.modules[name], vars(sys.modules[name]))
    names = tuple(name for name in sys.modules if name.partition(".")[0] in FRAMEWORK or name in ASKED)
    yield Namespace("sys.modules", None, sys.modules, len(sys.modules), names, tuple(map(sys.modules.get, names)))


def _space(where: str, owner: object, table: Mapping[str, object]) -> Namespace:
    parts = {name: value for name, value in table.items() if _is_part(value)}
    return Namespace(
        where, owner, table, len(table), tuple(parts), tuple(parts.values()), frozenset(table).difference(parts)
    )


def find_hiding_names(space: Namespace) -> Iterator[str]:
    """Yield the names in the class of *space* that are new there and hide an inherited part."""
    bases: Sequence[type] = getattr(space.owner, "__mro__", ())[1:]
    for name in set(space.table).difference(space.names):
        if name not in space.state and any(_is_part(vars(base).get(name)) for base in bases):
            yield name


def _is_part(value: object) -> bool:
    return isinstance(value, PARTS)


def snapshot_hook(manager: Any, name: str) -> HookFingerprint:
    """Return how the hook *name* is called now, and what implements it."""
    caller = getattr(manager.hook, name, None)
    implementations = caller.get_hookimpls() if caller else []
    functions = [one.function for one in implementations]
    below = [one for one in map(unwrap_function, functions) if one is not None]
    called = (getattr(caller, "_hookexec", None), getattr(manager, "_inner_hookexec", None))
    return HookFingerprint(caller, called, implementations, functions, below, [one.__code__ for one in below])


def is_unchanged(manager: Any, hook: HookFingerprint) -> bool:
    """Return whether a hook is still called and implemented as it was."""
    caller, called = hook.caller, (getattr(hook.caller, "_hookexec", None), getattr(manager, "_inner_hookexec", None))
    if caller is None or not are_identical(hook.called, called):
        return caller is None
    implementations = caller.get_hookimpls()
    return (
        are_identical(hook.implementations, implementations)
        and all(map(is_, map(attrgetter("function"), implementations), hook.functions))
        and all(map(is_, map(attrgetter("__code__"), hook.below), hook.codes))
    )


def contains_identity(one: object, known: Sequence[object]) -> bool:
    """Return whether *one* itself is in *known*."""
    return any(one is other for other in known)


def is_ours(function: object) -> bool:
    """Return whether *function* belongs to a plug-in of jumar."""
    below = unwrap_function(function)
    return below is not None and below.__code__.co_filename.startswith(FOLDER)


def snapshot_test(item: Any) -> TestFingerprint:
    """Return the parts of *item*, without making an instance of its class."""
    owner, name = getattr(item.parent, "obj", None), getattr(item, "originalname", None) or item.name
    if isinstance(owner, type):
        held: object = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    else:
        held = vars(item).get("_obj")
    code = getattr(unwrap_function(held), "__code__", None)
    params = getattr(getattr(item, "callspec", None), "params", {})
    return TestFingerprint((unwrap_function(held), code, *params.values()), hash(code))


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


def find_source_files(value: object) -> list[str]:
    """Return the files that *value*, a function, a class or any object, comes from."""
    if isinstance(value, FunctionType):
        written, loaded = value.__code__.co_filename, value.__globals__.get("__file__")
        return [place for place in (written, loaded) if isinstance(place, str) and place[:1] != "<"]
    kind = value if isinstance(value, type) else type(value)
    module = sys.modules.get(str(kind.__module__))
    place = getattr(module, "__file__", None)
    return [place] if isinstance(place, str) else []
