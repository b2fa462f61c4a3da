"""Ranks the agents of a challenge by their composites; pure arithmetic on the scores of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

import msgspec

from jumar.challenges.ranking.run_score import JudgeStanding, RunScore, score_round
from jumar.scorers.axes import Axis, AxisPoints, AxisScore, Composite, Label, add_up, average

STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the normal distribution's."""

NORMAL = 1.96

LAST: tuple[str, ...] = (Label.NEVER_EVALUATED, Label.TIMED_OUT, Label.GUARDRAIL, Label.CHEATED, Label.NOT_RUN)
"""Labels of the agents that are ranked last."""

UNTRUSTED = frozenset({Label.CHEATED, Label.GUARDRAIL})
"""Labels of which one run is enough to rank an agent last."""


class Lost(msgspec.Struct, frozen=True):
    """A reason for which an agent lost points."""

    axis: str
    what: str
    points: float
    """Points lost for it in the mean over the rounds."""
    places: tuple[str, ...] = ()
    """Some of the places: `path:line`, or the names of tests."""


class RankedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and its result."""

    rank: int
    agent: str
    composite: float
    maximum: float
    low: float | None = None
    """Lower end of the 95 % confidence interval over rounds; None: there were fewer than two. So is the next."""
    high: float | None = None
    axes: Mapping[str, AxisScore]
    labels: tuple[str, ...] = ()
    rounds: int
    """Rollouts of all tasks that count."""
    usd: float
    seconds: float
    tokens: int
    lost: tuple[Lost, ...] = ()
    """The reasons, the dearest first."""


def rank_agents(
    agents: Sequence[str], runs: Iterable[RunScore], points: AxisPoints, judge: JudgeStanding
) -> tuple[RankedAgent, ...]:
    """Return *agents* by their composite, the best first; of equals the cheaper one.

    Who was never evaluated, timed out, cheated or hit a guardrail comes last, with the label that says which.
    """
    by_agent: dict[str, list[RunScore]] = {agent: [] for agent in agents}
    for run in runs:
        by_agent[run.agent].append(run)
    ranked = [_rank_agent(agent, found, points, judge) for agent, found in by_agent.items()]
    ranked.sort(key=lambda each: (is_last(each), -round(each.composite, 6), each.usd))
    return tuple(msgspec.structs.replace(each, rank=number) for number, each in enumerate(ranked, 1))


def _rank_agent(agent: str, runs: Sequence[RunScore], points: AxisPoints, judge: JudgeStanding) -> RankedAgent:
    rounds: dict[int, list[RunScore]] = {}
    for run in list_counting(runs):
        rounds.setdefault(run.rollout, []).append(run)
    spent = (sum(run.usd for run in runs), sum(run.seconds for run in runs), sum(run.tokens for run in runs))
    if rounds:
        scored = [score_round(found, points, judge) for found in rounds.values()]
        axes = {axis: average(one[axis] for one in scored) for axis in scored[0]}
        each, added = [add_up(one) for one in scored], add_up(axes)
    else:
        axes = _score_nothing(points, judge, next((run.why for run in runs if run.why), ""))
        added = msgspec.structs.replace(add_up(axes), labels=(str(Label.NOT_RUN),))
        each = [added]
    low, high = _estimate_interval([one.points for one in each], added.maximum)
    return RankedAgent(
        rank=0,
        agent=agent,
        composite=added.points,
        maximum=added.maximum,
        low=low,
        high=high,
        axes={str(axis): score for axis, score in axes.items()},
        labels=_list_labels(runs, added),
        rounds=len(rounds),
        usd=round(spent[0], 6),
        seconds=round(spent[1], 3),
        tokens=spent[2],
        lost=tuple(_list_lost(rounds, axes, points)),
    )


def is_last(agent: RankedAgent) -> bool:
    """Return whether a label puts *agent* behind all agents without labels."""
    return any(label in LAST for label in agent.labels)


def list_counting(runs: Sequence[RunScore]) -> tuple[RunScore, ...]:
    """Return those of *runs*, of one agent, that count.

    A fault of the machine counts for nobody, as long as the task has another run. Where it has none, its points are
    lost: else whoever breaks on hard tasks would be measured by the easy ones alone.
    """
    known = {run.task for run in runs if run.counts}
    if not known:
        return ()
    lost = (msgspec.structs.replace(run, passed=None, label=Label.NOT_RUN) for run in runs if run.task not in known)
    return (*(run for run in runs if run.counts), *lost)


def _score_nothing(points: AxisPoints, judge: JudgeStanding, why: str) -> dict[Axis, AxisScore]:
    """Return the axes of an agent without runs: no points, and the same maximum as the others."""
    axes = {Axis.TESTS: AxisScore(0, points.tests, Label.NOT_RUN, why)}
    if not judge.absent:
        axes[Axis.PRINCIPLES] = AxisScore(0, points.principles, Label.WITHHELD if judge.withheld else Label.NOT_JUDGED)
    axes[Axis.SCARS] = AxisScore(0, points.scars, Label.NOT_RUN)
    return axes


def _list_labels(runs: Sequence[RunScore], added: Composite) -> tuple[str, ...]:
    """Return the labels of the axes, and those of single runs that make an agent last."""
    seen = [run.label for run in runs if run.counts and run.label in UNTRUSTED]
    known = {run.task for run in runs if run.counts}
    left_out = sum(not run.counts and run.task in known for run in runs)
    told = [f"{left_out} of {len(runs)} runs left out"] if left_out else []
    return tuple(dict.fromkeys((*seen, *added.labels, *told)))


def _estimate_interval(values: Sequence[float], maximum: float) -> tuple[float | None, float | None]:
    """Return Student's 95 % interval for the mean of *values*, within 0 and *maximum*."""
    if len(values) < 2:  # noqa: PLR2004  one value has no spread
        return None, None
    freedom = len(values) - 1
    half = (STUDENT[freedom - 1] if freedom <= len(STUDENT) else NORMAL) * stdev(values) / sqrt(len(values))
    middle = fmean(values)
    return max(0.0, middle - half), min(maximum, middle + half)


