"""The three axes of a challenge, and the composite of them: pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

Points = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class Axis(StrEnum):
    """Axis of a challenge."""

    TESTS = "tests"
    PRINCIPLES = "principles"
    SCARS = "scars"


class Label(StrEnum):
    """Word for the reason why a score is not simply a number."""

    NEVER_EVALUATED = "never evaluated"
    """No test could be run on it: it does not build, or its set-up or its tests did not end in time."""
    TIMED_OUT = "timed out"
    """The agent had not finished when its time was over."""
    CHEATED = "cheated"
    """It tampered with its tests, or has answers of the visible ones written down and fails the held-out ones."""
    GUARDRAIL = "guardrail"
    """A guardrail ended the run."""
    NOT_RUN = "not run"
    """It was refused, interrupted, or its campaign ended first."""
    NOT_JUDGED = "not judged"
    """It passes too few tests for its principles to be looked at: they count 0."""
    WITHHELD = "withheld"
    """The judge was not fit to judge: the axis counts for nobody."""


DISQUALIFYING = frozenset({Label.NEVER_EVALUATED, Label.TIMED_OUT, Label.CHEATED, Label.GUARDRAIL, Label.NOT_RUN})
"""Labels of runs that are ranked behind all others."""


class AxisPoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points that can be reached on each axis."""

    tests: Points = 63
    principles: Points = 20
    scars: Points = 9


class AxisScore(msgspec.Struct, frozen=True):
    """Points on one axis."""

    points: float
    maximum: float
    label: str = ""
    """A `Label`; empty: it is simply a number."""
    why: str = ""


class Composite(msgspec.Struct, frozen=True):
    """Sum of the axes that count."""

    points: float
    maximum: float
    labels: tuple[str, ...] = ()
    """Labels of the axes, such as `principles withheld`."""


def score_tests(passed: int | None, total: int, maximum: float, label: str = "") -> AxisScore:
    """Return the points of *passed* of *total* tests, in proportion; None: it was never evaluated."""
    if passed is None or label in (Label.NEVER_EVALUATED, Label.NOT_RUN, Label.CHEATED):
        return AxisScore(0, maximum, label or Label.NEVER_EVALUATED)
    return AxisScore(maximum * passed / total if total else 0, maximum, label)


def score_principles(marks: Sequence[float], maximum: float) -> AxisScore:
    """Return the points of *marks*, of which each is 0 to 2."""
    return AxisScore(maximum * sum(marks) / (2 * len(marks)) if marks else 0, maximum)


def score_scars(points: Mapping[str, float], maximum: float) -> AxisScore:
    """Return *maximum* less *points* (rule -> points); never less than 0."""
    return AxisScore(max(0.0, maximum - sum(points.values())), maximum)


def is_worth_judging(passed: int | None, total: int, gate: float) -> bool:
    """Return whether more than the share *gate* of the tests passed, so that principles are judged."""
    return passed is not None and total > 0 and passed / total > gate


def add_up(axes: Mapping[Axis, AxisScore]) -> Composite:
    """Return the sum of *axes*; one that is withheld counts neither in the points nor in their maximum."""
    counted = [score for score in axes.values() if score.label != Label.WITHHELD]
    labels = tuple(_name_label(axis, score) for axis, score in axes.items() if score.label)
    return Composite(sum(s.points for s in counted), sum(s.maximum for s in counted), labels)


def average(scores: Iterable[AxisScore]) -> AxisScore:
    """Return the mean of *scores* of one axis; a label is kept if all of them have it."""
    found = list(scores)
    labels = {score.label for score in found}
    return AxisScore(
        sum(score.points for score in found) / len(found),
        found[0].maximum,
        labels.pop() if len(labels) == 1 else "",
        next((score.why for score in found if score.why), ""),
    )


def _name_label(axis: Axis, score: AxisScore) -> str:
    return score.label if axis is Axis.TESTS else f"{axis} {score.label}"
