"""Suggestions for refusals of an unknown word: the nearest known word, and all known ones."""

from __future__ import annotations

from collections.abc import Iterable

MOST_EDITS = 3
"""More edits than that make another word."""

LEAST_PREFIX = 3
"""A shorter beginning says nothing about the rest."""


def build_suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that refuses *word* as a value.

    The nearest of *known* if one is near, and all of them.
    """
    known = tuple(map(str, known))
    near = find_nearest(word, known)
    every = f"known are {', '.join(known)}"
    return f"did you mean {near!r}? ({every})" if near else every


def find_nearest(word: str, known: Iterable[str]) -> str:
    """Return the one of *known* that *word* most likely stands for; empty if none is near.

    Near is: the same but for case and dashes, a few typing errors away, or made of the same parts (`timeout` for
    `timeout_seconds`, `middle` for `mid`).
    """
    ranked = [
        (rank, n, each) for n, each in enumerate(known) if (rank := _rank_word(_normalise(word), _normalise(each)))
    ]
    return min(ranked)[2] if ranked else ""


def _normalise(word: str) -> str:
    return word.strip().casefold().replace("-", "_").replace(" ", "_")


def _rank_word(word: str, known: str) -> tuple[int, int] | None:
    """Return the distance of *known* from *word*, lower is nearer; None: it is not near."""
    edits = _count_edits(word, known)
    if edits <= min(MOST_EDITS, max(len(word), len(known)) // 3):
        return 0, edits
    short, long = sorted((word, known), key=len)
    related = (
        _has_each_part(word, known)
        or _has_each_part(known, word)
        or (len(short) >= LEAST_PREFIX and long.startswith(short))
    )
    return (1, edits) if word and related else None


def _has_each_part(word: str, known: str) -> bool:
    """Return whether *known* has each part of *word*, with one typing error in each at most."""
    return all(
        any(part == each or (len(part) > LEAST_PREFIX and _count_edits(part, each) <= 1) for each in known.split("_"))
        for part in word.split("_")
    )


def _count_edits(word: str, known: str) -> int:
    """Count the insertions, deletions, substitutions and swaps of neighbours that turn *word* into *known*."""
    before: list[int] = []
    row = list(range(len(known) + 1))
    for i, a in enumerate(word, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(known, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == known[j - 2] and word[i - 2] == b:
                row[j] = min(row[j], older[j - 2] + 1)
    return row[-1]