def _list_lost(
    rounds: Mapping[int, Sequence[RunScore]], axes: Mapping[Axis, AxisScore], points: AxisPoints
) -> Iterable[Lost]:
    count = max(1, len(rounds))
    lost: list[Lost] = []
    tests = axes[Axis.TESTS]
    if rounds and tests.points < tests.maximum:
        red = dict.fromkeys(place for found in rounds.values() for run in found for place in _list_red(run))
        lost.append(Lost(Axis.TESTS, "tests that do not pass", tests.maximum - tests.points, tuple(red)))
    scars: dict[str, list[float]] = {}
    places: dict[str, list[str]] = {}
    messages: dict[str, str] = {}
    for found in rounds.values():
        findings = [finding for run in found for finding in run.findings]
        for rule, worth in {finding.rule: finding.points for finding in findings}.items():
            scars.setdefault(rule, []).append(worth)
        for finding in findings:
            messages[finding.rule] = finding.message
            places.setdefault(finding.rule, []).append(f"{finding.path}:{finding.line}")
    for rule, worths in scars.items():
        what = f"{rule}: {messages[rule]}"
        lost.append(Lost(Axis.SCARS, what, sum(worths) / count, tuple(dict.fromkeys(places[rule]))))
    lost += _list_lost_marks(rounds, axes, points)
    return sorted(lost, key=lambda each: -each.points)


def _list_red(run: RunScore) -> list[str]:
    if run.passed is None:
        return [f"{run.task}: {run.label or 'not judged'}" + (f" ({run.why})" if run.why else "")]
    return [f"{run.task}: {test}" for test in run.red]


def _list_lost_marks(
    rounds: Mapping[int, Sequence[RunScore]], axes: Mapping[Axis, AxisScore], points: AxisPoints
) -> list[Lost]:
    if Axis.PRINCIPLES not in axes or axes[Axis.PRINCIPLES].label:
        return []
    runs = [run for found in rounds.values() for run in found if run.marks]
    every = sum(len(found) for found in rounds.values())
    lost: dict[str, float] = {}
    places: dict[str, list[str]] = {}
    for run in runs:
        valid = sum(mark.mark is not None for mark in run.marks)
        for mark in run.marks:
            if mark.mark is not None and mark.mark < 2:  # noqa: PLR2004  the best mark
                worth = points.principles * (2 - mark.mark) / (2 * valid * every)
                lost[mark.principle] = lost.get(mark.principle, 0) + worth
                quoted = (f"{place} {quote}" for place, quote in zip(mark.places, mark.quotes, strict=False))
                places.setdefault(mark.principle, []).extend(quoted)
    return [
        Lost(Axis.PRINCIPLES, name, worth, tuple(dict.fromkeys(places.get(name, ())))) for name, worth in lost.items()
    ]
