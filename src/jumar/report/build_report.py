"""Builds a report from directories of runs and of campaigns."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

import msgspec

from jumar.campaigns.journals import list_open_rollouts
from jumar.campaigns.plan import PLAN, CampaignPlan, get_run_folder, list_rollouts, load_plan
from jumar.core.state.stop import StopReason
from jumar.corpus.export import find_run_directories
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS
from jumar.report.read_run import RunReport, read_run
from jumar.report.totals import (
    ConfigurationReport,
    RecurringFailure,
    TaskReport,
    Totals,
    add_up,
    compare_configurations,
    find_recurring,
    group_by_task,
)
from jumar.runs.archive.listing import UNFINISHED
from jumar.runs.setup.marks import Trust

CAN_GO_ON = frozenset({StopReason.INTERRUPTED, UNFINISHED})


class Attention(msgspec.Struct, frozen=True):
    """Something that a person should look at."""

    what: str
    run: str
    """Name of the run that it is about."""
    folder: str
    """Directory of that run."""


class CampaignState(msgspec.Struct, frozen=True):
    """One of the campaigns that a report is about."""

    folder: str
    rollouts: int
    """Planned rollouts."""
    missing: tuple[str, ...]
    """Rollouts without a journal: not begun yet, refused, or left out by --patience."""
    resume: str
    """Command that goes on with it; empty: there is nothing to go on with."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page and the lines of text show."""

    made: float
    """Time in seconds since 1970."""
    campaigns: tuple[CampaignState, ...]
    totals: Totals
    solved: int
    """Tasks with a green run."""
    attention: tuple[Attention, ...]
    configurations: tuple[ConfigurationReport, ...]
    failures: tuple[RecurringFailure, ...]
    tasks: tuple[TaskReport, ...]
    not_run: tuple[str, ...]
    """Planned tasks without a run that can be read: not begun yet, refused, left out by --patience, or damaged."""
    damaged: tuple[str, ...]
    """Journals that cannot be read, one sentence each."""


def build_report(places: Sequence[Path]) -> Report:
    """Return the report on the runs and campaigns at or below *places*.

    A journal that cannot be read is named, and the others are shown.

    Raises:
        BadInput: if one of *places* holds neither a run nor a campaign.
    """
    plans = {folder.resolve(): plan for folder, plan in _find_plans(places)}
    names = {
        get_run_folder(folder, plan, rollout).name: rollout
        for folder, plan in plans.items()
        for rollout in list_rollouts(plan)
    }
    empty = [place for place in places if place.resolve() in plans and not any((place / "runs").glob("*/events.jsonl"))]
    known: dict[str, RunReport] = {}
    damaged: list[str] = []
    for folder in find_run_directories(place for place in places if place not in empty):
        try:
            if (run := read_run(folder, names)) is None:
                damaged.append(f"{folder}: its journal has no first event; nothing was done, or it was emptied")
            else:
                known.setdefault(run.identity, run)  # a copy is no second run
        except BadInput as fault:
            damaged.append(f"{folder}: {fault}")
    runs = tuple(known.values())
    tasks = tuple(group_by_task(runs))
    return Report(
        made=time.time(),
        campaigns=tuple(_describe(folder, plan, runs) for folder, plan in plans.items()),
        totals=add_up(runs),
        solved=sum(task.totals.green > 0 for task in tasks),
        attention=tuple(_find_attention(runs)),
        configurations=tuple(compare_configurations(tasks)),
        failures=find_recurring(tasks),
        tasks=tasks,
        not_run=tuple(_list_tasks_without_run(plans, {Path(run.folder).name for run in runs})),
        damaged=tuple(damaged),
    )


def _find_plans(places: Iterable[Path]) -> Iterator[tuple[Path, CampaignPlan]]:
    """Yield the campaigns in *places*. Their plans are only read, so their author does not matter."""
    for place in places:
        for plan in sorted({place / PLAN, *place.glob(f"*/{PLAN}")}):
            if plan.is_file():
                yield plan.parent, load_plan(plan.parent, Trust({}, anyone=True))


def _describe(folder: Path, plan: CampaignPlan, runs: Iterable[RunReport]) -> CampaignState:
    known = {Path(run.folder).name: run for run in runs}
    places = {rollout: get_run_folder(folder, plan, rollout) for rollout in list_rollouts(plan)}
    found = {rollout: known.get(place.name) for rollout, place in places.items()}
    without = (rollout for rollout, run in found.items() if run is None)
    missing = tuple(rollout.name for rollout in without if not (places[rollout] / EVENTS).is_file())
    unfinished = any(run is not None and run.stop in CAN_GO_ON for run in found.values())
    goes_on = False
    with suppress(BadInput):  # a journal that cannot be read has to be seen to first
        goes_on = bool(missing or unfinished) and bool(list_open_rollouts(folder, plan))
    return CampaignState(
        str(folder), len(found), missing, f"jumar batch --resume {quote(str(folder))}" if goes_on else ""
    )


def _list_tasks_without_run(plans: Mapping[Path, CampaignPlan], known: Container[str]) -> Iterator[str]:
    """Yield the name of each task of *plans* none of whose rollouts has a folder among the *known* ones."""
    for folder, plan in plans.items():
        tasks: dict[str, bool] = {}
        for rollout in list_rollouts(plan):
            ran = get_run_folder(folder, plan, rollout).name in known
            tasks[rollout.task.own_name] = ran or tasks.get(rollout.task.own_name, False)
        yield from (name for name, ran in tasks.items() if not ran)


def _find_attention(runs: Iterable[RunReport]) -> Iterator[Attention]:
    for run in runs:
        yield from (Attention(what, run.rollout, run.folder) for what in _list_concerns(run))


def _list_concerns(run: RunReport) -> Iterator[str]:
    """Yield the reasons why a person should look at *run*: decisions, guardrails, faults, doubtful tests."""
    if run.result.escalated is not None:
        yield f"escalated {run.result.escalated.test_id}: {run.result.escalated.reason}"
    yield from (f"guardrail {hit}" for hit in run.guardrails)
    if run.stop == StopReason.INFRA:
        yield f"a fault of the machine or the provider: {run.why}"
    if new := [test.id for test in run.failing if test.is_new]:
        yield f"its best tree breaks what passed before: {', '.join(new[:3])}"
    if run.result.taken_back:
        yield run.result.taken_back
    if run.other_verdict:
        yield f"a later verdict says otherwise, and is not counted here: {run.other_verdict}"
    if run.result.flaky:
        yield f"flaky tests: {', '.join(run.result.flaky[:3])}"
    if run.is_green and run.result.warnings:
        yield f"green with a warning: {run.result.warnings[0]}"
