"""Tells classes that stand in the file of their module from those that say so: the code under test may make any.

A class may say that it is of any module, and its code that it is of any file. What is asked here is the code itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

from jumar.child.challenge.deciding import DECIDING, HEAP

OF_C = (
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
"""Types of methods that are written in C."""

ORDERING = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
"""Methods that `dataclasses` writes."""


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
        if self._was_there(kind) or not kind.__flags__ & HEAP:
            return True
        return all(self._is_written(kind, name, value) for name, value in vars(kind).items() if name in DECIDING)

    def is_written(self, function: Any, file: str) -> bool:
        """Return whether the code of *function* stands in a *file* of the tests."""
        code = getattr(function, "__code__", None)
        return any(one is code for one in self._written.get(file, ()))

    def _is_written(self, kind: type, name: str, value: Any) -> bool:
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(function, OF_C):
            return function.__name__ == name
        if not isinstance(function, types.FunctionType):
            return value is None or isinstance(value, type)
        names, code = function.__globals__, function.__code__
        module: Any = sys.modules.get(str(names.get("__name__")))
        if getattr(module, "__dict__", None) is not names:
            return False
        if name in ORDERING and code in _write_ordering(kind):
            return True
        return any(one == code for one in self._read(str(module.__name__), str(names.get("__file__"))))

    def _read(self, module: str, file: str) -> list[types.CodeType]:
        if file not in self._written:
            code: Any = None
            # The code under test may write a file elsewhere, and say that a module is of it.
            if os.path.realpath(file).startswith(self._folders):
                with contextlib.suppress(OSError, SyntaxError, ImportError, ValueError, EOFError):
                    code = SourceFileLoader(module, file).get_code(module)
            self._written[file] = list(walk_code(code)) if code else []
        return self._written[file]


def walk_code(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield *code*, and all code in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from walk_code(one)


def _write_ordering(kind: type) -> list[types.CodeType]:
    """Return the code of the methods that `dataclasses` writes for a class with the fields of *kind*."""
    fields: Any = vars(kind).get("__dataclass_fields__")
    if type(fields) is not dict or not all(type(one) is str and one.isidentifier() for one in fields):
        return []
    compared = [(name, object) for name, field in fields.items() if getattr(field, "compare", None) is True]
    made = dataclasses.make_dataclass(kind.__name__, compared, order=True)
    return [vars(made)[name].__code__ for name in ORDERING]
