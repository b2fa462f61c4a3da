"""Simulates a campaign of many rollouts, event by event: they wait for a provider, for cores, for the services.

A rollout asks its model a few times, is judged, and is collected. Queues are served in the order of arrival. One event
is the end of one wait, so a rollout of five calls takes eight. What is not simulated is said in `docs/scale.md`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

SAMPLES = 1 << 16
"""Numbers drawn from a distribution before the simulation; it goes through them in turn."""


class Provider(NamedTuple):
    """Limits and times of a model's provider."""

    name: str
    calls_per_second: float
    """The lowest of its limits, in calls of the size that is assumed."""
    seconds: Sequence[float]
    """Samples of the time that one answer takes."""


class Cluster(NamedTuple):
    """Machines and the rates of what they share."""

    nodes: int
    cores: int
    slots: int
    """Rollouts at once on one node."""
    ledger_calls: int
    """Calls of the ledger for a rollout, beside two for each call of its model."""
    ledger_rate: float
    """Calls per second that one actor answers, as is the next one."""
    verdict_rate: float
    collect_rate: float
    """Rollouts per second that the campaign's process collects."""


class Work(NamedTuple):
    """Rollouts to be done."""

    rollouts: int
    calls: int
    core_seconds: Sequence[float]
    """Samples of the time on a core of one rollout."""


class Outcome(NamedTuple):
    """Time that a campaign took, and how busy each part was."""

    seconds: float
    busy: Mapping[str, float]
    """Part -> its share of the time at work; the highest is the bottleneck."""


class Server:
    """One queue that serves *rate* requests a second, one after another."""

    def __init__(self, rate: float) -> None:
        self._seconds, self._free = 1 / rate, 0.0
        self.busy = 0.0

    def serve(self, now: float, count: int = 1) -> float:
        """Return when *count* requests that come *now* are done. Who comes earlier must ask earlier."""
        begin = max(now, self._free)
        self._free = begin + count * self._seconds
        self.busy += count * self._seconds
        return self._free


class Simulation:
    """A campaign of *work* on *cluster* with *provider*."""

    def __init__(self, work: Work, cluster: Cluster, provider: Provider, seed: int = 1) -> None:
        chance = random.Random(seed)  # noqa: S311  no secret
        self._work, self._cluster, self._provider = work, cluster, provider
        self._answers = chance.choices(provider.seconds, k=SAMPLES)
        self._tests = chance.choices(work.core_seconds, k=SAMPLES)
        self._limit, self._ledger = Server(provider.calls_per_second), Server(cluster.ledger_rate)
        self._verdicts, self._driver = Server(cluster.verdict_rate), Server(cluster.collect_rate)
        self._cores = [[0.0] * cluster.cores for _ in range(cluster.nodes)]
        self._core_seconds = self._slot_seconds = 0.0
        self._drawn = 0

    def run(self) -> Outcome:
        """Return when all rollouts have ended."""
        work, slots = self._work, self._cluster.nodes * self._cluster.slots
        # An event: when it is, the calls still to be made (-1: it was judged, -2: collected), the node, its beginning.
        begun = min(slots, work.rollouts)
        events = [(0.0, work.calls, slot % self._cluster.nodes, 0.0) for slot in range(begun)]
        heapify(events)
        end = 0.0
        while events:
            now, left, node, since = events[0]
            if left > -2:  # noqa: PLR2004  see above
                heapreplace(events, (self._step(now, left, node), left - 1, node, since))
                continue
            end = max(end, now)
            self._slot_seconds += now - since
            if begun < work.rollouts:
                begun += 1
                heapreplace(events, (now, work.calls, node, now))
            else:
                heappop(events)
        return Outcome(end, self._share(end, slots))

    def _step(self, now: float, left: int, node: int) -> float:
        """Return when what a rollout does next is done: a call, its tests, or its collection.

        Both calls of the ledger, before and after one of the model, are served with the first; so are the store's.
        """
        if left < 0:
            return self._driver.serve(now)
        self._drawn = (self._drawn + 1) % SAMPLES
        if left:
            first = self._cluster.ledger_calls if left == self._work.calls else 0
            return self._limit.serve(self._ledger.serve(now, 2 + first)) + self._answers[self._drawn]
        seconds, cores = self._tests[self._drawn], self._cores[node]
        done = max(self._verdicts.serve(now, 2), cores[0]) + seconds
        heapreplace(cores, done)
        self._core_seconds += seconds
        return done

    def _share(self, end: float, slots: int) -> Mapping[str, float]:
        cores = self._cluster.nodes * self._cluster.cores
        return {
            "provider": self._limit.busy / end,
            "cores": self._core_seconds / (cores * end),
            "ledger": self._ledger.busy / end,
            "verdicts": self._verdicts.busy / end,
            "driver": self._driver.busy / end,
            "slots": self._slot_seconds / (slots * end),
        }
