"""Compares two agents on the same tasks: McNemar's exact test on tests, a bootstrap and a sign test on composites."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import comb
from statistics import fmean

import msgspec

from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.challenges.ranking.run_shares import share_out
from jumar.scorers.axes import AxisPoints

RESAMPLES = 10_000
SEED = 14
"""The same runs give the same interval each time."""

EXACT = 14
"""Pairs up to which all flips of signs are counted; beyond, `RESAMPLES` of them are drawn."""

Cell = tuple[str, int]
"""A task and the number of a rollout."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Paired comparison of the agents `a` and `b`."""

    a: str
    b: str
    pairs: int
    """Runs of one task and rollout number that both have."""
    tests_a: int
    """Tests that `a` alone passes, over all pairs; the next is of `b`."""
    tests_b: int
    p_tests: float
    """Exact two-sided p-value of McNemar's test. Tests of one run are no independent draws: it is a lower bound."""
    difference: float
    """Composite of `a` minus that of `b`, over the pairs."""
    low: float | None
    """Lower end of its 95 % bootstrap interval; None: there were fewer than two pairs. So is the next."""
    high: float | None
    p_better: float
    """One-sided p-value for `a` being no better than `b`, by flips of signs."""
    unpaired: int = 0
    """Runs of either that have no counterpart, or do not count: the ranking may have counted them."""


def compare(a: Sequence[RunScore], b: Sequence[RunScore], points: AxisPoints, judge: JudgeStanding) -> Comparison:
    """Return the comparison of the runs of two agents, paired by task and rollout; runs that do not count are left out.

    Sources: McNemar (1947), exact by the binomial distribution; Efron (1979), percentile bootstrap, rollouts drawn
    within each task; Fisher's permutation test for pairs.
    """
    cells = _pair(a, b)
    alone = [_count_alone(*each) for each in cells.values()]
    alone_a, alone_b = (sum(found[side] for found in alone) for side in (0, 1))
    differences = _subtract(cells, points, judge)
    low, high = _bootstrap(differences)
    values = list(differences.values())
    return Comparison(
        a=a[0].agent if a else "",
        b=b[0].agent if b else "",
        pairs=len(cells),
        tests_a=alone_a,
        tests_b=alone_b,
        p_tests=compute_mcnemar(alone_a, alone_b),
        difference=fmean(values) if values else 0.0,
        low=low,
        high=high,
        p_better=compute_sign_flip(values),
        unpaired=len(a) + len(b) - 2 * len(cells),
    )


def compute_mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of McNemar's test for that many discordant pairs on either side."""
    trials, least = only_a + only_b, min(only_a, only_b)
    if not trials:
        return 1.0
    below = sum(comb(trials, k) for k in range(least + 1))
    return float(min(1.0, 2 * below / 2**trials))


def compute_sign_flip(differences: Sequence[float]) -> float:
    """Return the chance of a sum as large as that of *differences*, if the sign of each had been tossed."""
    values = [value for value in differences if value]
    if not values:
        return 1.0
    seen = sum(values) - 1e-9
    if len(values) <= EXACT:
        sizes = [abs(value) for value in values]
        flips = product((1, -1), repeat=len(values))
        sums = [sum(sign * size for sign, size in zip(signs, sizes, strict=True)) for signs in flips]
        return sum(total >= seen for total in sums) / len(sums)
    chance = random.Random(SEED)  # noqa: S311  a resample, no secret
    tossed = (sum(value * chance.choice((1, -1)) for value in values) for _ in range(RESAMPLES))
    return (1 + sum(total >= seen for total in tossed)) / (RESAMPLES + 1)


def _pair(a: Iterable[RunScore], b: Iterable[RunScore]) -> Mapping[Cell, tuple[RunScore, RunScore]]:
    first = {(run.task, run.rollout): run for run in a if run.counts}
    second = {(run.task, run.rollout): run for run in b if run.counts}
    return {cell: (first[cell], second[cell]) for cell in sorted(first.keys() & second.keys())}


def _subtract(
    cells: Mapping[Cell, tuple[RunScore, RunScore]], points: AxisPoints, judge: JudgeStanding
) -> Mapping[Cell, float]:
    """Return, for each pair, the first run's share in the composite of its round less that of the second."""
    rounds: dict[int, list[Cell]] = {}
    for cell in cells:
        rounds.setdefault(cell[1], []).append(cell)
    differences: dict[Cell, float] = {}
    for found in rounds.values():
        first, second = (share_out([cells[cell][side] for cell in found], points, judge) for side in (0, 1))
        differences.update({cell: x - y for cell, x, y in zip(found, first, second, strict=True)})
    return differences


def _count_alone(a: RunScore, b: RunScore) -> tuple[int, int]:
    """Return the number of tests that *a* alone passes, and that *b* alone passes; none, if their tests differ."""
    if a.suite != b.suite and a.suite and b.suite:
        return 0, 0
    failed_a, failed_b = (None if not run.share and not run.red else set(run.red) for run in (a, b))
    if failed_a is None or failed_b is None:
        return round(a.share * a.total), round(b.share * b.total)
    return len(failed_b - failed_a), len(failed_a - failed_b)


def _bootstrap(differences: Mapping[Cell, float]) -> tuple[float | None, float | None]:
    """Return the 95 % percentile interval of the mean; rollouts are drawn again within each task."""
    if len(differences) < 2:  # noqa: PLR2004  one pair has no spread
        return None, None
    by_task: dict[str, list[float]] = {}
    for (task, _), value in differences.items():
        by_task.setdefault(task, []).append(value)
    if max(map(len, by_task.values())) == 1:  # one rollout of each: tasks are all there is to draw from
        by_task = {"": list(differences.values())}
    chance = random.Random(SEED)  # noqa: S311  a resample, no secret
    means = sorted(
        sum(sum(chance.choices(values, k=len(values))) for values in by_task.values()) / len(differences)
        for _ in range(RESAMPLES)
    )
    return means[int(RESAMPLES * 0.025)], means[int(RESAMPLES * 0.975)]
