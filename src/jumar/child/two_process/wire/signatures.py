"""Functions, flags and exceptions of one side as the other sees them without asking: names, parameters, arguments.

Defaults of parameters are told of the product's functions alone.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

DATA = (bool, int, str, float, type(None))
"""Types of plain data: of defaults of parameters, of extra data of log records, of attributes of classes."""

FLAGS = "_jumar_flags"
"""Fact of a proxy of a combination of flags: its value."""

EXTRAS = ("filename", "filename2", "name", "path")
"""Attributes that built-in exceptions keep beside their arguments."""

CHAIN = 4
"""So many causes of an exception cross with it."""

PLAIN = (str, int, float, bool)
"""Types of the attributes that cross."""

SILENT: list[Any] = [[], [], None, None, False]
"""Form of an exception of which nothing crosses but its class."""


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
        found = inspect.signature(function).parameters.values()
        parameters = [[p.name, int(p.kind), _describe_default(p, encode)] for p in found]
    except (TypeError, ValueError):
        parameters = None
    told = name if type(name) is str and not name.startswith("test") else "function"
    return [told, text if type(text) is str else None, parameters]


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


def fill_error(error: BaseException, base: type, args: tuple[Any, ...], extras: list[tuple[Any, Any]]) -> None:
    """Give *error*, of the built-in class *base*, its arguments, and what crossed with them: notes, and plain data.

    Nothing that the class defines: Python reads the `value` of a `StopIteration` to know how a context ends.
    """
    object.__setattr__(error, "args", args)
    for name, value in extras:
        if name == "__notes__" and type(value) is tuple:
            object.__setattr__(error, name, [note for note in value if type(note) is str])
        own = type(name) is str and not name.startswith("_") and (name in EXTRAS or not hasattr(base, name))
        if own and type(value) in PLAIN:
            object.__setattr__(error, name, value)


def describe_error(
    error: BaseException, held: dict[str, Any] | None, encode: Callable[[Any], Any], depth: int
) -> list[Any]:
    """Return the form of *error*; *held* are the attributes that may cross, None: those of built-in exceptions."""
    found = {name: getattr(error, name, None) for name in EXTRAS} if held is None else held
    kept = [[name, encode(value)] for name, value in found.items() if type(value) in PLAIN]
    notes = getattr(error, "__notes__", None)
    if type(notes) is list and all(type(note) is str for note in notes):
        kept.append(["__notes__", encode(tuple(notes))])
    arguments = [encode(argument) for argument in error.args]
    causes = (error.__cause__, error.__context__)
    chain = [encode(other) if other is not None and depth < CHAIN else None for other in causes]
    return [arguments, kept, *chain, error.__suppress_context__]
