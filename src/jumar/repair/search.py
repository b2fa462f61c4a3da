"""Runs a search strategy on a few workers. The result does not depend on which worker was faster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from jumar.repair.candidates import Candidate
from jumar.repair.schedule import TrialSchedule
from jumar.repair.screening_client import ScreeningTree, ScreeningTrial, Sighting, open_worker

LAG = 24
"""A trial is chosen without knowing what was seen of the last so many: they may still be running."""

PACE_SECONDS = 0.02
"""The lag of a trial grows by one for each of these that it may take: nobody waits for a slow one."""


STARTING_SECONDS = 0.2
"""Until the screening processes are on their way."""


class Screener(Protocol):
    """Screens one trial at a time."""

    async def screen(self, trial: ScreeningTrial) -> Sighting:
        """Return the outcome of *trial*."""
        ...


Workers = Callable[[ScreeningTree, Callable[[int], None]], AbstractAsyncContextManager[Screener]]
"""Makes a screener for a ground; the function is to be called as in `jumar.repair.screening_client.open_worker`."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one search."""

    seconds: float
    attempts: int
    """Candidates, counted from the first of this tree."""
    workers: int = 2


class MutationSearch:
    """Search on one tree. It can be suspended, and resumed where it stopped."""

    def __init__(self, strategy: TrialSchedule, workers: Workers = open_worker) -> None:
        """Search by *strategy*; *workers* gives the processes that screen: one for each of `Bounds.workers`."""
        self._strategy, self._workers = strategy, workers
        self.heard: Callable[[int], None] = lambda _tried: None
        """Is told how many trials are judged, each time there is one more."""
        self._trials: dict[int, ScreeningTrial] = {}
        """Trials that the strategy has not heard of yet."""
        self._seen: dict[int, Sighting] = {}
        self._pending: list[tuple[int, int]] = []
        """Of trials that are not judged: before which trial the strategy hears of it, its index."""
        self._judged: list[tuple[int, int]] = []
        """The same, of trials that are judged and that the strategy has not heard of."""
        self._turned: set[int] = set()
        """Trials under which all red tests passed; the green ones may not have been run."""
        self._next = 0
        self._exhausted = False
        self.finished = False
        """True if every candidate was tried; False if the time ended."""
        self.tried = 0
        """Trials that are judged, retries included."""
        self.survivors = 0
        """Of these, the ones that turned all red tests green and lost none."""

    async def run(
        self, ground: ScreeningTree, bounds: Bounds, refused: Callable[[Candidate], bool]
    ) -> Candidate | None:
        """Return the next candidate worth proposing that is not *refused*.

        None if the bounds or the candidates end first.
        """
        ends = anyio.current_time() + bounds.seconds
        jobs_in, jobs_out = anyio.create_memory_object_stream[ScreeningTrial](inf)
        seen_in, seen_out = anyio.create_memory_object_stream[tuple[int, Sighting]](inf)
        found: Candidate | None = None
        with seen_out:
            with anyio.move_on_at(ends), jobs_in, jobs_out, seen_in:
                async with anyio.create_task_group() as group:
                    for _ in range(bounds.workers):
                        group.start_soon(_serve, self._workers(ground, self._turned.add), jobs_out, seen_in)
                    for trial in self._trials.values():
                        if trial.index not in self._seen:
                            jobs_in.send_nowait(trial)
                    # Thinking of the first candidates of a large file takes seconds, and leaves nobody else a turn.
                    await anyio.sleep(min(STARTING_SECONDS, bounds.seconds / 10))
                    while found is None and anyio.current_time() < ends and self._can_continue(jobs_in, bounds):
                        found = self._judge(refused, everything=self._is_last(bounds))
                        self.finished = self._is_last(bounds) and not self._pending
                        if found is None and not self.finished and self._count_open():
                            index, sighting = await seen_out.receive()
                            self._seen[index] = sighting
                    group.cancel_scope.cancel()
            if found is None and not self.finished:
                found = self._find_late(seen_out, refused)
        return found or self._find_second_best(refused)

    def _can_continue(self, jobs: MemoryObjectSendStream[ScreeningTrial], bounds: Bounds) -> bool:
        """Issue the next trials, unless all were tried or more is not worth the time; return whether to continue."""
        if self.finished or not self._strategy.patient:
            return False
        self._issue_trials(jobs, bounds)
        return True

    def _is_last(self, bounds: Bounds) -> bool:
        """Return whether no more trials will be handed out."""
        return self._exhausted or self._next >= bounds.attempts

    def _issue_trials(self, jobs: MemoryObjectSendStream[ScreeningTrial], bounds: Bounds) -> None:
        """Issue trials, each chosen from the same sightings on every machine."""
        while self._next < bounds.attempts and self._tell_until(self._next):
            trial = self._strategy.find_trial(self._next)
            self._exhausted = trial is None
            if trial is None and not self._pending and not self._judged:
                return
            if trial is None:
                # Only what is still out can bring up something new, so its turn is now.
                if not self._judged:
                    return
                self._tell_next()
                continue
            self._trials[self._next] = trial
            heappush(self._pending, (self._next + LAG + int(trial.seconds / PACE_SECONDS), self._next))
            self._next += 1
            jobs.send_nowait(trial)

    def _count_open(self) -> int:
        """Return the number of trials that are issued and not seen yet; at 0 there is nothing to wait for."""
        return len(self._pending) - (len(self._seen) - len(self._judged))

    def _tell_until(self, index: int) -> bool:
        """Tell the strategy the results; return whether it knows all that it needs to choose trial *index*."""
        while self._judged and self._judged[0][0] <= index:
            self._tell_next()
        return not self._pending or self._pending[0][0] > index

    def _tell_next(self) -> None:
        _, index = heappop(self._judged)
        self._strategy.record(self._trials.pop(index), self._seen.pop(index))

    def _judge(self, refused: Callable[[Candidate], bool], *, everything: bool) -> Candidate | None:
        """Return the first survivor, in the order in which the strategy gets them."""
        soon = inf if everything else self._next + LAG
        while self._pending and self._pending[0][1] in self._seen and self._pending[0][0] <= soon:
            entry = heappop(self._pending)
            heappush(self._judged, entry)
            self.tried += 1
            self.heard(self.tried)
            candidate, sighting = self._trials[entry[1]].candidate, self._seen[entry[1]]
            if candidate is not None and self._strategy.is_full(sighting):
                self.survivors += 1
                if not refused(candidate):
                    return candidate
        return None

    def _find_late(
        self, seen: MemoryObjectReceiveStream[tuple[int, Sighting]], refused: Callable[[Candidate], bool]
    ) -> Candidate | None:
        """Return a survivor that the strategy does not know yet, or that waits for open trials: the time has ended.

        A candidate under which all red tests pass will do where the time ended while the green ones were running.
        """
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                index, sighting = seen.receive_nowait()
                self._seen[index] = sighting
        full = [index for index, sighting in self._seen.items() if self._strategy.is_full(sighting)]
        unrefuted = [index for index in self._turned if index in self._trials and index not in self._seen]
        for index in (*sorted(full), *sorted(unrefuted)):
            candidate = self._trials[index].candidate
            if candidate is not None and not refused(candidate):
                return candidate
        return None

    def _find_second_best(self, refused: Callable[[Candidate], bool]) -> Candidate | None:
        """Return the candidate with most progress, if none turns all tests green."""
        while self._judged:
            self._tell_next()
        partials = sorted(self._strategy.partials, key=lambda partial: partial[:2])
        return next((candidate for _, _, candidate in partials if not refused(candidate)), None)


async def _serve(
    one: AbstractAsyncContextManager[Screener],
    jobs: MemoryObjectReceiveStream[ScreeningTrial],
    seen: MemoryObjectSendStream[tuple[int, Sighting]],
) -> None:
    """Screen trials until there are no more."""
    async with one as mine:
        async for trial in jobs:
            sighting = await mine.screen(trial)
            seen.send_nowait((trial.index, sighting))  # no await: what was screened is not lost to the deadline
