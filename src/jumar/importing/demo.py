"""Runs the demo as ordinary runs: real tasks, the real kernel, one journal a bug."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from msgspec.structs import replace

from jumar.core.run.reducers.transitions import replay
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput, find_cause
from jumar.importing.recipes import PlantedBug, PreparedRecipe
from jumar.journal.writer import read_journal
from jumar.kernel import Kernel
from jumar.process.progress import get_tell
from jumar.runs.lifecycle import Begun, RunEntry, start_entered
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, try_sandbox
from jumar.runs.setup.result import Result
from jumar.runs.setup.run_directory import make_absolute, prepare_runs_folder
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task
from jumar.workspace.patch import format_diff
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

AT_ONCE = 2
"""Bugs that are worked on at once: one keeps little more than a core busy."""

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


class Stage(Protocol):
    """Shows the bugs that are worked on."""

    def follow(self, prepared: PreparedRecipe) -> AbstractContextManager[Begun]:
        """Return a context that follows the run on one of them."""
        ...

    def show(self, done: DemoBug) -> None:
        """Show the result on one of them."""
        ...

    def refuse(self, prepared: PreparedRecipe, why: str) -> None:
        """Note that one of them cannot be worked on."""
        ...


async def work_through(
    prepared: tuple[PreparedRecipe, ...], runs: Path, environ: Mapping[str, str], stage: Stage, whole_seconds: float
) -> None:
    """Run every prepared task offline, for *whole_seconds*: several at once if there are cores.

    Raises:
        BadInput: if each run is refused.
        Infra: if the machine failed.
    """
    work = _DemoWork(runs, environ, stage, time.monotonic() + whole_seconds)
    there = [one for one in prepared if one.folder is not None]
    try:
        async with anyio.create_task_group() as group:
            for one in sorted(there, key=lambda one: -one.recipe.seconds):
                group.start_soon(work.run, one)
    except BaseExceptionGroup as found:  # a person reads one sentence, not the groups that it came through
        raise find_cause(found) from found
    if len(work.refused) == len(there):
        raise work.refused[0]


class _DemoWork:
    """Works on bugs, one for each core at once, until one run is interrupted."""

    def __init__(self, runs: Path, environ: Mapping[str, str], stage: Stage, ends: float) -> None:
        self._runs, self._environ, self._stage, self._ends = runs, environ, stage, ends
        self._turn = anyio.CapacityLimiter(min(AT_ONCE, len(os.sched_getaffinity(0))))
        self._testing = anyio.Lock()
        self._tested = self._stopped = False
        self._entering: set[anyio.CancelScope] = set()
        """Of runs that are cancelled, where they have no kernel yet that was halted."""
        self.refused: list[BadInput] = []

    async def run(self, one: PreparedRecipe) -> None:
        """Work on *one* in its turn, if there is time. The others go on where it is refused."""
        try:
            await self._work(one)
        except BadInput as refused:
            self.refused.append(refused)
            self._stage.refuse(one, str(refused))

    async def _work(self, one: PreparedRecipe) -> None:
        async with self._turn:
            left = self._ends - time.monotonic()
            if self._stopped or left < LEAST_SECONDS:
                return
            task = apply_options(load_task(one.folder or Path()), Options(model="repair"))
            seconds = min(left, BOUNDS.seconds or left)
            task = replace(task, budget=replace(task.budget, attempts=BOUNDS.attempts, seconds=seconds))
            with self._stage.follow(one) as begun, anyio.CancelScope() as scope:
                self._entering.add(scope)
                try:
                    with anyio.CancelScope() as inner:
                        result = await self._start(task, begun, inner)
                finally:
                    self._entering.discard(scope)
            if scope.cancelled_caught:
                return
            self._stage.show(_build_bug(one, result))
            if result.stop is StopReason.INTERRUPTED:
                self._stopped = True
                for other in self._entering:
                    other.cancel()

    async def _start(self, task: Task, begun: Begun, inner: anyio.CancelScope) -> Result:
        """Run *task* in the scope *inner*. Once it has a kernel, only that is stopped, so its end is written."""
        tell = get_tell(begun)
        async with self._testing:  # the others wait, and find what was remembered
            if not self._tested:
                prepare_runs_folder(self._runs)
                around = SandboxSurroundings(make_absolute(self._runs), self._environ, (task.root,), tell=tell)
                await try_sandbox(task.sandbox, around, unattended=task.unattended)
                self._tested = True

        def enter(kernel: Kernel) -> None:
            inner.shield = True
            begun(kernel)

        return await start_entered(task, self._runs, RunEntry(self._environ, tell=tell), enter)


def _build_bug(prepared: PreparedRecipe, result: Result) -> DemoBug:
    folder = Path(result.events).parent
    entries = read_journal(folder)
    state = replay(entries)
    diff = format_diff(Store(find_objects_folder(folder)), state.run.tree, state.tree)
    return DemoBug(prepared, result, diff, candidates=_count_tried(folder))


def _count_tried(folder: Path) -> int:
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
    """Return the recipes whose sources were fetched.

    Raises:
        BadInput: if none could be.
    """
    there = tuple(p for p in prepared if p.folder is not None)
    if not there:
        why = prepared[0].fault if prepared else "there are no recipes"
        raise BadInput(f"nothing could be fetched ({why}); the first call needs a package registry")
    return there
