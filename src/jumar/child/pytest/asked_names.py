"""Finds the code that tests use: the names in their files, and what those use in turn.

Honest programs exchange `print` or `sys.excepthook` for good, and no test asks those for an answer. It is looked at
only when code has changed, with nothing but what is written in C: other code of the standard library may be what has
changed.
"""

# ruff: noqa: B905  zip has no `strict` before Python 3.10

from __future__ import annotations

import builtins
import contextlib
import importlib
import opcode
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from jumar.child.pytest.code_identity import FRAMEWORK, get_address, get_module_name, unwrap_function
from jumar.child.pytest.loaded_code import GONE, Change, LoadedCode

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

IMPORTS = re.compile(rb"^(?:from[ \t]+([\w.]+)|import[ \t]+([\w. \t,]+))", re.MULTILINE)
EFFECTS = re.compile(rb"^[ \t]*(?:[\w.]*\.)?\w+[ \t]*\(|#.*$", re.MULTILINE)
"""Remarks, and functions that are called for nothing but their effect."""
WORD = re.compile(rb"[^\W\d]\w*")

LOADS = tuple(opcode.opmap.get(name, -1) for name in ("LOAD_GLOBAL", "LOAD_NAME"))
STORES = (opcode.opmap["STORE_GLOBAL"],)
SHIFTED = LOADS[0] if sys.version_info >= (3, 11) else -1
"""The operation whose argument has a flag in its last bit."""


def load_imports(sources: Iterable[bytes], room: str) -> None:
    """Import what test files import of the standard library, before the code under test can.

    The *room* may have a module of that name, which the tests mean: then it is left to them.
    """
    known = getattr(sys, "stdlib_module_names", ())
    named = {name for source in sources for name in _list_imports(source) if name not in sys.modules}
    names = sorted(name for name in named if name.partition(".")[0] in known)
    theirs = (
        {name.partition(".")[0] for _, folders, files in os.walk(room) for name in (*folders, *files)} if names else ()
    )
    for name in names:
        if name.partition(".")[0] not in theirs:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def _list_imports(source: bytes) -> Iterator[str]:
    for one, several in IMPORTS.findall(source):
        for name in (one or several).split(b","):
            yield from (word.decode("ascii", "replace") for word in name.split()[:1])


class AskedNames:
    """Names that the tests in *sources* use of what was *loaded* before them."""

    def __init__(self, sources: Sequence[bytes], loaded: LoadedCode) -> None:
        self._loaded = loaded
        self._modules = {name for source in sources for name in _list_imports(source)}
        self._names: set[str] = set()
        for source in sources:
            self._names.update(word.decode("ascii", "replace") for word in WORD.findall(EFFECTS.sub(b" ", source)))
        self._reached: set[tuple[int, str]] = set()
        self._classes: set[int] = set()
        self._reach()

    def __contains__(self, change: Change) -> bool:
        """Return whether tests use the code that has changed."""
        owner, name = change.owner, change.name
        if isinstance(owner, FunctionType):
            return True
        if isinstance(owner, type):
            return is_special(name) or name in self._names or get_address(owner) in self._classes
        if change.before is GONE:  # what hides a built-in is never for show
            return True
        if f"__{name}__" in self._loaded.by_owner[get_address(owner)].before:  # a hook, with what it was beside it
            return False
        return name in self._names or ((get_address(owner), name) in self._reached and name not in _list_state(owner))

    def imports(self, module: str) -> bool:
        """Return whether the tests import *module* or what lies in it."""
        return any(name == module or name.startswith(f"{module}.") for name in self._modules)

    def _reach(self) -> None:
        """Follow what the tests name into what it uses, within its own package."""
        todo: list[tuple[str, object]] = []
        for name in self._modules.difference(FRAMEWORK):
            table = self._loaded.by_owner.get(get_address(sys.modules.get(name)))
            todo += [(name, table.before[one]) for one in self._names.intersection(table.before)] if table else []
        seen: set[int] = set()
        while todo:
            home, value = todo.pop()
            function, table = unwrap_function(value), self._loaded.by_owner.get(get_address(value))
            if get_address(value) in seen or _get_package(function or value) != home.partition(".")[0]:
                continue
            seen.add(get_address(value))
            if isinstance(value, type) and table:
                self._classes.add(get_address(value))
                todo += [(home, one) for one in table.before.values()]
            elif function is not None:
                todo += [(home, one) for one in self._list_used(function)]

    def _list_used(self, function: FunctionType) -> Iterator[object]:
        """Yield the code that *function* finds by name in its module, in another or among the built-ins."""
        home = next((t for t in self._loaded.by_owner.values() if t.live is function.__globals__), None)
        builtins: Any = self._loaded.by_owner[get_address(sys.modules["builtins"])]
        for name in _list_operands(function.__code__, LOADS):
            table = home if home and name in home.before else builtins
            value = table.before.get(name)
            self._reached.add((get_address(table.owner), name))
            yield value
            if isinstance(value, ModuleType) and get_address(value) in self._loaded.by_owner:
                self._reached.update((get_address(value), attribute) for attribute in function.__code__.co_names)


def is_special(name: str) -> bool:
    """Return whether Python itself asks for *name*."""
    return name[:2] == name[-2:] == "__"


def _get_package(thing: object) -> str:
    home = get_module_name(thing) if isinstance(thing, (FunctionType, type)) else ""
    return home.partition(".")[0]


def _list_state(module: ModuleType) -> set[str]:
    """Return the names that functions of *module* bind anew: it keeps what it was told there."""
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    return {name for one in functions for name in _list_operands(one.__code__, STORES)}


def _list_operands(code: CodeType, operations: Sequence[int]) -> Iterator[str]:
    steps, extended = code.co_code, 0
    for operation, given in zip(steps[::2], steps[1::2]):
        argument = extended << 8 | given
        extended = argument if operation == opcode.EXTENDED_ARG else 0
        if operation in operations:
            yield code.co_names[argument >> (operation == SHIFTED)]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _list_operands(const, operations)
