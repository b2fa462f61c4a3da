"""Parent side of screening: sends trials, receives results. They order candidates; the verifier decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from jumar.child import start
from jumar.child.screening import screening_main
from jumar.core.state.settings import Suite
from jumar.errors import Infra
from jumar.ports import Invocation, Runner, Sandbox
from jumar.process.child_process import Child, run_confined
from jumar.process.launch import Confinement
from jumar.process.room import TreeStore, lay_out
from jumar.repair.candidates import Candidate
from jumar.sandbox.request import Reach
from jumar.sandbox.unconfined import Unconfined

WALL_FACTOR = 4.0
"""Limits are in processor seconds; on a busy machine as many times more pass on the clock."""


HOPELESS = (2, 8)
"""After so many red tests failed and none passed, the rest are not run: one per test function, within these bounds."""


@dataclass(frozen=True, slots=True)
class ScreeningConfinement:
    """Confinement of screening: the folder of its rooms, the sandbox and its reach."""

    rooms: Path
    """Folder in which trees are laid out."""
    sandbox: Sandbox = field(default_factory=Unconfined)
    reach: Reach = field(default_factory=Reach)

    def confine(self, room: Path, seconds: float) -> Confinement:
        """Return the confinement of one process in *room*: it sees jumar's scripts, beside the usual reach."""
        reach = msgspec.structs.replace(self.reach, readable=(*self.reach.readable, Path(start.FOLDER)))
        return Confinement(room=room, seconds=seconds, sandbox=self.sandbox, reach=reach)


@dataclass(frozen=True, slots=True)
class ScreeningTree:
    """Tree, tests, runner and confinement with which candidates are screened."""

    store: TreeStore
    runner: Runner
    suite: Suite
    fence: ScreeningConfinement
    tree: str
    red: tuple[str, ...]
    green: tuple[str, ...]
    editable: tuple[str, ...]
    seconds: float
    """Longest lifetime of a screening process."""


@dataclass(frozen=True, slots=True)
class ScreeningTrial:
    """One candidate, the time each of its tests may take, and how much it must achieve."""

    index: int
    candidate: Candidate | None
    """Candidate to screen; None is the tree as it is."""
    seconds: float
    floor: int = 0
    """Unless more red tests than this turn green, the green ones are not run."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Observations from screening one candidate."""

    turned: frozenset[str] = frozenset()
    """Red tests that passed."""
    kept: bool = False
    """All green tests were run and none was lost."""
    hung: bool = False
    signs: tuple[str, ...] = ()
    """Failures of the red tests, in order."""
    seconds: float = 0.0
    """Processor time of the slowest red test that came to its end."""
    misfit: bool = False
    """The change could not be swapped in; it has to be imported."""


def parse_sighting(lines: Sequence[Sequence[Any]]) -> Sighting:
    """Parse the lines of a screening child into a sighting."""
    turned = frozenset(str(line[1]) for line in lines if line[0] == "red" and line[2] == "passed")
    signs = tuple(str(line[3]) for line in lines if line[0] == "red" and line[2] != "passed")
    kinds = {str(line[0]) for line in lines}
    seconds = max((float(line[4]) for line in lines if line[0] == "red"), default=0.0)
    return Sighting(turned, "kept" in kinds, "hung" in kinds, signs, seconds, "misfit" in kinds)


