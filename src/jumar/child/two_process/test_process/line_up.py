"""Asks the product for others beside what a test compares: who affirms those, too, has affirmed nothing.

An object of the code under test may say itself what it is equal to, what it has in it, what it comes before. It hears
what the test compares among others of the same kind, in any order, and does not know which one is meant. Nothing of it
stands in the tests, and it is asked wherever the comparison is made: by `==`, in a dictionary, by `sorted`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from random import SystemRandom
from typing import Any

from jumar.child.two_process.test_process.other_data import (
    FAR,
    LARGE,
    MADE_OF,
    OTHERS,
    alter,
    differs,
    draw_needles,
    draw_others,
    empty,
    is_changed,
    list_data,
)
from jumar.child.two_process.wire.containers.shared_container import get_fact

OFTEN = 4
"""Containers are asked so often; from then on ever more rarely, as a copy of a large one takes long."""

OPPOSITES = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__gt__", "__ge__": "__lt__"}
"""Comparisons, and one that does not hold of the same two objects."""

REVERSED = {"__lt__": "__lt__", "__gt__": "__gt__", "__le__": "__lt__", "__ge__": "__gt__"}
"""Comparisons, and one that does not hold of them the other way round."""

MOST_GIVEN = 20
"""Arguments for instances of a class that are remembered."""

ENOUGH_BOXES = 4
"""More containers than these have to refuse something between them, if other things can be asked for."""

UNMADE = object()
"""Stands for an object that the product did not make."""

Ask = Callable[[Any], Any]


class LineUp:
    """Puts what a test compares among others.

    *create* has the product make an instance of a class, and *used* returns how many messages other than such there
    were.
    """

    def __init__(self, create: Callable[..., Any], used: Callable[[], int]) -> None:
        self._create, self._used, self._random, self._looked = create, used, SystemRandom(), 0
        self._given: dict[type, list[tuple[Any, Any]]] = {}
        """Class -> arguments by which tests made instances of it."""

    def begin_test(self) -> None:
        """Look at the containers of another test as often as at those of the first."""
        self._looked = 0

    def note_made(self, kind: type, args: Any, words: Any) -> tuple[Any, Any, int]:
        """Note by what a test made an instance of *kind*; return the fact that says so."""
        given = self._given.setdefault(kind, [])
        if len(given) < MOST_GIVEN and all(map(is_changed, map(type, (*args, *words.values())))):
            given.append((args, words))
        return args, words, self._used()

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
        if get_fact(other, MADE_OF):
            held, *more = self._shuffle_made(other, lambda one: ask(thing, name, one) is equal)
        elif differs(other):
            held, *more = self._shuffle(
                [other, *draw_others(other, self._random)], lambda one: ask(thing, name, one) is equal
            )
        elif get_fact(thing, MADE_OF):
            held, *more = self._shuffle_made(thing, lambda one: ask(one, name, other) is equal)
        else:
            return "", None
        # One that was changed since it was made says nothing by its no; two others say enough by their yes.
        wrong = more.count(True) > (0 if held else 1)
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

    def look_into(
        self, thing: Any, needle: Any, say: Callable[[Any], Ask], copy: Callable[[], Ask]
    ) -> tuple[str, bool | None]:
        """Return what is wrong with *thing*, a container of the product, or ""; and whether it has *needle* in it.

        *say* returns how a container says whether it has something, and *copy* how a copy of *thing* does. None: it
        was not asked.
        """
        self._looked += 1
        if self._random.random() * self._looked > OFTEN:
            return "", None
        wrong = f"a {type(thing).__name__} of the product has whatever it is asked for"
        if get_fact(needle, MADE_OF):
            first, *others = self._shuffle_made(needle, say(thing), far=True)
            if others.count(True) > max(2, len(others) - 2):
                return wrong, first
            args, words, _ = get_fact(thing, MADE_OF) or ((), {}, 0)
            made_of_things = any(get_fact(one, MADE_OF) for one in (*args, *words.values()))
            why = self._look_into_others(thing, needle, say, 2 if made_of_things else ENOUGH_BOXES)[0] if first else ""
            return why, first

        def ask_box(box: Any) -> Ask:
            return copy() if box is thing else say(box)

        groups = draw_needles(needle, self._random)
        if not groups:
            return self._look_into_others(thing, needle, ask_box, 2)
        # A copy has copies of what is in it: an object that is only equal to itself is not among them.
        first, *rest = self._shuffle([needle, *(one for drawn, _ in groups for one in drawn)], copy())
        for drawn, most in groups:
            if first and rest[: len(drawn)].count(True) > most:
                return wrong, first
            del rest[: len(drawn)]
        return (self._look_into_others(thing, needle, ask_box, ENOUGH_BOXES)[0] if first else ""), first

    def _look_into_others(
        self, thing: Any, needle: Any, say: Callable[[Any], Ask], least: int
    ) -> tuple[str, bool | None]:
        """Return as `look_into`: containers made of other data, or as other tests made theirs, are asked for *needle*.

        Some of them may have it, and not all, if there are more than *least*, and among them one that is made of
        nothing: what a test made it of is of no account there.
        """
        if not get_fact(thing, MADE_OF):
            return "", None
        args, words, _ = get_fact(thing, MADE_OF)
        count = 2 * OTHERS * (differs(args) or differs(words))
        draws: list[Callable[[], Any]] = [partial(self._empty, (args, words))]
        draws += [partial(self._alter, (args, words), (1, -1)[n % 2]) for n in range(count)]
        draws += [partial(self._alter, (args, words), 0, near=1) for _ in range(count // 2)]
        draws += [partial(tuple, one) for one in self._given.get(type(thing), ()) if one[0] is not args]
        boxes = self._make_all(type(thing), draws, times=1)
        first, *others = self._shuffle([thing, *boxes], lambda box: say(box)(needle))
        made = [has for has, box in zip(others, boxes) if box is not UNMADE]  # noqa: B905  no `strict` before Python 3.10
        emptied = any(empty(one) is not one for one in list_data((args, words)))
        all_have = first and emptied and others[0] and len(made) > least and all(made)
        return f"each {type(thing).__name__} of the product has what one is asked for" if all_have else "", first

    def _shuffle(self, questions: list[Any], ask: Ask) -> list[bool | None]:
        """Return the answers to *questions*, which are asked in any order; what raises is not affirmed."""
        answers: list[bool | None] = [False] * len(questions)
        for place in self._random.sample(range(len(questions)), len(questions)):
            answers[place] = questions[place] is not UNMADE and _holds(ask, questions[place])
        return answers

    def _shuffle_made(self, thing: Any, ask: Ask, *, far: bool = False) -> list[bool | None]:
        """Return what is said of an object that is made again as *thing* was, and of others of its class.

        All are made before one is asked about; where none of the others can be, as of a misspelt name, those are that
        the tests made. The answer about the first is None if a no says nothing: something was asked since *thing* was
        made, and may have changed it.
        """
        args, words, used = get_fact(thing, MADE_OF)
        kind, unused = type(thing), used == self._used()
        count = (4 if far else 2) * OTHERS * (differs(args) or differs(words))
        draws: list[Callable[[], Any]] = [partial(tuple, (args, words))]
        draws += [partial(self._alter, (args, words), (1, -1)[n % 2] * far, near=n % 2) for n in range(count)]
        made = self._make_all(kind, draws)
        # A full box has all that can be made.
        fussy = bool(count) and not far and all(one is UNMADE for one in made[1:])
        if fussy:
            given = [one for one in self._given.get(kind, ()) if one[0] is not args]
            some = self._random.sample(given, min(OTHERS, len(given)))
            made += self._make_all(kind, [partial(tuple, one) for one in some])
        others = [one for one in made[1:] if one is not UNMADE]
        first, *rest = self._shuffle([made[0], *others], ask)
        if fussy and (len(rest) < OTHERS or not all(rest)):
            rest = []  # the tests may have made some that are equal
        return [first if first or (unused and made[0] is not UNMADE) else None, *rest]

    def _make_all(self, kind: type, draws: Sequence[Callable[[], Any]], times: int = 2) -> list[Any]:
        """Make an instance of *kind* for each of *draws*, which return arguments and keywords, in any order.

        Each is made so many *times* as the test has made the one that is meant. That is the first; if it is made again
        here, the others are made twice.
        """
        made, drawn = [UNMADE] * len(draws), [UNMADE] * len(draws)
        turns = [*range(len(draws)), *range(1, len(draws) if times > 1 else 1)]
        for place in self._random.sample(turns, len(turns)):
            with contextlib.suppress(Exception):  # the product may refuse them, by whatever it likes
                drawn[place] = draws[place]() if drawn[place] is UNMADE else drawn[place]
                made[place] = self._create(kind, *drawn[place])
        return made

    def _empty(self, value: Any) -> Any:
        """Return *value*, arguments and keywords, with nothing in the place of all data in it."""
        if get_fact(value, MADE_OF):
            args, words, _ = get_fact(value, MADE_OF)
            return self._create(type(value), *self._empty((args, words)))
        if type(value) is tuple:
            return tuple(map(self._empty, value))
        if type(value) is dict:
            return {name: self._empty(held) for name, held in value.items()}
        return empty(value)

    def _alter(self, value: Any, sign: int, near: int = 0) -> Any:
        """Return *value* with other data in the place of all data in it, and things of a test made again by such.

        Numbers and dates are far away on the side of *sign*, if it is not 0, or else *near*, if that is not 0.
        """
        if get_fact(value, MADE_OF):
            args, words, _ = get_fact(value, MADE_OF)
            altered = differs(args) or differs(words)
            return self._create(type(value), *self._alter((args, words), sign, near)) if altered else value
        kind: Any = type(value)
        if kind in (list, tuple):
            return kind(self._alter(one, sign, near) for one in value)
        if kind is dict:
            return {key: self._alter(one, sign, near) for key, one in value.items()}
        if sign and kind in FAR:
            return FAR[kind](value, self._random, sign)
        return alter(value, self._random, near=bool(near))


def _holds(ask: Ask, question: Any) -> bool:
    try:
        return bool(ask(question))
    except Exception:  # noqa: BLE001  it may raise anything
        return False
