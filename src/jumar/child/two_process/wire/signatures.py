"""Functions of one side as the other sees them without asking: name, text and parameters, but no default."""

from __future__ import annotations

import inspect
import types
from typing import Any


def describe(function: Any) -> Any:
    """Return the form of *function*, or None: it is no function.

    A default is told as `...`, as it may be what a test expects; a name that pytest looks for tells which test runs.
    """
    if type(function) not in (types.FunctionType, types.MethodType):
        return None
    name, text = function.__name__, function.__doc__
    try:
        found = inspect.signature(function).parameters.values()
        parameters = [[p.name, int(p.kind), p.default is not p.empty] for p in found]
    except (TypeError, ValueError):
        parameters = None
    told = name if type(name) is str and not name.startswith("test") else "function"
    return [told, text if type(text) is str else None, parameters]


def apply(proxy: Any, state: list[Any]) -> None:
    """Let *proxy* have the name, text and parameters of the function that it stands for."""
    name, text, parameters = state
    if not isinstance(name, str) or not (text is None or isinstance(text, str)):
        raise ValueError("a function without a name")
    for key, value in (("__name__", name), ("__qualname__", name), ("__doc__", text)):
        object.__setattr__(proxy, key, value)
    if parameters is not None:
        kept = [
            inspect.Parameter(n, inspect._ParameterKind(kind), default=... if given else inspect.Parameter.empty)  # noqa: SLF001  it has no other name
            for n, kind, given in parameters
        ]
        object.__setattr__(proxy, "__signature__", inspect.Signature(kept))