class ScreeningWorker:
    """Screens one trial at a time, in a warm process if it can, else in a cold one."""

    def __init__(self, ground: ScreeningTree, stack: AsyncExitStack, turned: Callable[[int], None]) -> None:
        self._ground, self._turned = ground, turned
        self._stack = stack
        self._warm: Child | None = None
        self._cold: Child | None = None
        self._measured: list[Child] = []
        """Processes that know how the green tests come out without a change, and how long they take."""
        self._importing = False
        """True if no change can be swapped in, because the tests do not import yet."""

    async def prepare(self) -> None:
        """Start the warm process, so that the tests are collected while candidates are generated."""
        self._warm = await self._start(cold=False)
        self._importing = self._warm is None

    async def screen(self, trial: ScreeningTrial) -> Sighting:
        """Screen *trial* and return its sighting."""
        candidate = trial.candidate
        if not self._importing and (candidate is None or candidate.swappable):
            lines = await self._screen_warm(trial)
            if lines is not None and not (sighting := parse_sighting(lines)).misfit:
                return sighting
        if self._cold is None:
            self._cold = await self._start(cold=True)
            if self._cold is None:
                raise Infra("the screening process did not start; run `jumar doctor`")
        files = {candidate.path: candidate.text} if candidate else {}
        lines = await self._screen_in(self._cold, _build_job(trial, len(self._ground.green)) | {"files": files})
        if lines is None:
            self._cold = None
            return Sighting()
        return parse_sighting(lines)

    async def _screen_warm(self, trial: ScreeningTrial) -> list[Any] | None:
        if self._warm is None:
            await self.prepare()
        if self._warm is None:
            return None
        lines = await self._screen_in(
            self._warm, _build_job(trial, len(self._ground.green)) | _build_swap(trial.candidate)
        )
        if lines is None:
            self._warm = None
        return lines

    async def _screen_in(self, child: Child, job: Mapping[str, object]) -> list[Any] | None:
        """Return the lines of *job*. Few candidates get as far as the green tests.

        Those are measured for the first that does.
        """
        lines = await _exchange(child, job, self._turned)
        if not lines or ["kept"] not in lines or child in self._measured or not self._ground.green:
            return lines
        self._measured.append(child)
        limit = self._ground.suite.test_timeout_seconds
        baseline = {"number": -1, "baseline": True, "seconds": limit, "wall": self._ground.seconds, "floor": 0}
        if await _exchange(child, baseline) is None:
            return None
        return await _exchange(child, job)

    async def _start(self, *, cold: bool) -> Child | None:
        """Return a process that is ready for trials, or None if it cannot be made ready."""
        ground = self._ground
        room = await self._stack.enter_async_context(lay_out(ground.store, ground.tree, ground.fence.rooms))
        invocation = _build_invocation(ground, room, cold=cold)
        child = await self._stack.enter_async_context(
            run_confined(invocation, ground.fence.confine(room, ground.seconds))
        )
        while (record := await child.receive()) is not None:
            if record[0] == "ready":
                return child
            if record[0] == "unready":
                return None
        return None


@asynccontextmanager
async def open_worker(
    ground: ScreeningTree, turned: Callable[[int], None] = lambda _: None
) -> AsyncIterator[ScreeningWorker]:
    """Yield a worker on *ground*; leaving ends its processes.

    *turned* is called with the number of a trial under which all red tests pass, before the green ones are run.
    """
    async with AsyncExitStack() as stack:
        one = ScreeningWorker(ground, stack, turned)
        await one.prepare()
        yield one


def _build_invocation(ground: ScreeningTree, room: Path, *, cold: bool) -> Invocation:
    """Return the runner's own invocation, with jumar's script in place of its program."""
    ids = [*ground.red, *ground.green]
    plain = ground.runner.verification(ground.suite, room, ids)
    argv = (*plain.argv[:-2], *start.build_command(screening_main))
    red, functions = spread(ground.red)
    own = {
        "red": red,
        "green": ground.green,
        "editable": ground.editable,
        "cold": cold,
        "hopeless": min(max(functions, HOPELESS[0]), HOPELESS[1]),
    }
    return msgspec.structs.replace(plain, argv=argv, config={**plain.config, **own})


def spread(red: Sequence[str]) -> tuple[list[str], int]:
    """Return the *red* ids with those of different test functions first, and how many functions there are."""
    functions: dict[str, list[str]] = {}
    for test_id in red:
        functions.setdefault(test_id.partition("[")[0], []).append(test_id)
    rounds = zip_longest(*functions.values())
    return [test_id for each in rounds for test_id in each if test_id is not None], len(functions)


def _build_job(trial: ScreeningTrial, greens: int) -> dict[str, object]:
    wall = WALL_FACTOR * trial.seconds + 2.0 + 0.1 * greens
    return {"number": trial.index, "seconds": trial.seconds, "wall": wall, "floor": trial.floor}


def _build_swap(candidate: Candidate | None) -> dict[str, object]:
    if candidate is None:
        return {}
    unit = candidate.unit
    return {"path": candidate.path, "first": unit.first, "name": unit.name, "snippet": candidate.snippet}


async def _exchange(
    child: Child, job: Mapping[str, object], turned: Callable[[int], None] = lambda _: None
) -> list[Any] | None:
    """Send *job* and await its lines; None if the process is gone. *turned* as in `open_worker`."""
    await child.send(job)
    number = int(str(job["number"]))
    while (record := await child.receive()) is not None:
        if record == ["turned", number]:
            turned(number)
        if record[0] == "screened" and record[1] == number:
            lines = record[2]
            return lines if isinstance(lines, list) else None
    return None
