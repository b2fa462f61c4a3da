"""Runs a strategy on a few workers. What is found does not depend on which worker was faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from jumar.repair.candidates import Candidate
from jumar.repair.screening import Ground, Sighting, Trial, worker
from jumar.repair.strategy import Strategy

LAG = 24
"""A trial is chosen knowing the sightings of all but the last so many: the same ones on every machine."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one search may use."""

    seconds: float
    attempts: int
    """Candidates, counted from the first of this tree."""
    workers: int = 2


class Search:
    """The search on one tree. It can be left and taken up again; it then goes on where it stopped."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._issued: dict[int, Trial] = {}
        """Trials that the strategy has not heard of yet."""
        self._seen: dict[int, Sighting] = {}
        self._next = 0
        self._noted = 0
        self._judged = 0
        self._exhausted = False
        self.survivors = 0

    @property
    def tried(self) -> int:
        """Candidates with a sighting."""
        return self._judged

    async def run(self, ground: Ground, bounds: Bounds, refused: Callable[[Candidate], bool]) -> Candidate | None:
        """The next candidate worth proposing that is not *refused*, or None if the bounds or the candidates end first."""
        deadline = time.monotonic() + bounds.seconds
        jobs_in, jobs_out = anyio.create_memory_object_stream[Trial](2 * LAG)
        seen_in, seen_out = anyio.create_memory_object_stream[tuple[int, Sighting]](2 * LAG)
        found: Candidate | None = None
        with anyio.move_on_at(anyio.current_time() + bounds.seconds), seen_out, jobs_in, jobs_out, seen_in:
            async with anyio.create_task_group() as group:
                for _ in range(bounds.workers):
                    group.start_soon(_serve, ground, jobs_out.clone(), seen_in.clone())
                for trial in self._issued.values():
                    if trial.index not in self._seen:
                        jobs_in.send_nowait(trial)
                while found is None and time.monotonic() < deadline:
                    self._issue(jobs_in, bounds)
                    if self._idle or not self._strategy.patient:
                        break
                    index, sighting = await seen_out.receive()
                    self._seen[index] = sighting
                    found = self._judge(refused)
                group.cancel_scope.cancel()
        return found or self._second_best(refused)

    @property
    def _idle(self) -> bool:
        return all(index in self._seen for index in self._issued) and self._judged == self._next

    def _issue(self, jobs: MemoryObjectSendStream[Trial], bounds: Bounds) -> None:
        """Hand out trials, each chosen in the knowledge of everything but the last LAG ones."""
        while self._next < bounds.attempts:
            due = self._next - LAG if not self._exhausted else self._next - 1
            while self._noted <= due and self._noted in self._seen:
                self._strategy.note(self._issued.pop(self._noted), self._seen.pop(self._noted))
                self._noted += 1
            if self._noted <= due:
                return
            trial = self._strategy.trial()
            self._exhausted = trial is None
            if trial is None:
                return
            self._issued[self._next] = trial
            self._next += 1
            jobs.send_nowait(trial)

    def _judge(self, refused: Callable[[Candidate], bool]) -> Candidate | None:
        """The first survivor among the trials whose predecessors are all seen."""
        while self._judged in self._seen:
            trial, sighting = self._issued[self._judged], self._seen[self._judged]
            self._judged += 1
            if trial.candidate is not None and self._strategy.full(sighting):
                self.survivors += 1
                if not refused(trial.candidate):
                    return trial.candidate
        return None

    def _second_best(self, refused: Callable[[Candidate], bool]) -> Candidate | None:
        """The candidate that makes most progress, if none does it all."""
        for index in sorted(self._seen):
            if index == self._noted:
                self._strategy.note(self._issued.pop(index), self._seen.pop(index))
                self._noted += 1
        return next((c for _, _, c in sorted(self._strategy.partials, key=lambda p: p[:2]) if not refused(c)), None)


async def _serve(
    ground: Ground,
    jobs: MemoryObjectReceiveStream[Trial],
    seen: MemoryObjectSendStream[tuple[int, Sighting]],
) -> None:
    """Screen what comes until nothing more does."""
    async with worker(ground) as mine:
        async for trial in jobs:
            await seen.send((trial.index, await mine.screen(trial)))
