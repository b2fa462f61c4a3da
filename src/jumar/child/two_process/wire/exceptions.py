"""Exceptions of one side as the other gets them: arguments, notes, plain data and causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

EXTRAS = ("filename", "filename2", "name", "path")
"""Attributes that built-in exceptions keep beside their arguments."""

CHAIN = 4
"""So many causes of an exception cross with it."""

PLAIN = (str, int, float, bool)
"""Types of the attributes that cross."""

SILENT: list[Any] = [[], [], None, None, False]
"""Form of an exception of which nothing crosses but its class."""


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


class CannotRunApart(BaseException):
    """The tests cannot be run this way. No `Exception`, so that tests do not catch it as one."""

    __test__ = False


class EndRefused(CannotRunApart):
    """The product answered by an exception that the tests must not see as it is."""


class ProductLost(CannotRunApart):
    """The product's process is gone, or does not keep to the protocol."""
