"""Fresh inputs for a function: as the tests call it, but other values, within what all of the tests' inputs obey."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

Input = list[Any]
"""Positional arguments: numbers, strings, None, and lists, tuples and dicts of them."""


def fresh(samples: Sequence[Input], count: int, seed: int = 0) -> list[Input]:
    """*count* inputs at most, that obey every rule which all *samples* obey."""
    random = Random(seed)  # noqa: S311  # samples, not secrets
    rules = Rules(samples)
    known = {repr(s) for s in samples}
    found: dict[str, Input] = {}
    for _ in range(50 * count):
        if len(found) == count:
            break
        made = [rules.settled(i, varied(value, random)) for i, value in enumerate(random.choice(samples))]
        if repr(made) not in known and rules.hold(made):
            found[repr(made)] = made
    return list(found.values())


def varied(value: Any, random: Random) -> Any:
    """*value* with its size and some of its parts changed; its type stays."""
    kinds: dict[type, Callable[[Any, Random], Any]] = {
        bool: lambda v, r: r.choice((v, not v)),
        int: lambda v, r: r.choice((v, v + r.randint(-3, 3), r.randint(0, max(2 * abs(v), 5)))),
        float: lambda v, r: r.choice((v, v * r.uniform(0.5, 2.0), v + r.uniform(-1.0, 1.0))),
        str: lambda v, r: "".join(_resized(list(v), r, lambda c: r.choice((c, c, r.choice(v))))),
        list: lambda v, r: _resized(v, r, lambda w: varied(w, r)),
        tuple: lambda v, r: tuple(varied(w, r) for w in v),
        dict: lambda v, r: {k: varied(w, r) for k, w in v.items()},
    }
    return kinds[type(value)](value, random) if type(value) in kinds else value


def _resized(parts: list[Any], random: Random, vary: Any) -> list[Any]:
    made = [vary(part) for part in parts]
    if made and random.random() < 0.6:  # noqa: PLR2004  # mostly another size
        for _ in range(random.randint(0, 3)):
            place = random.randrange(len(made) + 1)
            if random.random() < 0.5 and made:  # noqa: PLR2004  # grow or shrink
                del made[min(place, len(made) - 1)]
            else:
                made.insert(place, vary(random.choice(parts)))
    return made


class Rules:
    """What all samples have in common: preconditions that nobody wrote down."""

    def __init__(self, samples: Sequence[Input]) -> None:
        self._columns = list(zip(*[s for s in samples if len(s) == len(samples[0])], strict=True))
        lists = [[v for v in column if isinstance(v, list)] for column in self._columns]
        full = [len(some) == len(column) and bool(some) for some, column in zip(lists, self._columns, strict=True)]
        self._sorted = [f and _all(some, _ascends) for f, some in zip(full, lists, strict=True)]
        self._distinct = [f and _all(some, _differ) for f, some in zip(full, lists, strict=True)]
        pairs = [(i, j) for i in range(len(full)) for j in range(len(full)) if full[j] and i != j]
        self._below = [(i, j) for i, j in pairs if all(_below(a, b) for a, b in self._rows(i, j))]

    def settled(self, position: int, value: Any) -> Any:
        """*value* made to obey the rules that can be enforced."""
        if position < len(self._sorted) and isinstance(value, list):
            if self._distinct[position]:
                value = [v for i, v in enumerate(value) if v not in value[:i]]
            if self._sorted[position]:
                value = sorted(value)
        return value

    def hold(self, made: Input) -> bool:
        """Whether *made* obeys the rest."""
        if len(made) != len(self._columns):
            return False
        sized = all(_within(value, column) for value, column in zip(made, self._columns, strict=True))
        return sized and all(_below(made[i], made[j]) for i, j in self._below)

    def _rows(self, i: int, j: int) -> Iterable[tuple[Any, Any]]:
        return zip(self._columns[i], self._columns[j], strict=True)


def _all(some: list[list[Any]], rule: Any) -> bool:
    return all(rule(v) for v in some) and any(len(v) > 1 for v in some)


def _ascends(values: list[Any]) -> bool:
    try:
        return all(a <= b for a, b in pairwise(values))
    except TypeError:
        return False


def _differ(values: list[Any]) -> bool:
    return len({repr(v) for v in values}) == len(values)


def _below(number: Any, values: Any) -> bool:
    return type(number) is int and isinstance(values, list) and 0 <= number < max(len(values), 1)


def _within(value: Any, column: Sequence[Any]) -> bool:
    """No number below the least one of the tests, nothing empty where nothing was, nothing much larger."""
    if type(value) is int:
        numbers = [v for v in column if type(v) is int]
        return not numbers or min(numbers) <= value <= 2 * max(numbers) + 5
    if isinstance(value, list | str):
        sizes = [len(v) for v in column if isinstance(v, list | str)]
        inner = [w for v in column if isinstance(v, list) for w in v]
        fits = all(_within(w, inner) for w in value) if isinstance(value, list) and inner else True
        return fits and (not sizes or min(sizes) <= len(value) <= max(sizes) + 3)
    return True
