"""Where a run stands, as one value. Only `jumar.core.state.reduce` builds it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jumar.core import events as ev
from jumar.core.budget import Spend
from jumar.core.ratchet import Attempt, Score
from jumar.core.verdict import Outcome


class Phase(StrEnum):
    """What a run is in the middle of."""

    NEW = "new"
    OPEN = "open"
    """Between two effects."""
    ASKED = "asked"
    """A request is on disk; its answer is not."""
    WRITTEN = "written"
    """A write awaits its verification."""
    TESTING = "testing"
    """Inside one verification's group of events."""
    JUDGED = "judged"
    """A verdict awaits the ratchet."""
    CLOSED = "closed"
    """`final` is written, `run_end` is due."""
    ENDED = "ended"


class IllegalEvent(Exception):  # noqa: N818  it is a fact about a journal, seldom an error of ours
    """An event arrived that the current phase does not allow; nothing changed."""


class Judged(msgspec.Struct, frozen=True):
    """The newest verification, folded."""

    tests: ev.Tests
    outcomes: Mapping[str, Outcome]
    green_ids: frozenset[str]

    @property
    def attempt(self) -> Attempt:
        """What the ratchet compares."""
        t = self.tests
        return Attempt(t.tree, Score(t.passed, t.errors, t.failed), self.green_ids)


class Cell(msgspec.Struct, frozen=True):
    """One cell of a linked list: adding a test's result copies no map, however many tests there are."""

    run: ev.TestRun
    rest: Cell | None


class RunState(msgspec.Struct, frozen=True):
    """Everything a run knows. Built only by `reduce`."""

    phase: Phase = Phase.NEW
    start: ev.RunStart | None = None
    tree: str = ""
    """The workspace's tree."""
    best: Attempt | None = None
    judged: Judged | None = None
    accepted: Mapping[str, Outcome] | None = None
    """Skips and xfails of the frozen run; None until there was one."""
    spend: Spend = Spend()
    baseline_runs: int = 0
    executions: int = 0
    replies: int = 0
    """How many calls were settled: where a script or recording goes on."""
    request: ev.ModelRequest | None = None
    reply: ev.Reply | None = None
    """The reply whose actions are being performed."""
    actions_done: int = 0
    postponed: str = ""
    """A tree that was written and, because the run had to stop, not verified; empty is none."""
    refused: frozenset[str] = frozenset()
    """Digests of all proposals that were verified or refused in this run."""
    localisation: ev.Localisation | None = None
    seen: Mapping[str, object] = {}
    """The newest observation of test results."""
    shown: Mapping[str, object] = {}
    """The observation of test results that belongs to the best tree."""
    told: str = ""
    """Why the newest proposal was not kept; empty when it was."""
    said: str | None = None
    """The model's own last word."""
    expired: str = ""
    """The model's word that its time ended before its candidates did; empty is none."""
    fault: str = ""
    """Broken infrastructure, in one sentence; empty is none."""
    hit: ev.Guardrail | None = None
    final: ev.Final | None = None
    end: ev.RunEnd | None = None
    last_ts: float = 0.0
    runs: Cell | None = None
    """The `test_run` events of the verification at hand, newest first."""

    @property
    def run(self) -> ev.RunStart:
        """The first event; a state that has none cannot be asked for it."""
        if self.start is None:
            raise IllegalEvent("the run has not started")
        return self.start

    @property
    def green(self) -> bool:
        """Whether the best tree passes every expected test."""
        return self.best is not None and self.best.score.passed == len(self.run.expected) > 0
