"""Scores of one run of a challenge: the findings of the trusted verifier, the judge and the scar rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from jumar.campaigns.schedule import OtherEnd
from jumar.core.state.stop import StopReason
from jumar.scorers.axes import (
    DISQUALIFYING,
    Axis,
    AxisPoints,
    AxisScore,
    Label,
    average,
    score_principles,
    score_scars,
    score_tests,
)
from jumar.scorers.principles.mark import PrincipleMark
from jumar.scorers.scars.search import Finding

NOT_COUNTED = frozenset({str(StopReason.INFRA), str(StopReason.INTERRUPTED), str(OtherEnd.NOT_BEGUN)})
"""Ends that are no fault of an agent: such a run counts neither for nor against it."""


class RunScore(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one rollout of one agent on one task."""

    agent: str
    task: str
    rollout: int
    run: str
    """Directory of the run, relative to its campaign's folder; empty: there is none."""
    stop: str
    passed: int | None
    """Passed tests, held-out ones included; None: it was never evaluated."""
    total: int
    red: tuple[str, ...] = ()
    """Tests that did not pass."""
    suite: str = ""
    """Identity of the expected tests: the same task in another language has others."""
    label: str = ""
    """A disqualifying `Label`, or empty."""
    why: str = ""
    findings: tuple[Finding, ...] = ()
    """Scars in what the agent wrote; none that the untouched files had."""
    marks: tuple[PrincipleMark, ...] = ()
    usd: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    out_of_budget: bool = False
    """True if it was cut short as the money, tokens or time of the whole campaign was used up."""

    @property
    def counts(self) -> bool:
        """Return whether the score says something about its agent."""
        return self.stop not in NOT_COUNTED and not self.out_of_budget

    @property
    def share(self) -> float:
        """Share of the tests that passed."""
        usable = self.passed is not None and self.total and self.label not in DISQUALIFYING - {Label.TIMED_OUT}
        return (self.passed or 0) / self.total if usable else 0.0


class JudgeStanding(msgspec.Struct, frozen=True):
    """State of the judge of a challenge: absent, fit to judge, or withheld."""

    gate: float = 0.5
    """Share of the tests that must pass, and more, before a run is judged."""
    absent: bool = False
    """True if there is no judge: the challenge has no principles, or was told to do without."""
    withheld: str = ""
    """Reason that the axis counts for nobody; empty: it counts."""


def score_round(runs: Sequence[RunScore], points: AxisPoints, judge: JudgeStanding) -> dict[Axis, AxisScore]:
    """Return the axes of *runs*: those of one agent, one on each task, taken together.

    Tests are counted over all tasks, marks are averaged over them, and a scar takes its points once for all.
    """
    labels = {run.label for run in runs if run.label}
    whole = next(iter(labels)) if labels and all(run.label for run in runs) else ""
    passed = sum(round(run.share * run.total) for run in runs)
    tests = score_tests(passed, sum(run.total for run in runs), points.tests, whole)
    why = next((run.why for run in runs if run.why), "") if whole else ""
    axes = {Axis.TESTS: msgspec.structs.replace(tests, why=why)}
    if not judge.absent:
        axes[Axis.PRINCIPLES] = average(score_marks(run, points.principles, judge) for run in runs)
    found = {finding.rule: finding.points for run in runs for finding in run.findings}
    axes[Axis.SCARS] = score_scars(found, points.scars)
    return axes


def score_marks(run: RunScore, maximum: float, judge: JudgeStanding) -> AxisScore:
    """Return the principles axis of one run."""
    if judge.withheld:
        return AxisScore(0, maximum, Label.WITHHELD, judge.withheld)
    if run.share <= judge.gate:
        return AxisScore(0, maximum, Label.NOT_JUDGED, f"at most {judge.gate:.0%} of the tests pass")
    if not run.marks:
        return AxisScore(0, maximum, Label.NOT_JUDGED, "it changed no source file")
    valid = [mark.mark for mark in run.marks if mark.mark is not None]
    if not valid:
        return AxisScore(0, maximum, Label.WITHHELD, "none of the judge's scores is valid")
    return score_principles(valid, maximum)


def select_runs(runs: Iterable[RunScore], agent: str) -> tuple[RunScore, ...]:
    """Return those of *runs* that are of *agent*."""
    return tuple(run for run in runs if run.agent == agent)
