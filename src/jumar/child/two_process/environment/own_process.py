"""Tells by which name a test looks at its own process, or arranges it: what the product does to its is not seen there.

Functions and classes of the tests' files that the test, its fixtures and its class name are looked at, and those that
they name in turn.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jumar.child.challenge.asserting_functions import list_all, list_functions

STATE = frozenset((
    "__stderr__", "__stdout__", "abspath", "active_count", "all_tasks", "codecs.lookup", "csv.get_dialect",
    "csv.list_dialects", "cwd", "environ", "excepthook", "gc", "get_state", "getcontext", "getcwd", "getcwdb", "getenv",
    "getrecursionlimit", "getsignal", "getstate", "gettempdir", "meta_path", "mimetypes.guess_extension",
    "mimetypes.guess_type", "mimetypes.types_map", "modules", "process_time", "process_time_ns", "psutil",
    "set_exception_handler", "setrecursionlimit", "sqlite3.Connection", "sys.argv", "sys.path", "threading.enumerate",
    "tracemalloc", "traps", "umask", "warnings.filters", "weakref",
))  # fmt: skip
"""Names of what a process has; with a dot: of what a module has, as others have that name, too."""

OF_LOGGERS = frozenset(("handlers", "filters", "hasHandlers"))
"""Names of what a logger has, which the product may have added: other things have attributes of that name, too."""

CARRIED = ("sys", "builtins")
"""Modules of which the product gets what a test sets."""

NAMED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
"""Types of what may be imported under another name."""


def find_state(things: Iterable[Any], is_file: Callable[[Any], bool], is_own_class: Callable[[Any], bool]) -> str:
    """Return by which name *things*, or those of the tests' files that they reach, look at their process; or "".

    Things are functions, classes and objects; *is_own_class* tells those of the tests' files.
    """
    todo, seen = list(things), set()
    while todo:
        thing = todo.pop()
        if type(thing) in NAMED and thing.__name__ in STATE:
            return str(thing.__name__)
        found = thing if issubclass(type(thing), (type, types.FunctionType)) else type(thing)
        if id(found) in seen:
            continue
        seen.add(id(found))
        if type(found) is not types.FunctionType:
            bodies = (vars(base) for base in found.__mro__ if is_own_class(base)) if is_own_class(found) else ()
            members = (value for body in bodies for name, value in body.items() if name[:4] != "test")
            todo += [each for value in members for each in list_functions(value)]
            continue
        todo.append(vars(found).get("__wrapped__"))
        if is_file(found.__globals__.get("__file__")):
            names = {name for code in list_all(found.__code__) for name in code.co_names}
            if looked := _find_name(found, names, is_file):
                return looked
            todo += _list_named(found.__globals__, names, is_file)
    return ""


def _list_named(held: dict[str, Any], names: set[str], is_file: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield what *names* stand for in *held*, and in the modules of the tests' files that they name."""
    for value in (held[name] for name in names if name in held):
        yield value
        if type(value) is types.ModuleType and is_file(vars(value).get("__file__")):
            yield from (vars(value).get(name) for name in names)


def _find_name(function: types.FunctionType, names: set[str], is_file: Callable[[Any], bool]) -> str:
    held: dict[str, Any] = function.__globals__
    aliased: dict[str, str] = {name: held[name].__name__ for name in names if type(held.get(name)) in NAMED}
    for name in (*names, *aliased.values()):
        if name in STATE:
            return name
    for dotted, value in _list_dotted():
        if any(held.get(name) is value for name in names):
            return dotted
    attributes = _list_attributes(function.__code__)
    logs = "getLogger" in names or any(type(held.get(name)).__module__ == "logging" for name in names)
    if logs and ("logging", "handlers", False) not in attributes and (looked := OF_LOGGERS & names):
        return f"{min(looked)} of loggers"
    for owner, name, sets in attributes:
        module: Any = held.get(owner)
        dotted = f"{aliased.get(owner, owner)}.{name}"
        library = type(module) is types.ModuleType and not is_file(vars(module).get("__file__"))
        if dotted in STATE or (sets and library and module.__name__ not in CARRIED):
            return dotted
    return ""


def _list_dotted() -> Iterator[tuple[str, Any]]:
    """Yield the names in `STATE` that have a dot, each with what it stands for now: it may be imported by itself."""
    for dotted in STATE:
        module, dot, name = dotted.rpartition(".")
        if dot and name in vars(sys.modules.get(module, types)):
            yield dotted, vars(sys.modules[module])[name]


@functools.lru_cache(maxsize=1000)
def _list_attributes(code: types.CodeType) -> tuple[tuple[str, str, bool], ...]:
    """Return the attributes of names in *code*: the name, the attribute, and whether it is set."""
    steps = [step for inner in list_all(code) for step in dis.get_instructions(inner)]
    pairs = zip(steps, steps[1:])  # noqa: B905, RUF007  Python 3.8 has neither
    attributes = ((one, two) for one, two in pairs if two.opname in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"))
    return tuple((str(one.argval), str(two.argval), two.opname == "STORE_ATTR") for one, two in attributes)
