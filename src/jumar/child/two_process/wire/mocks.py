"""Parts of mocks that the product may have: mocks below one, and data that the tests set. Never what a mock expects.

To read a part runs the standard library's code and nothing else; a part that is a mock is called as any other.
"""

from __future__ import annotations

import sys
import types
from typing import Any

WITHHELD = frozenset((
    "attach_mock", "await_args", "await_args_list", "await_count", "call_args", "call_args_list", "call_count",
    "called", "configure_mock", "method_calls", "mock_calls", "reset_mock", "return_value", "side_effect",
))  # fmt: skip
"""Parts that say what the tests expect, or change it."""

PREFIXES = ("_", "assert", "mock_")
"""The same: beginnings of their names."""


def is_mock(kind: type) -> bool:
    """Return whether *kind* is a class of mocks."""
    base = _get("NonCallableMock")
    return base is not None and issubclass(kind, (base, _get("CallableMixin")))


def list_parts(mock: Any) -> frozenset[str]:
    """Return the names of parts of *mock* that somebody has set or read."""
    held = vars(mock)
    return frozenset((*held.get("_mock_children", ()), *held))


def is_callable(kind: type) -> bool:
    """Return whether *kind* is a class of mocks that can be called: a call of one runs only what the test gave."""
    mixin = _get("CallableMixin")
    return mixin is not None and issubclass(kind, mixin)


def is_function(function: Any) -> bool:
    """Return whether *function* is one that `create_autospec` made of another: it calls a mock."""
    held = function.__globals__ if type(function) is types.FunctionType else {}
    return "_checksig_" in held and "__file__" not in held and is_callable(type(held.get("mock")))


def is_code(code: types.CodeType) -> bool:
    """Return whether *code* is of the module of mocks: what an `AsyncMock` and `mock_open` return is stepped by it."""
    made = _get("mock_open")
    return made is not None and code.co_filename == made.__code__.co_filename


def offers(kind: type, name: str) -> bool:
    """Return whether *kind*, a class of mocks, has the special method *name* as a mock, or is called."""
    return name == "__call__" or _is_made(vars(kind)[name])


def list_members(kind: type) -> dict[str, str]:
    """Return how the product reads the parts of instances of *kind*, if it is the base of all mocks."""
    return {"__getattr__": "child", "__class__": "class"} if kind is _get("NonCallableMock") else {}


def find_part(mock: Any, name: str, found: Any) -> Any:
    """Return what the product calls to read the part *name* of *mock*, or as its special method.

    *found* is what its classes have under that name.

    Raises:
        TypeError: if the product may not have that part.
    """
    if name.startswith("__") and _is_made(found):
        return getattr(type(mock), name)
    is_property = isinstance(found, _get("PropertyMock"))
    if name in WITHHELD or name.startswith(PREFIXES) or not (found is None or is_property):
        raise TypeError("the product may not have that part of a mock")
    return lambda: _read(mock, name, anything=is_property)


def get_wrapped(mock: Any) -> Any:
    """Return what *mock* wraps, or None."""
    return vars(mock).get("_mock_wraps")


def _read(mock: Any, name: str, *, anything: bool) -> Any:
    """Return the part *name* of *mock*: one that the tests set, a mock below it, or *anything*."""
    value = getattr(mock, name)
    if not (anything or name in vars(mock) or is_mock(type(value))):
        raise TypeError("that part is no mock, and nothing that the tests set")
    return value


def _is_made(method: Any) -> bool:
    """Return whether *method*, a special one of a class of mocks, is a mock itself, or becomes one."""
    return is_mock(type(method)) or type(method) is _get("MagicProxy")


def _get(name: str) -> Any:
    return getattr(sys.modules.get("unittest.mock"), name, None)
