"""Instances of the product's classes that a test made itself: how they compare is under test like any other method.

A test knows such a class by a name with a capital. An instance that the product hands back later may stand where data
was expected, so it is one no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jumar.child.two_process.wire.endings import is_unused

MADE = "_jumar_made"
"""Fact of an instance: `OWN`, `DERIVED` (an operator made it of such ones) or `RETURNED`."""

OWN, DERIVED, RETURNED = "own", "derived", "returned"

MAKER = "_jumar_maker"
"""Fact of a method that a test took from such a class: the class."""

SELVES = frozenset((
    "__enter__", "__iter__",
    *(f"__i{name}__" for name in ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift",
                                  "sub", "truediv", "xor")),
))  # fmt: skip
"""Special methods that return their own object by custom."""


class OwnInstances:
    """Notes which things of the product the tests made themselves. *get_fact* reads what was noted of a thing."""

    def __init__(self, get_fact: Callable[[Any, str], Any]) -> None:
        self._get_fact = get_fact
        self._given: list[Any] = []
        self._returned: list[tuple[Any, str]] = []
        """Things that came with the last answer, and what was noted of them before."""

    def note_given(self, thing: Any) -> None:
        """Note that *thing* came with a message."""
        self._given.append(thing)

    def settle(self, *, answered: bool) -> None:
        """Note whether what came since was an answer: then the product has handed it back."""
        given, self._given = self._given if answered else (), []
        self._returned = [(thing, made) for thing in given if (made := self._get_fact(thing, MADE))]
        for thing, _ in self._returned:
            object.__setattr__(thing, MADE, RETURNED)

    def note_maker(self, found: Any, kind: Any) -> None:
        """Note that the test took *found*, a method, from *kind*, a class that it knows."""
        object.__setattr__(found, MAKER, kind)

    def note_made(self, thing: Any) -> None:
        """Note that the test made *thing* itself."""
        object.__setattr__(thing, MADE, OWN)

    def note_result(self, answer: Any, name: str, thing: Any, frame: Any) -> None:
        """Note what the special method *name* of *thing* gave, which *frame* called.

        What returns its own object by custom hands nothing back, nor does what the test does nothing with.
        """
        made = next((before for returned, before in self._returned if returned is thing), self._get_fact(thing, MADE))
        if self._returned and ((answer is thing and name in SELVES) or is_unused(frame)):
            for returned, before in self._returned:
                object.__setattr__(returned, MADE, before)
        elif name == "__call__" and self._get_fact(thing, MAKER) is type(answer):
            self.note_made(answer)
        elif type(answer) is type(thing) and made and not self._get_fact(answer, MADE):
            object.__setattr__(answer, MADE, DERIVED)

    def get_made(self, thing: Any) -> Any:
        """Return what is noted of *thing*."""
        return self._get_fact(thing, MADE)

    def is_compared(self, sides: Sequence[Any]) -> bool:
        """Return whether the test compares what it made itself, or two things that came of such."""
        made = [self._get_fact(side, MADE) for side in sides]
        things = all(self._get_fact(side, "_jumar_thing") for side in sides)
        return OWN in made or (len(made) > 1 and things and DERIVED in made)
