"""Shares of single runs in the composite of their round, as paired comparisons need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jumar.challenges.ranking.run_score import JudgeStanding, RunScore, score_marks, score_round
from jumar.scorers.axes import Axis, AxisPoints, Label


def share_out(runs: Sequence[RunScore], points: AxisPoints, judge: JudgeStanding) -> tuple[float, ...]:
    """Return the shares of *runs*, those of one round of one agent, in order; their mean is the round's composite.

    A task counts by the number of its tests, and a scar that several runs have is shared among them.
    """
    axes = score_round(runs, points, judge)
    total = sum(run.total for run in runs)
    tests = [len(runs) * points.tests * run.share * run.total / total if total else 0.0 for run in runs]
    withheld = Axis.PRINCIPLES not in axes or axes[Axis.PRINCIPLES].label == Label.WITHHELD
    marks = [0.0 if withheld else score_marks(run, points.principles, judge).points for run in runs]
    lost = [len(runs) * share for share in _share_scars(runs, points.scars - axes[Axis.SCARS].points)]
    return tuple(a + b + points.scars - c for a, b, c in zip(tests, marks, lost, strict=True))


def _share_scars(runs: Sequence[RunScore], lost: float) -> list[float]:
    """Return the part of each of *runs* in the points that their scars took."""
    rules: list[Mapping[str, float]] = [{each.rule: each.points for each in run.findings} for run in runs]
    holders = Counter(rule for found in rules for rule in found)
    weights = [sum(worth / holders[rule] for rule, worth in found.items()) for found in rules]
    whole = sum(weights)
    return [lost * weight / whole if whole else 0.0 for weight in weights]
