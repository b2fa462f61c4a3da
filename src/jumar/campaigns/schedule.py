"""Chooses which rollout of a campaign begins next, and which never will: no clock and no process here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from jumar.campaigns.messages import Report, RolloutBroken, RolloutEnded, RolloutRefused
from jumar.campaigns.plan import CampaignPlan, Rollout, list_rollouts
from jumar.campaigns.standing import Progress, Standing
from jumar.core.state.stop import StopReason
from jumar.runs.setup.result import Result

LOSSES = 3
"""Times that the process of one rollout may die before the rollout ends as a fault of the machine."""

OF_LEDGER = "of the ledger"
"""In the reason of a run that ended because the campaign's money, tokens or time was used up."""


class OtherEnd(StrEnum):
    """End of a rollout that has no result of its own."""

    REFUSED = "refused"
    """It cannot be run as asked."""
    INFRA = "infra"
    """The machine failed before its end could be written down."""
    PLATEAU = "plateau"
    """It was not begun: the rollouts before it brought its task no further."""
    INTERRUPTED = "interrupted"
    """The campaign ended first, and it can go on."""
    NOT_BEGUN = "not_begun"
    """The campaign ended first."""


class RolloutEnd(msgspec.Struct, frozen=True):
    """End of a rollout."""

    rollout: str
    task: str
    stop: str
    """The run's reason to stop, or an `OtherEnd`."""
    result: Result | None = None
    why: str = ""
    cached: int = 0
    """Verdicts that needed no test run."""


def is_out_of_budget(result: Result | None) -> bool:
    """Return whether a run ended because a cap of the whole campaign allowed no further call."""
    return result is not None and result.stop is StopReason.BUDGET and OF_LEDGER in result.why


class Schedule:
    """Rollouts of *plan* that wait, are running, and have ended; *known* is the standing in their journals."""

    def __init__(self, plan: CampaignPlan, known: Iterable[tuple[Rollout, Standing]] = ()) -> None:
        self._plan = plan
        self._tasks = {r.name: r.task.name for r in list_rollouts(plan)}
        self._waiting: deque[str] = deque()
        self._standings = {rollout.name: standing for rollout, standing in known}
        self._faults = {name: standing.faults for name, standing in self._standings.items()}
        self._losses: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self.active: set[str] = set()
        self.paused: dict[str, RolloutEnd] = {}
        """Rollouts that ended for a fault and wait for it to pass, with that end."""
        self.ended: dict[str, RolloutEnd] = {}
        self.spent = any(is_out_of_budget(standing.result) for standing in self._standings.values())
        """True if the campaign's ledger has nothing left: nothing more is begun."""
        self._begun = {name for name, standing in self._standings.items() if standing.progress is not Progress.NEW}
        for name in sorted(self._tasks, key=lambda name: name not in self._begun):  # what was begun goes on first
            standing = self._standings.get(name, Standing(Progress.NEW))
            if standing.result is not None and self._is_over(name, standing):
                self._end(name, str(standing.result.stop), standing.result, standing.result.why, standing.cached)
            else:
                self._waiting.append(name)

    def _is_over(self, name: str, standing: Standing) -> bool:
        limited = standing.limit_seconds is not None
        retried = standing.progress is Progress.FAULT and not limited and self._faults[name] > self._plan.retries
        return standing.progress is Progress.ENDED or retried

    def take(self) -> str | None:
        """Return the rollout to begin next, which counts as running from now on; None: there is none now."""
        while self._waiting and not self.spent:
            name = self._waiting.popleft()
            if name not in self._begun and self._is_plateau(self._tasks[name]):
                self._end(name, OtherEnd.PLATEAU)
                continue
            self.active.add(name)
            self._begun.add(name)
            return name
        return None

    def _is_plateau(self, task: str) -> bool:
        """Return whether the last rollouts of *task* were no better than those before."""
        if self._plan.patience is None:
            return False
        ended = [e for e in self.ended.values() if e.task == task and e.result is not None]
        if len(ended) <= self._plan.patience:
            return False
        scores = [e.result.passed or 0 for e in ended if e.result is not None]
        return max(scores[-self._plan.patience :]) <= max(scores[: -self._plan.patience])

    def handle(self, report: Report) -> bool:
        """Handle *report*; return True if its rollout is paused for a fault that may pass: `wake` resumes it."""
        name = report.rollout
        self.active.discard(name)
        match report:
            case RolloutEnded(result=result, cached=cached, limit_seconds=None) if result.stop is StopReason.INFRA:
                return self._retry(RolloutEnd(name, self._tasks[name], OtherEnd.INFRA, result, result.why, cached))
            case RolloutEnded(result=result, cached=cached) if result.stop is StopReason.INFRA:
                return self._wait(RolloutEnd(name, self._tasks[name], OtherEnd.INTERRUPTED, result, result.why, cached))
            case RolloutEnded(result=result, cached=cached):
                self.spent = self.spent or is_out_of_budget(result)
                self._end(name, str(result.stop), result, result.why, cached)
            case RolloutRefused(why=why):
                self._end(name, OtherEnd.REFUSED, why=why)
            case RolloutBroken(why=why):
                return self._retry(RolloutEnd(name, self._tasks[name], OtherEnd.INFRA, None, why))
            case _:
                self._waiting.appendleft(name)
        return False

    def _retry(self, end: RolloutEnd) -> bool:
        """Pause the rollout that a fault ended; return False after too many faults: the rollout has ended."""
        name = end.rollout
        self._faults[name] = self._faults.get(name, 0) + 1
        again = self._faults[name] <= self._plan.retries
        (self.paused if again else self.ended)[name] = end
        return again

    def _wait(self, end: RolloutEnd) -> bool:
        """Pause the rollout until the provider's limit has passed, any number of times: the fault is not its own."""
        self._limits[end.rollout] = self._limits.get(end.rollout, 0) + 1
        self.paused[end.rollout] = end
        return True

    def wake(self, name: str) -> None:
        """Let the paused rollout *name* continue, after those that wait already."""
        if self.paused.pop(name, None) is not None:
            self._waiting.append(name)

    def count_faults(self, name: str) -> int:
        """Return how often the rollout *name* ended for a fault."""
        return self._faults.get(name, 0)

    def count_limits(self, name: str) -> int:
        """Return how often the rollout *name* was stopped by a limit of the provider in this session."""
        return self._limits.get(name, 0)

    def lose(self, name: str) -> None:
        """Record that the process which worked on *name* died."""
        self.active.discard(name)
        self._losses[name] = self._losses.get(name, 0) + 1
        if self._losses[name] >= LOSSES:
            self._end(
                name, OtherEnd.INFRA, why=f"its process died {LOSSES} times; the campaign's output/ has its last words"
            )
        else:
            self._waiting.appendleft(name)

    def close(self) -> None:
        """End the rollouts that wait: they were never begun, or the campaign ended before a fault had passed."""
        self.ended |= self.paused
        self.paused.clear()
        for name in self._waiting:
            standing = self._standings.get(name)
            stop = OtherEnd.INTERRUPTED if name in self._begun else OtherEnd.NOT_BEGUN
            self._end(name, stop, standing.result if standing else None)
        self._waiting.clear()

    def _end(self, name: str, stop: str, result: Result | None = None, why: str = "", cached: int = 0) -> None:
        self.ended[name] = RolloutEnd(name, self._tasks[name], stop, result, why, cached)

    @property
    def is_over(self) -> bool:
        """Return whether nothing is running, and nothing will be."""
        return not self.active and (self.spent or not (self._waiting or self.paused))
