"""Runs the demo as ordinary runs: real tasks, the real kernel, one journal a bug."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.core.run.reducers.transitions import replay
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.importing.recipes import PlantedBug, PreparedRecipe
from jumar.journal.writer import read_journal
from jumar.runs.lifecycle import Begun, start
from jumar.runs.setup.result import Result
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from jumar.workspace.patch import format_diff
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

BOUNDS = Budget(attempts=10, seconds=150.0)
"""For one bug: what is not found by then is said to be not found."""

WHOLE_SECONDS = 480.0
"""For all of them: four times what an idle machine with 2 cores takes. The last ones get what is left."""

LEAST_SECONDS = 10.0
"""With less than this left, a bug is not begun."""


class DemoBug(msgspec.Struct, frozen=True):
    """Result of working on one bug of the demo."""

    prepared: PreparedRecipe
    result: Result
    diff: str
    candidates: int
    """Number of screened candidates; few of them were worth a verification."""

    @property
    def planted(self) -> bool:
        """Return whether the bug is planted."""
        return isinstance(self.prepared.recipe, PlantedBug)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `batch` and `demo` for programs."""

    campaign: str
    runs: tuple[Result, ...]
    usd: float
    tokens: int
    test_runs: int
    executions: int
    verdicts_cached: int
    seconds: float
    by_stop: dict[str, int]


async def work_through(
    prepared: tuple[PreparedRecipe, ...], runs: Path, environ: Mapping[str, str], begun: Begun, whole_seconds: float
) -> AsyncIterator[DemoBug]:
    """Run every task that could be prepared, one after the other, offline, for *whole_seconds*."""
    ends = time.monotonic() + whole_seconds
    for one in prepared:
        left = ends - time.monotonic()
        if one.folder is None or left < LEAST_SECONDS:
            continue
        task = apply_options(load_task(one.folder), Options(model="repair"))
        seconds = min(left, BOUNDS.seconds or left)
        task = replace(task, budget=replace(task.budget, attempts=BOUNDS.attempts, seconds=seconds))
        result = await start(task, runs, environ=environ, begun=begun)
        yield _shown(one, result)
        if result.stop is StopReason.INTERRUPTED:
            return


def _shown(prepared: PreparedRecipe, result: Result) -> DemoBug:
    folder = Path(result.events).parent
    entries = read_journal(folder)
    state = replay(entries)
    diff = format_diff(Store(find_objects_folder(folder)), state.run.tree, state.tree)
    return DemoBug(prepared, result, diff, candidates=_tried(folder))


def _tried(folder: Path) -> int:
    from jumar.core.state.events import ModelCall  # noqa: PLC0415  one reader of one field

    calls = [e.event for e in read_journal(folder) if isinstance(e.event, ModelCall)]
    return sum(int(str(c.reply.opaque.get("tried", 0))) for c in calls)


def summarise(campaign: str, shown: list[DemoBug], started: float) -> Summary:
    """Return all the runs of a demo that began at *started* (monotonic seconds)."""
    results = tuple(s.result for s in shown)
    return Summary(
        campaign=campaign,
        runs=results,
        usd=sum(r.usd for r in results),
        tokens=sum(r.tokens for r in results),
        test_runs=sum(r.test_runs for r in results),
        executions=sum(r.executions for r in results),
        verdicts_cached=0,
        seconds=round(time.monotonic() - started, 3),
        by_stop=dict(Counter(r.stop.value for r in results)),
    )


def select_fetched(prepared: tuple[PreparedRecipe, ...]) -> tuple[PreparedRecipe, ...]:
    """Return those that could be fetched.

    Raises:
        BadInput: if none could be.
    """
    there = tuple(p for p in prepared if p.folder is not None)
    if not there:
        why = prepared[0].fault if prepared else "there are no recipes"
        raise BadInput(f"nothing could be fetched ({why}); the first call needs a package registry")
    return there
