"""Comparisons and assertions of the tests: which run, who asserts, what is data of one object that the product has."""

from __future__ import annotations

import collections
import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

from jumar.child.challenge.questions import Listener
from jumar.child.two_process.wire import mocks
from jumar.child.two_process.wire.containers.shared_container import get_fact

RECENT = 32
"""Operands before an assertion that are remembered: a test may compare without end and assert nothing."""

LEVELS, MOST = 2, 1000
"""Levels of containers in an object that are looked at, and parts of each."""

CONTAINERS = (dict, list, set, tuple, frozenset, collections.deque, collections.OrderedDict, collections.defaultdict,
              collections.Counter)  # fmt: skip
"""Types of what the product could fill with what it hears."""


class Operands(Listener):
    """Notes what is compared up to the next assertion, and objects of the tests that the product has in this test.

    *fault* records why the test is no evidence.
    """

    def __init__(self, fault: Callable[[str], None]) -> None:
        self._fault = fault
        self.compared: set[Any] = set()
        """Code that compared something in this test, or called what did."""
        self.changes: Any = None
        """Knows what the product changed (`held_changes.HeldChanges`)."""
        self._handed: dict[int, Any] = {}
        """Objects of the tests that the product has, with their data."""
        self._answers: list[tuple[Any, frozenset[str]]] = []
        """Mocks of the tests that came back as answers, each with the parts that it had then."""
        self._seen: collections.deque[Any] = collections.deque(maxlen=RECENT)

    def begin_test(self) -> None:
        """Forget what only one test has seen."""
        self._handed.clear()
        self._seen.clear()
        self._answers.clear()
        self.compared.clear()

    def note_handed(self, thing: Any) -> None:
        """Note that the product gets *thing*, an object of the tests."""
        self._handed[id(thing)] = thing

    def note_answer(self, answer: Any, *, lasting: bool) -> None:
        """Note that the product gives *answer*, which may be a mock of the tests: that has whatever is read of it.

        A *lasting* one comes while files are loaded, and may be read in any test.
        """
        if lasting and mocks.is_mock(type(answer)):
            self._fault("a mock of the tests comes as an answer while files are loaded")
        elif mocks.is_mock(type(answer)):
            self._answers.append((answer, mocks.list_parts(answer)))

    def call(self, name: str, function: Any) -> None:
        """Doubt the test if *function*, which asserts, is the product's: it says itself what holds."""
        if get_fact(function, "_jumar_thing") is not None:
            self._fault(f"{name} is a function of the product, which says itself what holds")

    def run(self, frame: Any) -> None:
        """Note that the code of *frame* compares something, for what pytest runs."""
        while frame is not None and not str(frame.f_globals.get("__name__")).startswith(("pluggy", "_pytest")):
            self.compared.add(frame.f_code)
            frame = frame.f_back

    def see(self, value: Any) -> None:
        """Note that *value* is compared, if it could matter: what is kept here lives longer than the tests know."""
        known = (type(value) in CONTAINERS and value != ()) or self.changes.was_changed(value)
        self._seen.append(value if known else None)

    def settle(self, held: Any) -> None:
        """Look at what was compared, now that an assertion has come of it, with *held*."""
        if mocks.is_mock(type(held)):
            self._fault("a mock is asserted, and every mock is true")
        if any(mocks.list_parts(answer) != parts for answer, parts in self._answers):
            self._fault("a mock that the product gave as an answer is asked for what the test did not set")
        seen = list(self._seen)
        self._seen.clear()
        if any(map(self._is_told, seen, seen[1:])):
            self._fault("what the product changed after the test had it is compared with what the product was handed")
        if self._handed and any(map(self._is_of_one_object, seen, seen[1:])):
            self._fault(
                "both operands of a comparison are data of an object that the product has: it may know or set it"
            )

    def _is_told(self, left: Any, right: Any) -> bool:
        """Return whether one of two operands was changed by the product, and the other one handed to it."""
        changed, given = self.changes.was_changed, self.changes.was_given
        return bool((changed(left) and given(right)) or (changed(right) and given(left)))

    def _is_of_one_object(self, left: Any, right: Any) -> bool:
        """Return whether *left* and *right* are containers that one object holds which the product has."""
        if left is None or right is None:
            return False
        sides = {id(left), id(right)}
        return any(sides <= set(map(id, _list_held(thing))) for thing in self._handed.values())


def _list_held(thing: Any) -> list[Any]:
    """Return what *thing*, an object of the tests, holds: in slots, too, and in containers that it holds."""
    held = gc.get_referents(thing, getattr(thing, "__dict__", None))
    for _ in range(LEVELS):
        held += gc.get_referents(*(part for part in held if type(part) in CONTAINERS))[:MOST]
    return held


class Queries:
    """Objects of the product that comparisons came to: each has to be handed back by the test that made it."""

    def __init__(self) -> None:
        self._own: dict[int, str] = {}
        """Numbers of those that this test has made and not handed back, each with the name of its class."""
        self._shared: dict[int, str] = {}
        """The same of those that a fixture of several tests has made: each of them may use them."""

    def add(self, number: int, name: str, *, lasting: bool) -> None:
        """Note a new one of the class *name*; a *lasting* one is of a fixture of several tests."""
        (self._shared if lasting else self._own)[number] = name

    def find_unasked(self) -> str:
        """Return the class of one that was not handed back (its presence may decide); forget those of this test."""
        unasked = next(iter((*self._own.values(), *self._shared.values())), "")
        self._own.clear()
        return unasked

    def hand_back(self, number: int) -> None:
        """Note that the product hears of its thing *number*."""
        self._own.pop(number, None)
        self._shared.pop(number, None)

    @contextlib.contextmanager
    def keep(self, thing: Any, get_number: Callable[[Any], int]) -> Iterator[None]:
        """Note nothing that is handed back of *thing* in the body."""
        kinds = [held for held in (self._own, self._shared) if held]
        number = get_number(thing) if kinds else 0
        kept = [(held, held[number]) for held in kinds if number in held]
        try:
            yield
        finally:
            for held, name in kept:
                held[number] = name
