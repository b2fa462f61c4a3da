"""Draws other data in the place of what a test compares with: near it, far away, looking alike."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
from collections.abc import Callable
from random import Random
from typing import Any

from jumar.child.challenge.other_values import STEPS, draw_alike, make_near, make_other
from jumar.child.two_process.wire.containers.shared_container import get_fact

MADE_OF = "_jumar_made_of"
"""Fact of an instance that a test made: its arguments, the keywords, and how many messages had been sent by then."""

OTHERS = 3
"""Others of each kind that are asked for."""

LARGE = 1e6, 1e12
"""Numbers between which some are far away from what a test compares with."""


def draw_others(value: Any, random: Random) -> list[Any]:
    """Return others of the type of *value*: all data that it holds is changed in some, and one thing in others.

    Of what has an order, also others in which the same things stand otherwise.
    """
    if not differs(value):
        return []
    drawn = [make(value, random) for make in (alter, make_near) for _ in range(OTHERS)]
    if type(value) in (list, tuple) and len(value) > 1:
        drawn += [value[::-1], type(value)(random.sample(value, len(value))), value[:-1], value + value[:1]]
    return [one for one in drawn if type(one) is type(value) and one != value]


def draw_needles(needle: Any, random: Random) -> list[tuple[list[Any], int]]:
    """Return groups of what may be asked for beside *needle*, each with how many of it right code may affirm.

    A filter of a few bits may affirm some by chance, an interval may have no end, and all even numbers be in a set.
    """
    if type(needle) is bytes:
        groups = draw_needles(needle.decode("latin-1"), random)
        return [([one.encode("latin-1") for one in others], most) for others, most in groups]
    if type(needle) is str:
        short = len(needle) <= OTHERS
        drawn = [
            one for one in (draw_alike(needle, random) for _ in range((8 if short else 2) * OTHERS)) if one != needle
        ]
        swapped = ["".join(random.sample(needle, len(needle))) for _ in range(OTHERS)]
        near = [one for one in swapped if one != needle] if not short else []
        return [(drawn, len(drawn) - 1 if short else OTHERS - 1), (near, max(0, len(near) - 1))]
    if not _is_far_from_some(needle):
        return []
    far = [draw_far(needle, random, sign) for _ in range(2 * OTHERS) for sign in (1, -1)]
    near = [_move(needle, random, sign) for _ in range(2 * OTHERS) for sign in (1, -1) if type(needle) in (int, float)]
    return [(far, 4 * OTHERS - 2), (near, 4 * OTHERS - 1)]


def _is_far_from_some(value: Any) -> bool:
    """Return whether there are numbers, dates or texts in *value*: what is far from other data is not known."""
    if type(value) in (list, tuple, dict):
        return any(map(_is_far_from_some, value.values() if type(value) is dict else value))
    return type(value) in FAR


def draw_far(value: Any, random: Random, sign: int) -> Any:
    """Return *value* with numbers and dates in it that are far away, to the side of *sign*, and texts by chance."""
    kind: Any = type(value)
    if kind in (list, tuple):
        return kind(draw_far(one, random, sign) for one in value)
    if kind is dict:
        return {key: draw_far(one, random, sign) for key, one in value.items()}
    return FAR[kind](value, random, sign) if kind in FAR else value


def _move(value: Any, random: Random, sign: int) -> Any:
    """Return a number some way from *value*: some near, some far."""
    return value + sign * type(value)(10 ** random.uniform(0, 5))


def differs(value: Any) -> bool:
    """Return whether there is data in *value* that can be changed, or by which something in it was made."""
    if made := get_fact(value, MADE_OF):
        return any(map(differs, made[:2]))
    if type(value) in (list, tuple):
        return any(map(differs, value))
    return any(map(differs, value.values())) if type(value) is dict else type(value) in CHANGED


def alter(value: Any, random: Random) -> Any:
    """Return *value* with other data in the place of all data in it; things of the product or the tests stay."""
    kind: Any = type(value)
    if kind in (list, tuple):
        return kind(alter(one, random) for one in value)
    if kind is dict:
        return {key: alter(one, random) for key, one in value.items()}
    return CHANGED[kind](value, random) if kind in CHANGED else value


def _shift(value: Any, random: Random) -> Any:
    return value + random.choice(STEPS)


def _shift_days(value: Any, random: Random) -> Any:
    return value + dt.timedelta(days=random.choice(STEPS))


def _draw_time(value: dt.time, random: Random, _: int = 0) -> dt.time:
    return value.replace(hour=random.randrange(24), minute=random.randrange(60))


def _change_frozen(value: frozenset[Any], random: Random) -> frozenset[Any]:
    return frozenset(make_other(set(value), random))


def _draw_number(value: Any, random: Random, sign: int) -> Any:
    drawn = sign * random.uniform(*LARGE)
    return type(value)(int(drawn) if type(value) in (int, decimal.Decimal, fractions.Fraction) else drawn)


def _draw_text(value: str, random: Random) -> str:
    drawn = draw_alike(value, random)
    return drawn if drawn != value else str(make_other(value, random))


def _draw_date(value: Any, random: Random, sign: int) -> Any:
    day = dt.date.fromordinal(random.randint(*sorted((value.toordinal(), dt.date.max.toordinal() if sign > 0 else 1))))
    return value.replace(year=day.year, month=day.month, day=day.day)


CHANGED: dict[type, Callable[[Any, Random], Any]] = {
    **dict.fromkeys((bool, int, float, complex, str, bytes, set), make_other),
    **dict.fromkeys((decimal.Decimal, fractions.Fraction), _shift),
    **dict.fromkeys((dt.date, dt.datetime, dt.timedelta), _shift_days),
    dt.time: _draw_time,
    frozenset: _change_frozen,
}
"""Types of data of which there are others, and what makes one."""

FAR: dict[type, Callable[[Any, Random, int], Any]] = {
    **dict.fromkeys((int, float, decimal.Decimal, fractions.Fraction), _draw_number),
    **dict.fromkeys((dt.date, dt.datetime), _draw_date),
    dt.time: _draw_time,
    str: lambda value, random, _: _draw_text(value, random),
}
"""Types of data of which others are far away, and what draws one, on which side."""
