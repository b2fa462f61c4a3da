"""Makes other values of the type of a given one: all that it is made of changes, or one thing in it."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from random import Random
from typing import Any

LETTERS = "aeiorstnlcdmpu"
"""Most frequent letters of words: a letter of these is inconspicuous."""

STEPS = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, *2 * (22, 26, 34, 38, 46))
"""Differences of numbers, half of them even: what counts in a circle is equal again after another one."""

MARKS = "#*-+=.~"
"""A text without a word gets one of these in the place of another one, or becomes a word."""

SWAPPED = 7 / 8
"""Share of words that get other places for their own letters: who looks for an answer made of these believes them."""

WORD = re.compile(r"[^\W_]+")
MOST = 100
"""Items of a container that are changed at most."""

LEAP_DAY = (2, 29)

VOWELS = "aeiou"
ALPHABETS = (
    VOWELS, "".join(letter for letter in string.ascii_lowercase if letter not in VOWELS),
    VOWELS.upper(), "".join(letter for letter in string.ascii_uppercase if letter not in VOWELS.upper()),
    string.digits,
)  # fmt: skip
"""Kinds of letters and digits: a text by chance has the same ones, at the same places."""

LARGE = 1e6
"""From here on a number is divided: a step may vanish in it, or in what a test lets pass."""


def make_other(value: Any, random: Random) -> Any:
    """Return another value of the type of *value*; zero, if there is none."""
    kind: Any = type(value)
    if kind is bool:
        return not value
    make = _MAKERS.get(kind)
    return 0 if make is None else make(value, random)


def make_near(value: Any, random: Random) -> Any:
    """Return another value of the type of *value*, which differs in one place."""
    kind: Any = type(value)
    if kind is int:
        return value + random.choice((1, -1))
    if kind in (list, tuple) and value:
        items, place = list(value), random.randrange(len(value))
        items[place] = make_near(items[place], random)
        return kind(items)
    if kind is dict and value:
        key = random.choice(list(value))
        if random.random() < 1 / 2:
            return {**value, key: make_near(value[key], random)}
        return {(make_other(key, random) if one == key else one): held for one, held in value.items()}
    return make_other(value, random)


def draw_alike(text: str, random: Random) -> str:
    """Return a text by chance that looks like *text*: as long, vowels where it has any, digits where it has any."""
    alphabets = [next((a for a in ALPHABETS if letter in a), letter) for letter in text]
    if all(len(alphabet) == 1 for alphabet in alphabets):
        return _spell(text, random)
    return "".join(map(random.choice, alphabets))


def make_year(year: int, month: int, day: int, random: Random) -> int:
    """Return another year that has that day: the file in which a date stands that is none would not load."""
    steps = [step * 4 if (month, day) == LEAP_DAY else step for step in STEPS]
    others = [year + step for step in (*steps, *(-step for step in steps))]
    return random.choice([other for other in others if _is_date(other, month, day)] or others)


def _is_date(year: int, month: int, day: int) -> bool:
    with suppress(ValueError):
        return bool(date(year, month, day))
    return False


def _step(value: Any, random: Random) -> Any:
    step = random.choice(STEPS)
    if value - value != 0:
        return float(step)  # to what is infinite, nothing can be added
    if isinstance(value, complex) or (value < 0) != (abs(value) >= step and random.random() < 1 / 2):
        step = -step  # no sign changes by it
    large = max(abs(value.real), abs(value.imag)) > LARGE  # of a complex one `abs` may be too large
    if not large:
        return value + step
    return value // step if isinstance(value, int) else value / step


def _spell(value: str, random: Random) -> str:
    """Swap two letters of each word, or change a letter or a digit; what has no word becomes one, or another mark."""
    other = WORD.sub(lambda found: _misspell(found[0], random), value)
    if other.casefold() != value.casefold():
        return other
    if value and random.random() < 1 / 2:
        place = random.randrange(len(value))
        mark = random.choice([mark for mark in MARKS if mark != value[place]])
        return value[:place] + mark + value[place + 1 :]
    return value + "".join(random.choices(LETTERS, k=4))


def _misspell(word: str, random: Random) -> str:
    letters, place = list(word), random.randrange(len(word))
    old = letters[place]
    others = [at for at, letter in enumerate(letters) if letter.casefold() != old.casefold()]
    if others and word.isalpha() and random.random() < SWAPPED:
        other = random.choice(others)
        letters[place], letters[other] = letters[other], old
        return "".join(letters)
    pool = "0123456789" if old.isdigit() else LETTERS.upper() if old.isupper() else LETTERS
    letters[place] = random.choice([one for one in pool if one.casefold() != old.casefold()])
    return "".join(letters)


def _spell_bytes(value: Any, random: Random) -> Any:
    return _spell(value.decode("latin-1"), random).encode("latin-1", "replace")


def _fill(value: Any, random: Random) -> Any:
    kind = type(value)
    items = [make_other(item, random) for item in list(value)[:MOST]]
    return kind([*items, *list(value)[MOST:]] if items else [random.choice(LETTERS)])


def _fill_set(value: Any, random: Random) -> Any:
    items = [make_other(item, random) for item in list(value)[:MOST]]
    made = set(items or [random.choice(LETTERS)])
    return made if not made <= value else {*made, random.choice(LETTERS) * random.randint(2, 9)}


def _fill_dict(value: Any, random: Random) -> Any:
    items = list(value.items())[:MOST]
    if not items:
        return {random.choice(LETTERS): random.randint(1, 9)}
    return {**value, **{key: make_other(item, random) for key, item in items}}


_MAKERS: dict[type, Callable[[Any, Random], Any]] = {
    int: _step, float: _step, complex: _step, str: _spell, bytes: _spell_bytes,
    list: _fill, tuple: _fill, set: _fill_set, dict: _fill_dict,
}  # fmt: skip
