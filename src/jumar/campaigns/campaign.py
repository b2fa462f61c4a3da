"""Runs a campaign: keeps its worker processes busy until every rollout has ended, or it must stop."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
from anyio.abc import TaskGroup

from jumar.campaigns.journals import add_result, read_standings
from jumar.campaigns.messages import Report, RolloutEnded, RolloutLost
from jumar.campaigns.plan import CampaignPlan, get_run_folder, list_rollouts
from jumar.campaigns.schedule import RolloutEnd, Schedule
from jumar.core.quoting import make_one_line
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import explain_disk_faults

SESSION_LOCK, WORKER_LOCK = "session.lock", "worker.lock"
"""Names in a campaign's folder."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""Pauses before a rollout goes on after a fault: each is four times as long as the one before."""

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 15.0, 900.0
"""Waits at a limit of the provider that does not say how long: each is twice as long as the one before."""

DEADLINE = "the deadline of the campaign"
WAITING = "worker processes of an earlier session still end their runs; waiting for them"


class CampaignLimits(NamedTuple):
    """Limits of one session of a campaign, which the next one may choose anew."""

    concurrency: int
    """Rollouts at work at once."""
    processes: int
    """Worker processes that share them."""
    deadline: float | None = None
    """Time in seconds since 1970 after which nothing is begun and what is at work is halted."""


class CampaignProgress(NamedTuple):
    """Progress of a campaign."""

    ended: int
    known: int
    """Rollouts that had ended before this session; the rest is as a whole."""
    total: int
    active: int
    paused: int
    """Rollouts that wait for a fault or a limit to pass."""
    green: int
    usd: float
    """Cost of the rollouts that have ended; so are the test runs."""
    test_runs: int


class CampaignWorker(Protocol):
    """A worker for rollouts: a process of this machine, or a cluster."""

    @property
    def active(self) -> AbstractSet[str]:
        """Rollouts that the worker works on."""
        ...

    async def give(self, rollout: str) -> None:
        """Order the worker to work on *rollout*."""
        ...

    async def stop(self, why: str) -> None:
        """Order the worker to halt its runs."""
        ...

    async def dismiss(self) -> None:
        """Tell the worker that no more orders come: it ends when it has nothing to do."""
        ...

    def reports(self) -> AsyncIterator[Report]:
        """Yield the worker's reports until it has ended; rollouts active then are lost."""
        ...

    def kill(self) -> None:
        """Kill the worker, if it has not ended; its runs can be resumed from their journals."""
        ...


StartWorker = Callable[[int], Awaitable[CampaignWorker]]
"""Starts the worker of a number, counted from 1."""


