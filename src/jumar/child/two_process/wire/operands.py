"""Comparisons of the tests: what the product changed in both operands, or changes later, and objects for answers."""

from __future__ import annotations

import collections
import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jumar.child.challenge.questions import Listener

MOST = 500
"""Things in an operand that are looked at."""

RECENT = 32
"""Operands before an assertion that are remembered: a test may compare without end and assert nothing."""

CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)

GIVEN = (dict, list, set, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter)
"""Types of what the product could fill with what it hears after it gave it away."""


class Operands(Listener):
    """Notes what is compared up to the next assertion, and what the product has changed in this test.

    *fault* records why the test is no evidence; *get_fact* reads what was noted of a thing.
    """

    def __init__(self, fault: Callable[[str], None], get_fact: Callable[[Any, str], Any]) -> None:
        self._fault, self._get_fact = fault, get_fact
        self._given: dict[int, Any] = {}
        """Containers that a call of the product came to, by identity."""
        self._asked: frozenset[int] = frozenset()
        """Identities of what the last call was handed."""
        self._late: dict[int, Any] = {}
        """Some of these: it changed them after that."""
        self._own: dict[int, Any] = {}
        """Things of the tests that the product changed."""
        self._handed: dict[int, Any] = {}
        """Objects of the tests that the product has, with their data."""
        self._seen: collections.deque[Any] = collections.deque(maxlen=RECENT)

    def begin_test(self) -> None:
        """Forget what only one test has seen."""
        for held in (self._given, self._late, self._own, self._handed, self._seen):
            held.clear()

    def note_asked(self, given: Iterable[Any]) -> None:
        """Note what the tests hand to a call: what it changes of that is what it was called for."""
        self._asked = frozenset(map(id, given)) if self._given else frozenset()

    def note_given(self, answer: Any) -> None:
        """Note what a call of the product came to."""
        if type(answer) in GIVEN:
            self._given[id(answer)] = answer

    def note_changed(self, things: Iterable[Any]) -> None:
        """Note that the product changed *things*: containers, or objects of the tests."""
        for thing in things:
            if id(thing) not in self._given:
                self._own[id(thing)] = thing
            elif id(thing) not in self._asked:
                self._late[id(thing)] = thing

    def note_handed(self, thing: Any) -> None:
        """Note that the product gets *thing*, an object of the tests."""
        self._handed[id(thing)] = thing

    def call(self, name: str, function: Any) -> None:
        """Doubt the test if *function*, which asserts, is the product's: it says itself what holds."""
        if self._get_fact(function, "_jumar_thing") is not None:
            self._fault(f"{name} is a function of the product, which says itself what holds")

    def see(self, value: Any) -> None:
        """Note that *value* is compared, if it could matter: what is kept here lives longer than the tests know."""
        self._seen.append(value if isinstance(value, CONTAINERS) or id(value) in self._own else None)

    def settle(self) -> None:
        """Look at what was compared, now that an assertion has come of it."""
        seen = list(self._seen)
        self._seen.clear()
        if self._handed and any(map(self._is_of_one_object, seen, seen[1:])):
            self._fault(
                "both operands of a comparison are data of an object that the product has: it may know or set it"
            )
        if not (self._late or self._own):
            return
        parts = [frozenset(map(id, _list_parts(value))) for value in seen]
        if any(not self._late.keys().isdisjoint(part) for part in parts):
            self._fault("what a call of the product came to was changed by it later, and may be what it heard since")
        touched = [not self._own.keys().isdisjoint(part) for part in parts]
        if any(map(all, zip(touched, touched[1:]))):  # noqa: B905, RUF007  Python 3.8 has no `strict`, and no `pairwise`
            self._fault("the product changed things of the tests in both operands of a comparison")

    def _is_of_one_object(self, left: Any, right: Any) -> bool:
        """Return whether *left* and *right* are containers that one object holds which the product has."""
        if not (isinstance(left, GIVEN) and isinstance(right, GIVEN)):
            return False
        sides = {id(left), id(right)}
        return any(sides <= set(map(id, _list_held(thing))) for thing in self._handed.values())


def _list_held(thing: Any) -> list[Any]:
    """Return what *thing*, an object of the tests, holds: in slots, too."""
    return gc.get_referents(thing, getattr(thing, "__dict__", None))


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


def _list_parts(value: Any) -> Iterator[Any]:
    """Yield *value* and what lies in it, as long as that is containers."""
    todo, left = [value], MOST
    while todo and left:
        left -= 1
        at = todo.pop()
        yield at
        if isinstance(at, dict):
            todo += [part for pair in dict.items(at) for part in pair]
        else:
            kind: Any = next((kind for kind in CONTAINERS if isinstance(at, kind)), None)
            todo += kind.__iter__(at) if kind else ()
