"""Asks the product for others beside what a test compares: who affirms those, too, has affirmed nothing.

An object of the code under test may say itself what it is equal to, what it has in it, what it comes before. It hears
what the test compares among others of the same kind, in any order, and does not know which one is meant. Nothing of it
stands in the tests, and it is asked wherever the comparison is made: by `==`, in a dictionary, by `sorted`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any

from jumar.child.challenge.other_values import STEPS, draw_alike, make_near, make_other
from jumar.child.two_process.wire.containers.shared_container import get_fact

MADE_OF = "_jumar_made_of"
"""Fact of an instance that a test made: its arguments, the keywords, and how many messages had been sent then."""

OTHERS = 3
"""Others of each kind that are asked for."""

OFTEN = 4
"""Containers are asked so often; from then on ever more rarely, as a copy of a large one takes long."""

OPPOSITES = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__gt__", "__ge__": "__lt__"}
"""Comparisons, and one that does not hold of the same two objects."""

REVERSED = {"__lt__": "__lt__", "__gt__": "__gt__", "__le__": "__lt__", "__ge__": "__gt__"}
"""Comparisons, and one that does not hold of them the other way round."""

LARGE = 1e6, 1e12
"""Numbers between which some are far away from what a test compares with."""

Ask = Callable[[Any], Any]


class LineUp:
    """Puts what a test compares among others.

    *create* has the product make an instance of a class, and *peer* returns who asks it.
    """

    def __init__(self, create: Callable[..., Any], peer: Callable[[], Any]) -> None:
        self._create, self._peer, self._random, self._looked = create, peer, SystemRandom(), 0

    def begin_test(self) -> None:
        """Look at the containers of another test as often as at those of the first."""
        self._looked = 0

    def compare(
        self, name: str, thing: Any, other: Any, ask: Callable[[Any, str, Any], Any]
    ) -> tuple[str, bool | None]:
        """Return what is wrong with *thing*, which may affirm that *name* holds of it and *other*; and whether it does.

        *ask* has an object say what a comparison with another one comes to. What is wrong is "", if nothing is. None:
        it was not asked about *other* itself, or about another one in its place that may have come to differ.
        """
        if name in OPPOSITES:
            return self._compare_order(name, thing, other, ask)
        equal = name == "__eq__"
        if differs(other):
            held, *more = self._shuffle(
                [other, *draw_others(other, self._random)], lambda one: ask(thing, name, one) is equal
            )
        elif get_fact(other, MADE_OF):
            held, *more = self._shuffle_made(other, lambda one: ask(thing, name, one) is equal)
        elif get_fact(thing, MADE_OF):
            held, *more = self._shuffle_made(thing, lambda one: ask(one, name, other) is equal)
        else:
            return "", None
        wrong = held and any(more)
        return f"a {type(thing).__name__} of the product is equal to something else as well" if wrong else "", held

    def _compare_order(self, name: str, thing: Any, other: Any, ask: Callable[..., Any]) -> tuple[str, bool | None]:
        asked = [(thing, name, other), (thing, OPPOSITES[name], other)]
        asked += [(other, REVERSED[name], thing)] if type(other) is type(thing) else []
        sign = 1 if name in ("__gt__", "__ge__") else -1
        far = [sign * self._random.uniform(*LARGE) for _ in range(OTHERS if type(other) in (int, float) else 0)]
        asked += [(thing, name, type(other)(one)) for one in far]
        held, *others = self._shuffle(asked, lambda one: ask(*one) is True)
        both, beyond = others[: len(others) - len(far)], others[len(others) - len(far) :]
        why = ""
        if held and any(both):
            why = f"{name} of a {type(thing).__name__} holds, and its opposite, too"
        elif held and beyond and all(beyond):
            why = f"a {type(thing).__name__} of the product is beyond all numbers"
        return why, held

    def look_into(self, thing: Any, needle: Any, ask: Ask, copy: Callable[[], Ask]) -> tuple[str, bool | None]:
        """Return what is wrong with *thing*, a container of the product, or ""; and whether it has *needle* in it.

        *ask* has it say whether it has something, and *copy* returns how a copy of it does. None: it was not asked.
        """
        self._looked += 1
        made = get_fact(needle, MADE_OF)
        groups = draw_needles(list(made[:2]) if made else needle, self._random)
        if not groups or self._random.random() * self._looked > OFTEN:
            return "", None
        others = [one for drawn, _ in groups for one in drawn]
        # A copy has copies of what is in it: an object that is only equal to itself is not among them.
        first, *rest = self._shuffle_made(needle, ask, others) if made else self._shuffle([needle, *others], copy())
        for drawn, most in groups:
            if first and rest[: len(drawn)].count(True) > most:
                return f"a {type(thing).__name__} of the product has whatever it is asked for", first
            del rest[: len(drawn)]
        return "", first

    def _shuffle(self, questions: list[Any], ask: Ask) -> list[bool | None]:
        """Return the answers to *questions*, which are asked in any order; what raises is not affirmed."""
        answers: list[bool | None] = [False] * len(questions)
        for place in self._random.sample(range(len(questions)), len(questions)):
            answers[place] = _holds(ask, questions[place])
        return answers

    def _shuffle_made(self, thing: Any, ask: Ask, others: list[Any] | None = None) -> list[bool | None]:
        """Return what is said of an object that is made again as *thing* was, and of some of *others* arguments.

        None: it is not said of the first, where something was asked since *thing* was made, and may have changed it.
        """
        args, words, written = get_fact(thing, MADE_OF)
        unused = written == self._peer().written
        if others is None:
            count = OTHERS * (differs(args) or differs(words))
            others = [(_alter(args, self._random), _alter(words, self._random)) for _ in range(count)]
        first, *rest = self._shuffle([(args, words), *others], lambda one: ask(self._create(type(thing), *one)))
        return [first if first or unused else None, *rest]


def draw_others(value: Any, random: Random) -> list[Any]:
    """Return others of the type of *value*: all data that it holds is changed in some, and one thing in others."""
    if not differs(value):
        return []
    drawn = [make(value, random) for make in (_alter, make_near) for _ in range(OTHERS)]
    return [one for one in drawn if type(one) is type(value)]


def draw_needles(needle: Any, random: Random) -> list[tuple[list[Any], int]]:
    """Return groups of what may be asked for beside *needle*, each with how many of it right code may affirm.

    A filter of a few bits may affirm some by chance, an interval may have no end, and all even numbers be in a set.
    """
    if type(needle) is bytes:
        groups = draw_needles(needle.decode("latin-1"), random)
        return [([one.encode("latin-1") for one in others], most) for others, most in groups]
    if type(needle) is str:
        drawn = [draw_alike(needle, random) for _ in range(2 * OTHERS)]
        swapped = ["".join(random.sample(needle, len(needle))) for _ in range(OTHERS)]
        near = [one for one in swapped if one != needle] if len(needle) > OTHERS else []
        return [(drawn, OTHERS - 1), (near, max(0, len(near) - 1))]
    if not _is_far_from_some(needle):
        return []
    return [([_draw_far(needle, random, sign) for _ in range(2 * OTHERS) for sign in (1, -1)], 4 * OTHERS - 2)]


def _is_far_from_some(value: Any) -> bool:
    """Return whether there are numbers or texts in *value*: of other data it is not known what is far from it."""
    if type(value) in (list, tuple, dict):
        return any(map(_is_far_from_some, value.values() if type(value) is dict else value))
    return type(value) in (int, float, str)


def _draw_far(value: Any, random: Random, sign: int) -> Any:
    """Return *value* with numbers in it that are far away, on the side of *sign*, and with texts by chance."""
    kind: Any = type(value)
    if kind in (int, float):
        return kind(sign * random.uniform(*LARGE))
    if kind in (list, tuple):
        return kind(_draw_far(one, random, sign) for one in value)
    if kind is dict:
        return {key: _draw_far(one, random, sign) for key, one in value.items()}
    return draw_alike(value, random) if kind is str else value


def differs(value: Any) -> bool:
    """Return whether there is data in *value* that can be changed."""
    if type(value) in (list, tuple):
        return any(map(differs, value))
    return any(map(differs, value.values())) if type(value) is dict else type(value) in CHANGED


def _alter(value: Any, random: Random) -> Any:
    """Return *value* with other data in the place of all data in it; things of the product or the tests stay."""
    kind: Any = type(value)
    if kind in (list, tuple):
        return kind(_alter(one, random) for one in value)
    if kind is dict:
        return {key: _alter(one, random) for key, one in value.items()}
    return CHANGED[kind](value, random) if kind in CHANGED else value


def _shift(value: Any, random: Random) -> Any:
    return value + random.choice(STEPS)


def _shift_days(value: Any, random: Random) -> Any:
    return value + dt.timedelta(days=random.choice(STEPS))


CHANGED: dict[type, Callable[[Any, Random], Any]] = {
    **dict.fromkeys((bool, int, float, complex, str, bytes, set), make_other),
    **dict.fromkeys((decimal.Decimal, fractions.Fraction), _shift),
    **dict.fromkeys((dt.date, dt.datetime, dt.timedelta), _shift_days),
}
"""Types of data of which there are others, and what makes one."""


def _holds(ask: Ask, question: Any) -> bool:
    try:
        return bool(ask(question))
    except Exception:  # noqa: BLE001  it may raise anything
        return False
