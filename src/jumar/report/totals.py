"""Adds up runs: by task, by configuration, by failure, and all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from jumar.core.state.stop import StopReason
from jumar.report.read_run import Configuration, RunReport
from jumar.report.statistics import Estimate, Tally, average_pass_at_k, choose_ks

RECURRING = 20
"""Failures listed of those that recur."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over runs. Seconds are time at work, wall seconds those between the first event and the last one."""

    runs: int
    counted: int
    """Runs whose end says something about the agent."""
    green: int
    usd: float
    tokens: int
    cached_share: float | None
    """Share of the prompt tokens that a provider served from its cache; None: there were none."""
    test_runs: int
    cached_verdicts: int
    executions: int
    seconds: float
    wall_seconds: float
    by_stop: Mapping[str, int]


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one task, added up."""

    name: str
    runs: tuple[RunReport, ...]
    best: RunReport
    """The run with the best result; of equals the cheapest one."""
    pass_at_1: Estimate | None
    """Over the runs of this task; None: no run counts."""
    totals: Totals


class ConfigurationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one configuration on all its tasks."""

    configuration: Configuration
    tasks: int
    solved: int
    rollouts: int
    """Rollouts that count."""
    pass_at: Mapping[str, Estimate]
    """k, as a text -> pass@k."""
    usd: float
    usd_per_solved: float | None
    """Cost of a solved task; None if no task is solved."""


class RecurringFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure that best trees of several runs, or one, still have."""

    fingerprint: str
    test: str
    message: str
    runs: int
    of: int
    """Runs of the tasks it occurred in."""
    tasks: tuple[str, ...]
    is_new: bool
    """True if the test passed before any of those runs."""


def add_up(runs: Sequence[RunReport]) -> Totals:
    """Return the sums over *runs*."""
    prompt = sum(run.prompt_tokens for run in runs)
    cached = sum(run.cached_tokens for run in runs)
    return Totals(
        runs=len(runs),
        counted=sum(run.counted for run in runs),
        green=sum(run.is_green for run in runs),
        usd=round(sum(run.result.usd for run in runs), 6),
        tokens=sum(run.result.tokens for run in runs),
        cached_share=round(cached / prompt, 4) if prompt else None,
        test_runs=sum(run.result.test_runs for run in runs),
        cached_verdicts=sum(run.cached_verdicts for run in runs),
        executions=sum(run.result.executions for run in runs),
        seconds=round(sum(run.result.seconds for run in runs), 3),
        wall_seconds=round(
            max((run.ended for run in runs), default=0.0) - min((run.started for run in runs), default=0.0), 3
        ),
        by_stop=dict(Counter(run.stop for run in runs).most_common()),
    )


def group_by_task(runs: Iterable[RunReport]) -> Iterator[TaskReport]:
    """Yield the tasks of *runs*, in the order of their names. Another first tree makes another task."""
    by_task: dict[tuple[str, str], list[RunReport]] = {}
    for run in runs:
        by_task.setdefault((run.task, run.base), []).append(run)
    names = Counter(name for name, _ in by_task)
    for name, base in sorted(by_task):
        here = by_task[name, base]
        yield TaskReport(
            name=name if names[name] == 1 else f"{name} (tree {base[:8]})",
            runs=tuple(sorted(here, key=lambda run: run.rollout)),
            best=max(here, key=lambda run: (run.is_green, run.result.passed or 0, -run.result.usd)),
            pass_at_1=average_pass_at_k([_count(here)], 1),
            totals=add_up(here),
        )


def _count(runs: Iterable[RunReport]) -> Tally:
    counted = [run for run in runs if run.counted]
    return Tally(len(counted), sum(run.is_green for run in counted))


def compare_configurations(tasks: Sequence[TaskReport]) -> Iterator[ConfigurationReport]:
    """Yield a report for each configuration that occurs in *tasks*: pass rates of different ones are never mixed."""
    runs = [run for task in tasks for run in task.runs]
    for configuration in sorted({run.configuration for run in runs}):
        here = [[run for run in task.runs if run.configuration == configuration] for task in tasks]
        groups = [group for group in here if group]
        tallies = [_count(group) for group in groups]
        solved = sum(any(run.is_green for run in group) for group in groups)
        usd = sum(run.result.usd for group in groups for run in group)
        estimates = {str(k): average_pass_at_k(tallies, k) for k in choose_ks(tallies)}
        yield ConfigurationReport(
            configuration=configuration,
            tasks=len(groups),
            solved=solved,
            rollouts=sum(tally.rollouts for tally in tallies),
            pass_at={k: estimate for k, estimate in estimates.items() if estimate is not None},
            usd=round(usd, 6),
            usd_per_solved=round(usd / solved, 6) if solved else None,
        )


def find_recurring(tasks: Sequence[TaskReport]) -> tuple[RecurringFailure, ...]:
    """Return the failures of best trees, those of most runs first; runs that are not counted are left out."""
    seen: dict[tuple[str, str], list[tuple[TaskReport, RunReport]]] = {}
    for task in tasks:
        for run in task.runs:
            for test in run.failing if run.counted and run.stop != StopReason.GREEN else ():
                seen.setdefault((test.fingerprint, test.id), []).append((task, run))
    return tuple(
        _describe(fingerprint, test_id, places)
        for (fingerprint, test_id), places in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0][1]))[
            :RECURRING
        ]
    )


def _describe(fingerprint: str, test_id: str, places: Sequence[tuple[TaskReport, RunReport]]) -> RecurringFailure:
    tasks = {task.name: task for task, _ in places}
    tests = [test for _, run in places for test in run.failing if test.id == test_id]
    return RecurringFailure(
        fingerprint=fingerprint,
        test=test_id,
        message=next((test.message for test in tests if test.fingerprint == fingerprint), ""),
        runs=len(places),
        of=sum(task.totals.counted for task in tasks.values()),
        tasks=tuple(tasks),
        is_new=any(test.is_new for test in tests),
    )
