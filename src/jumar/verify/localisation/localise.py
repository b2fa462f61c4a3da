"""Localises a fault: lines that red tests run and green ones do not are suspicious (Ochiai). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

Line = tuple[str, int]
"""Path and line number."""

IMPORTED = 0.1
"""Weight of a line that only an import ran: every test depends on it, so its score says little."""

SUSPECTS = 2000
"""Most suspicious lines that are named: they are written into the journal, and nobody tries the rest."""


def compute_ochiai(red_hits: int, green_hits: int, red: int) -> float:
    """Return suspiciousness of a line that *red_hits* of *red* red tests and *green_hits* green tests run, 0 to 1."""
    if not red_hits:
        return 0.0
    return red_hits / sqrt(red * (red_hits + green_hits))


def rank(
    red: Sequence[Iterable[Line]], green: Sequence[Iterable[Line]], imported: Iterable[Line]
) -> tuple[tuple[str, int, float], ...]:
    """Return the suspicious lines, most suspicious first.

    Args:
        red: what each red test ran; an empty one (a test whose file does not import) counts too.
        green: what each green test ran.
        imported: what ran while the tests were imported. It matters for lines that no test ran, in files that a red
            test reached, or in all files if none was reached.
    """
    red_hits = Counter(line for lines in red for line in set(lines))
    green_hits = Counter(line for lines in green for line in set(lines))
    scores = {line: compute_ochiai(hits, green_hits[line], len(red)) for line, hits in red_hits.items()}
    reached = {path for path, _ in red_hits}
    floor = IMPORTED * compute_ochiai(len(red), len(green), len(red))
    for line in imported:
        if line not in red_hits and line not in green_hits and (line[0] in reached or not reached):
            scores[line] = floor
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return tuple((path, number, round(score, 6)) for (path, number), score in ordered if score > 0)[:SUSPECTS]
