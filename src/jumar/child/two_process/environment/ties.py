"""Ties: what a test does that needs the product in its own process, and whether the product had a part in that."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from jumar.child.two_process.wire.containers.shared_container import get_fact
from jumar.child.two_process.wire.own_instances import REACHED

ANSWERED = "_jumar_answered"
"""Fact of a class of the product: it came as a value, so it may stand where data is due."""

FUNCTIONS = tuple(("builtins", name) for name in ("function", "method", "builtin_function_or_method"))
"""Types of functions and methods: module and name."""

METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
"""Types of methods that are bound to their object."""

DATA = (type(None), bool, int, float, str, bytes, list, tuple, set, frozenset, type, types.ModuleType)
"""Types of answers of which a test hands out no method that could be another thing's."""


class Ties:
    """Notes what ties a test to one process: its own doing, or a step that it took with what the product answered.

    The product chooses what it answers: where data is due, an object would have the test take another step.
    """

    def __init__(self, is_own: Callable[[Any], bool]) -> None:
        """*is_own* tells a module or class that the tests know by a name of theirs, and what they made of one."""
        self._is_own = is_own
        self.own = False
        """True if the test did that itself."""
        self.led = False
        """True if the product had a part in that."""
        self._serving = 0
        """Number of requests of the product that are being served: it chooses when."""
        self._asked: Any = None
        self._library = False
        """True if the product has answered by a thing of a library in this test: a path, a pattern, a range."""
        self._answered: list[Any] = []
        """Answers of this test that have methods of a library; those while files were loaded are lasting."""
        self._lasting: list[Any] = []
        self._classes: set[type] = set()
        """Classes of libraries that came from the product."""

    @contextlib.contextmanager
    def ask(self, thing: Any = None) -> Iterator[None]:
        """Let what is noted in the body be about a request to *thing*."""
        before, self._asked = self._asked, thing
        try:
            yield
        finally:
            self._asked = before

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """Let what is noted in the body be the doing of the product."""
        self._serving += 1
        try:
            yield
        finally:
            self._serving -= 1

    @contextlib.contextmanager
    def keep(self) -> Iterator[None]:
        """Note nothing in the body, a comparison: what it would hand out does not say why the test is given up.

        It is a class of the product that would decide there, whatever the other thing is.
        """
        before = self.own, self.led
        try:
            yield
        finally:
            self.own, self.led = before

    def note(self, thing: Any = None) -> None:
        """Note what ties the test: a step with *thing*, of the product, or with what is being asked."""
        thing = self._asked if thing is None else thing
        apart = get_fact(thing, "_jumar_thing") is not None or get_fact(thing, "_jumar_peer") is not None
        answered = apart and not (self._is_reached(thing) or get_fact(thing, REACHED))
        self.add(led=answered or bool(self._serving) or self._knows(thing))

    def note_handed(self, value: Any) -> None:
        """Note that a test hands out *value*, which cannot cross: it may be of a thing that the product answered.

        It is if it is a method of one, and may be wherever one of a library came in this test.
        """
        if self._library or (isinstance(value, METHODS) and self._is_answered(value.__self__)):
            self.add(led=True)
        else:
            self.note()

    def _is_answered(self, thing: Any) -> bool:
        """Return whether *thing* is one that the product answered, or a number, say, of a class of its own."""
        foreign = get_fact(thing, "_jumar_peer") is not None and not self._is_reached(thing)
        return foreign or any(thing is each for each in (*self._lasting, *self._answered))

    def note_answer(self, value: Any, *, lasting: bool) -> None:
        """Note that the product answered *value*; *lasting*: while files of the tests were loaded."""
        if type(value) not in DATA and get_fact(value, "_jumar_peer") is None:
            (self._lasting if lasting else self._answered).append(value)

    def note_library(self) -> None:
        """Note that a thing of a library crosses; a test can do more with it than with data."""
        self._library = True

    def begin_test(self) -> None:
        """Forget what earlier tests were answered and did."""
        self._library = False
        self._answered.clear()
        self.take()

    def add(self, *, led: bool) -> None:
        """Note a tie in which the product had a part, or none."""
        self.led |= led
        self.own |= not led

    def _knows(self, thing: Any) -> bool:
        """Return whether *thing* is a class of a library that the product handed over."""
        return issubclass(type(thing), type) and thing in self._classes

    def mark(self, found: Any, thing: Any) -> None:
        """Mark *found*, of *thing*, if it is a function or method of what the tests know by a name, or made."""
        kind = type(found)
        if get_fact(found, "_jumar_thing") is not None and (kind.__module__, kind.__name__) in FUNCTIONS:
            object.__setattr__(found, REACHED, self._is_reached(thing))

    def _is_reached(self, thing: Any) -> bool:
        return self._is_own(thing) and not get_fact(thing, ANSWERED)

    def note_answered(self, kind: Any) -> None:
        """Note that the class *kind* of the product came as a value, or a module of it."""
        (types.ModuleType if issubclass(type(kind), types.ModuleType) else type).__setattr__(kind, ANSWERED, True)

    def note_library_class(self, kind: type) -> None:
        """Note that the product handed over *kind*, a class of a library: a test may take it for one of its own."""
        self._classes.add(kind)

    def take(self) -> str:
        """Return `tied`, `led`, or an empty text: what was noted since this was asked the last time."""
        said = "tied" if self.own else "led" if self.led else ""
        self.own = self.led = False
        return said
