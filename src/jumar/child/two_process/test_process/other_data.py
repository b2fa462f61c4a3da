"""Draws other data in the place of what a test compares with: near it, far away, looking alike."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import enum
import fractions
import operator
import pathlib
from collections.abc import Callable, Iterator
from itertools import chain
from random import Random
from typing import Any

from jumar.child.challenge.other_values import STEPS, draw_alike, make_other
from jumar.child.two_process.proxies import Proxy
from jumar.child.two_process.wire.containers.shared_container import get_fact

MADE_OF = "_jumar_made_of"
"""Fact of an instance that a test made: its arguments, the keywords, and how many messages had been sent by then."""

OTHERS = 3
"""Others of each kind that are asked for."""

BEYOND = (ArithmeticError, TypeError, ValueError)
"""Exceptions of types of data that end somewhere, as dates do, or that do not take each value."""

LARGE = 1e6, 1e12
"""Numbers between which some are far away from what a test compares with."""


def draw_others(value: Any, random: Random) -> list[Any]:
    """Return others of the type of *value*: all data that it holds is changed in some, and one thing in others.

    Of what has an order, also others in which the same things stand otherwise.
    """
    if not differs(value):
        return []
    drawn: list[Any] = []
    for make in (alter, change_one) * OTHERS:
        with contextlib.suppress(*BEYOND):
            drawn.append(make(value, random))
    drawn += _arrange(value, random)
    return [one for one in drawn if type(one) is type(value) and one != value]


def change_one(value: Any, random: Random) -> Any:
    """Return *value* with one thing in it changed, by little."""
    kind: Any = type(value)
    if kind is dict and value:
        key = random.choice(list(value))
        if random.random() < 1 / 2:
            return {**value, key: change_one(value[key], random)}
        return {(alter(key, random) if one == key else one): held for one, held in value.items()}
    if (kind in (list, tuple) or _is_named_tuple(kind)) and value:
        items, place = list(value), random.randrange(len(value))
        items[place] = change_one(items[place], random)
        return _fill(kind, items)
    return alter(value, random, near=True)


def _arrange(value: Any, random: Random) -> list[Any]:
    """Return others in which the same things stand otherwise: in another order, elsewhere, in other rows."""
    kind: Any = type(value)
    if kind is dict and len(value) > 1:
        held = [*value.values()]
        mixed = random.sample(held, len(held))
        return [{key: items[at] for at, key in enumerate(value)} for items in (mixed, held[1:] + held[:1])]
    if kind not in (list, tuple) or len(value) < 2:  # noqa: PLR2004  one has no order
        return []
    drawn = [value[::-1], kind(random.sample(value, len(value))), value[:-1], value + value[:1]]
    if type(value[0]) is type(value[1]) is list and value[0]:
        drawn.append(kind([value[0][:-1], value[0][-1:] + value[1], *value[2:]]))
    return drawn


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
    return any(is_changed(type(one)) for one in list_data(value))


def list_data(value: Any) -> Iterator[Any]:
    """Yield all that *value* holds which is no container, and all by which things in it were made."""
    if made := get_fact(value, MADE_OF):
        yield from list_data(made[:2])
    elif type(value) in (list, tuple) or _is_named_tuple(type(value)):
        yield from chain.from_iterable(map(list_data, value))
    elif type(value) is dict:
        yield from chain.from_iterable(map(list_data, value.values()))
    else:
        yield value


def empty(value: Any) -> Any:
    """Return nothing of the type of *value*: zero, an empty text, the first of all dates; itself, if there is none."""
    kind: Any = type(value)
    if kind in (dt.date, dt.datetime, dt.time):
        return kind.min
    if kind in EMPTY or (issubclass(kind, pathlib.PurePath) and not _is_of_product(kind)):
        return kind()
    return kind(0) if _is_address(kind) else value


def alter(value: Any, random: Random, *, near: bool = False) -> Any:
    """Return *value* with other data in the place of all data in it; things of the product or the tests stay.

    *near* of it, if it has numbers, dates or addresses.
    """
    kind: Any = type(value)
    if kind in (list, tuple) or _is_named_tuple(kind):
        return _fill(kind, [alter(one, random, near=near) for one in value])
    if kind is dict:
        return {key: alter(one, random, near=near) for key, one in value.items()}
    if near and (kind in NEAR or _is_address(kind)):
        add: Callable[[Any, int], Any] = NEAR.get(kind, operator.add)
        return add(value, random.choice((1, -1)) * random.randint(1, 3))
    make = _find_maker(kind)
    return make(value, random) if make else value


def _fill(kind: Any, items: list[Any]) -> Any:
    return kind(*items) if _is_named_tuple(kind) else kind(items)


def _is_named_tuple(kind: type) -> bool:
    """Return whether *kind* is a named tuple of the tests, or of a library."""
    return issubclass(kind, tuple) and "_fields" in vars(kind) and not _is_of_product(kind)


def is_changed(kind: type) -> bool:
    """Return whether there is other data of *kind*, which is no container."""
    return _find_maker(kind) is not None


def _is_of_product(kind: type) -> bool:
    return issubclass(kind, Proxy)


def _find_maker(kind: type) -> Callable[[Any, Random], Any] | None:
    """Return what makes another value of *kind*; None: there is no other."""
    if kind in CHANGED:
        return CHANGED[kind]
    if _is_of_product(kind):
        return None
    if _is_address(kind):
        return _draw_address
    return next((make for base, make in CHANGED_HEIRS.items() if issubclass(kind, base)), None)


def _is_address(kind: type) -> bool:
    """Return whether *kind* is an address of `ipaddress`, which is not imported for this."""
    return kind.__module__ == "ipaddress" and kind.__name__ in ("IPv4Address", "IPv6Address")


def _draw_member(value: Any, random: Random) -> Any:
    """Return another member of the enumeration of *value*; itself, if that has one alone."""
    return random.choice([one for one in type(value) if one is not value] or [value])


def _draw_path(value: Any, random: Random) -> Any:
    root, parts = value.anchor, [one for one in value.parts if one != value.anchor]
    place = random.randrange(len(parts) or 1)
    return type(value)(root, *(_draw_text(one, random) if at == place else one for at, one in enumerate(parts)))


def _draw_address(value: Any, random: Random) -> Any:
    return type(value)(random.getrandbits(value.max_prefixlen))


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

CHANGED_HEIRS: dict[type, Callable[[Any, Random], Any]] = {enum.Enum: _draw_member, pathlib.PurePath: _draw_path}
"""The same of types that are extended."""

EMPTY = frozenset(
    (int, float, complex, str, bytes, list, set, frozenset, decimal.Decimal, fractions.Fraction, dt.timedelta)
)
"""Types of data of which one is nothing."""

NEAR: dict[type, Callable[[Any, int], Any]] = {
    **dict.fromkeys((int, float, decimal.Decimal, fractions.Fraction), operator.add),
    **dict.fromkeys((dt.date, dt.datetime, dt.timedelta), lambda value, step: value + dt.timedelta(days=step)),
}
"""Types of data of which others are near, and what makes one that is so many steps away."""

FAR: dict[type, Callable[[Any, Random, int], Any]] = {
    **dict.fromkeys((int, float, decimal.Decimal, fractions.Fraction), _draw_number),
    **dict.fromkeys((dt.date, dt.datetime), _draw_date),
    dt.time: _draw_time,
    str: lambda value, random, _: _draw_text(value, random),
}
"""Types of data of which others are far away, and what draws one, on which side."""
