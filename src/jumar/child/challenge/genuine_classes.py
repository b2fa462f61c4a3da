"""Tells classes that stand in the file of their module from those that say so: the code under test may make any.

A class may say that it is of any module, and its code that it is of any file. What is asked here is the code itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

from jumar.child.challenge.deciding import get_bases, get_names, is_made_in_python, may_decide, walk_code

OF_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
"""Types of methods that are written in C."""

TOTAL_ORDERING = tuple(function for pairs in vars(functools).get("_convert", {}).values() for _, function in pairs)
"""Methods that `functools.total_ordering` gives to a class, as they were before the code under test."""

PLAIN_TYPES = (bool, int, float, str, type(None), object, types.BuiltinFunctionType)
"""Types of what a method may be given by its defaults, and by what it was made in."""

ORDERING = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
"""Methods that `dataclasses` writes."""

EXACT = frozenset({*ORDERING, "__ne__", "__contains__"})
"""Methods that no body of a class takes from under another name."""


class GenuineClasses:
    """Knows the code of files in *folders*; *was_there* tells which classes were before the code under test was."""

    def __init__(self, was_there: Callable[[type], bool], folders: Iterable[str]) -> None:
        self._was_there, self._folders = was_there, tuple(f"{os.path.realpath(one)}{os.sep}" for one in folders)
        self._written: dict[str, list[types.CodeType]] = {}
        """File -> all code in it."""

    def add_file(self, file: str, code: types.CodeType) -> None:
        """Note the *code* that is run as the *file*, of the tests."""
        self._written[file] = list(walk_code(code))

    def is_genuine(self, kind: type) -> bool:
        """Return whether all that lets objects of *kind* decide is written where it says, if the interpreter knows."""
        if self._was_there(kind) or not is_made_in_python(kind):
            return True
        return all(self._is_written(kind, name, value) for name, value in get_names(kind).items() if may_decide(name))

    def is_written(self, function: Any, file: str) -> bool:
        """Return whether the code of *function* stands in a *file* of the tests."""
        code = getattr(function, "__code__", None)
        return any(one is code for one in self._written.get(file, ()))

    def _is_written(self, kind: type, name: str, value: Any) -> bool:
        if any(get_names(base).get(name) is value for base in get_bases(kind)[1:]):
            return True  # that base is asked itself
        function = value
        if type(value) in (property, classmethod, staticmethod):
            function = value.fget if type(value) is property else value.__func__
        if type(function) in OF_C:
            return bool(function.__name__ == name)
        if type(function) is not types.FunctionType:
            return value is None
        return any(one is function for one in TOTAL_ORDERING) or self._stands_in(kind, name, function)

    def _stands_in(self, kind: type, name: str, function: types.FunctionType) -> bool:
        """Return whether the body of *kind* has *function* under this *name*, in the file of its module."""
        names, code = function.__globals__, function.__code__
        module: Any = sys.modules.get(str(names.get("__name__")))
        if getattr(module, "__dict__", None) is not names or not _is_by_itself(function, kind):
            return False
        if name in ORDERING and code in _write_ordering(kind):
            return True
        written = self._read(str(module.__name__), str(names.get("__file__")))
        bodies = [one for one in written if one.co_name == kind.__name__ and name in one.co_names]
        others = name not in EXACT or code.co_name == name
        direct = others and any(one == code for body in bodies for one in body.co_consts)
        return direct or any(one == code for body in bodies for part in body.co_consts for one in _walk_within(part))

    def _read(self, module: str, file: str) -> list[types.CodeType]:
        if file not in self._written:
            code: Any = None
            # The code under test may write a file elsewhere, and say that a module is of it.
            if os.path.realpath(file).startswith(self._folders):
                with contextlib.suppress(OSError, SyntaxError, ImportError, ValueError, EOFError):
                    code = SourceFileLoader(module, file).get_code(module)
            self._written[file] = list(walk_code(code)) if code else []
        return self._written[file]


def _walk_within(value: Any) -> Iterator[types.CodeType]:
    """Yield the code in *value*, a function that makes methods, but not its own."""
    if isinstance(value, types.CodeType):
        for one in value.co_consts:
            yield from walk_code(one) if isinstance(one, types.CodeType) else ()


def _is_by_itself(function: types.FunctionType, kind: type) -> bool:
    """Return whether all that *function*, of the class *kind*, was given is plain, or stands in the same file."""
    given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    given += [one for one in map(_read_cell, function.__closure__ or ()) if one is not kind]
    functions = [one for one in given if type(one) is types.FunctionType]
    code, names = function.__code__, function.__globals__
    same = all(one.__globals__ is names and one.__code__.co_filename == code.co_filename for one in functions)
    return same and all(one in functions or type(one) in PLAIN_TYPES for one in given)


def _read_cell(cell: Any) -> Any:
    """Return what is in *cell*; itself, if it is empty."""
    with contextlib.suppress(ValueError):
        return cell.cell_contents
    return cell


def _write_ordering(kind: type) -> list[types.CodeType]:
    """Return the code of the methods that `dataclasses` writes for a class with the fields of *kind*."""
    fields: Any = get_names(kind).get("__dataclass_fields__")
    if type(fields) is not dict or not all(type(one) is str and one.isidentifier() for one in fields):
        return []
    compared = [(name, object) for name, field in fields.items() if getattr(field, "compare", None) is True]
    made = dataclasses.make_dataclass(kind.__name__, compared, order=True)
    return [vars(made)[name].__code__ for name in ORDERING]
