"""Functions and flags of one side as the other sees them without asking: names, parameters, values.

Defaults of parameters are told of the product's functions alone.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Iterator
from typing import Any

DATA = (bool, int, str, float, type(None))
"""Types of plain data: of defaults of parameters, of extra data of log records, of attributes of classes."""

FLAGS = "_jumar_flags"
"""Fact of a proxy of a combination of flags: its value."""


def describe(function: Any, encode: Any) -> Any:
    """Return the form of *function*, or of flags; None: it is neither. *encode* tells plain defaults of the product's.

    A default of the tests is told as `...`, as it may be what they expect; a name that pytest looks for tells which
    test runs.
    """
    if issubclass(type(function), enum.Flag):
        return function._value_
    if type(function) not in (types.FunctionType, types.MethodType):
        return None
    name, text = function.__name__, function.__doc__
    try:
        found = _get_signature(function).parameters.values()
        parameters = [[p.name, int(p.kind), _describe_default(p, encode)] for p in found]
    except (TypeError, ValueError):
        parameters = None
    told = name if type(name) is str and not name.startswith("test") else "function"
    return [told, text if type(text) is str else None, parameters]


def list_wrapped(function: Any) -> Iterator[types.FunctionType]:
    """Yield *function*, if it is one in Python, and what it wraps, one within another."""
    for _ in range(8):
        if type(function) is not types.FunctionType:
            return
        yield function
        function = vars(function).get("__wrapped__")


def _get_signature(function: Any) -> inspect.Signature:
    """Return the signature of *function*, as far as it wraps no mock: each look at one would ask the tests."""
    for each in list_wrapped(function):
        if isinstance(inspect.getattr_static(vars(each).get("__wrapped__"), "__class__", None), property):
            return inspect.signature(each, follow_wrapped=False)
    return inspect.signature(function)


def _describe_default(parameter: inspect.Parameter, encode: Any) -> Any:
    """Return False, if *parameter* has no default; a list with the form of one that is told; else True."""
    default = parameter.default
    items = default if type(default) is tuple else (default,)
    told = encode is not None and all(type(item) in DATA for item in items)
    return [encode(default)] if told else default is not parameter.empty


def apply(proxy: Any, state: Any, decode: Any) -> None:
    """Let *proxy* have the name, text and parameters of the function that it stands for, or the value of flags."""
    if type(state) is int:
        object.__setattr__(proxy, FLAGS, state)
        return
    name, text, parameters = decode(state[0]), decode(state[1]), state[2]
    if not isinstance(name, str) or not (text is None or isinstance(text, str)):
        raise ValueError("a function without a name")
    for key, value in (("__name__", name), ("__qualname__", name), ("__doc__", text)):
        object.__setattr__(proxy, key, value)
    if parameters is not None:
        kept = [
            inspect.Parameter(n, inspect._ParameterKind(kind), default=_get_default(given, decode))  # noqa: SLF001  it has no other name
            for n, kind, given in parameters
        ]
        object.__setattr__(proxy, "__signature__", inspect.Signature(kept))


def _get_default(given: Any, decode: Any) -> Any:
    if type(given) is list:
        return decode(given[0])
    return ... if given else inspect.Parameter.empty