class Campaign:
    """One session of the campaign in *folder*. *tell* gets every rollout that ends, and every wait."""

    def __init__(
        self, plan: CampaignPlan, folder: Path, start: StartWorker, limits: CampaignLimits, tell: Callable[[str], None]
    ) -> None:
        self._plan, self._start, self._limits, self._tell = plan, start, limits, tell
        self._folder = folder
        known = read_standings(folder, plan)
        self._schedule = Schedule(plan, known)
        self._total, self._known = len(known), len(self._schedule.ended)
        self._workers: list[CampaignWorker] = []
        self._stopped = ""
        self._held_until = 0.0
        """Time before which nothing is begun: the provider has had enough of calls."""
        self._tasks: TaskGroup

    @property
    def stopped(self) -> str:
        """Reason for which this session was told to stop; empty: it was not."""
        return self._stopped

    @property
    def progress(self) -> CampaignProgress:
        """Progress of the campaign. It may be read from another thread."""
        ended = tuple(self._schedule.ended.values())
        results = [end.result for end in ended if end.result is not None]
        return CampaignProgress(
            ended=len(ended),
            known=self._known,
            total=self._total,
            active=len(self._schedule.active),
            paused=len(self._schedule.paused),
            green=sum(end.stop == StopReason.GREEN for end in ended),
            usd=sum(result.usd for result in results),
            test_runs=sum(result.test_runs for result in results),
        )

    async def run(self) -> tuple[RolloutEnd, ...]:
        """Work until every rollout has ended, or the session must stop; return their ends, in fair order.

        Raises:
            Infra: if no worker process can be started.
        """
        if not self._schedule.is_over:
            async with anyio.create_task_group() as self._tasks:
                for number in range(self._limits.processes):
                    self._tasks.start_soon(self._keep_worker, number + 1)
                if self._limits.deadline is not None:
                    self._tasks.start_soon(self._watch_deadline, self._limits.deadline)
        self._schedule.close()
        ends = self._schedule.ended
        return tuple(
            add_result(ends[rollout.name], get_run_folder(self._folder, self._plan, rollout))
            for rollout in list_rollouts(self._plan)
        )

    async def stop(self, why: str) -> None:
        """Begin nothing more and halt the running rollouts; a second call kills the worker processes."""
        again, self._stopped = bool(self._stopped), self._stopped or why
        for worker in tuple(self._workers):
            if again:
                worker.kill()
            else:
                await worker.stop(why)
        await self._assign_work()

    async def _watch_deadline(self, deadline: float) -> None:
        await anyio.sleep(max(0.0, deadline - time.time()))
        await self.stop(DEADLINE)

    async def _keep_worker(self, number: int) -> None:
        """Keep one worker process running as long as there is work, and replace it if it dies."""
        while not self._is_over:
            worker = await self._start(number)
            self._workers.append(worker)
            try:
                await self._assign_work()
                async for report in worker.reports():
                    self._handle(report)
                    await self._assign_work()
            finally:
                self._workers.remove(worker)
                worker.kill()
            for rollout in tuple(worker.active):
                self._lose(rollout)
        await self._assign_work()

    @property
    def _is_over(self) -> bool:
        return self._schedule.is_over or (bool(self._stopped) and not self._schedule.active)

    async def _assign_work(self) -> None:
        """Give work to the workers that have least, or dismiss them all if there is no more."""
        while self._may_begin:
            rollout = self._schedule.take()
            if rollout is None:
                break
            await min(self._workers, key=lambda worker: len(worker.active)).give(rollout)
        if self._is_over:  # asked last: the rollouts that are left may just have been found to be a plateau
            for worker in tuple(self._workers):
                await worker.dismiss()
            if not self._workers:
                self._tasks.cancel_scope.cancel()

    @property
    def _may_begin(self) -> bool:
        busy = len(self._schedule.active) >= self._limits.concurrency
        return bool(self._workers) and not self._stopped and not busy and anyio.current_time() >= self._held_until

    def _handle(self, report: Report) -> None:
        name = report.rollout
        if isinstance(report, RolloutLost):
            self._lose(name)
        elif self._schedule.handle(report):
            self._pause(name, report.limit_seconds if isinstance(report, RolloutEnded) else None)
        elif name in self._schedule.ended:
            self._tell(format_end(self._schedule.ended[name], len(self._schedule.ended), self._total))

    def _pause(self, name: str, limit_seconds: float | None) -> None:
        """Let the rollout continue later; at a limit of the provider, begin nothing else before that either."""
        if limit_seconds is None:
            why = "a fault of the machine or the provider"
            seconds = min(FIRST_PAUSE_SECONDS * 4 ** (self._schedule.count_faults(name) - 1), LONGEST_PAUSE_SECONDS)
        else:
            why = "a limit of the provider"
            grown = FIRST_WAIT_SECONDS * 2 ** (self._schedule.count_limits(name) - 1)
            seconds = max(limit_seconds, min(grown, LONGEST_WAIT_SECONDS))
            self._held_until = max(self._held_until, anyio.current_time() + seconds)
        self._tasks.start_soon(self._wake, name, seconds)
        self._tell(f"{name}: {why}; it goes on in {seconds:g} s")

    def _lose(self, name: str) -> None:
        self._tell(f"{name}: its process died")
        self._schedule.lose(name)

    async def _wake(self, name: str, seconds: float) -> None:
        await anyio.sleep(seconds)
        self._schedule.wake(name)
        await self._assign_work()


def format_end(end: RolloutEnd, ended: int, total: int) -> str:
    """Return the line on a rollout that ended; *ended* of *total* have ended now."""
    how, result = end.stop, end.result
    if result is not None:
        how += f"  {result.standing}  {result.seconds:.1f} s" + (f"  ${result.usd:.4f}" if result.usd else "")
    why = f": {make_one_line(end.why)}" if end.why and (result is None or not result.said) else ""
    return f"[{ended}/{total}] {end.rollout}  {how}{why}"


@contextmanager
def lock_campaign(folder: Path, tell: Callable[[str], None]) -> Iterator[int]:
    """Lock the campaign in *folder*, and yield the descriptor of the lock, which its worker processes inherit.

    Waits for worker processes that outlived the session which started them: they end by themselves.

    Raises:
        BadInput: if the folder cannot be written, or another process runs this campaign.
    """
    with explain_disk_faults(f"cannot write to {folder}"):
        session, workers = (_open_lock(folder / name) for name in (SESSION_LOCK, WORKER_LOCK))
    try:
        if not _lock(session):
            raise BadInput(f"another process runs the campaign in {folder}; wait for it, or end it")
        if not _lock(workers):
            tell(WAITING)
            fcntl.flock(workers, fcntl.LOCK_EX)
        yield workers
    finally:
        os.close(session)
        os.close(workers)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _lock(fd: int) -> bool:
    """Lock *fd* at once; False: another process holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
