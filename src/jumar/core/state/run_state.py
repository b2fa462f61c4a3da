"""State of a run, as one value. Only `jumar.core.run.reducers.transitions.reduce` builds it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.budget import Spend
from jumar.core.state.claims import GateState
from jumar.core.state.ratchet import Attempt, Score
from jumar.core.state.removals import Removals
from jumar.core.state.reply import Reply
from jumar.core.state.stop import Escalation
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import EXCUSED, Outcome

HOST = "host"
"""The agent whose every action comes from outside, at its own pace: a client of ours, or a person."""

EXTERNAL = "external"
"""Any command-line agent: it works in the folder itself, turn by turn."""

HOSTED = (EXTERNAL, HOST)
"""Agents whose actions come from outside; they may change the workspace by other ways than the tools."""


class Phase(StrEnum):
    """Phase of a run."""

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
    """Result of the newest verification. What is read off its results is read when it is asked for."""

    tests: ev.Tests
    runs: Mapping[str, ev.TestRun] = {}
    """Test id -> its result, in the order of the verification."""
    checked: bool = True
    """True if the command that guards refactor mode was green, where one was run."""
    commanded: bool = False
    """True if the command that guards refactor mode was run."""
    plain: ev.PlainRun | None = None
    """The run under configuration that was edited; None: none was."""

    @property
    def green_ids(self) -> frozenset[str]:
        """Return the tests that pass, also under configuration that was edited."""
        differs = self.plain.differs if self.plain is not None else ()
        return frozenset([i for i, run in self.runs.items() if run.status == "pass"]).difference(differs)

    @property
    def grades(self) -> Mapping[str, str]:
        """Return the grade of the evidence that a test passes, by test id; one that is excused has none."""
        green = self.green_ids
        ungraded = EXCUSED if self.tests.excused else ()  # journals of before that have a grade for each
        known = {i: run for i, run in self.runs.items() if i in green and run.outcome not in ungraded}
        return {i: run.grade or self.tests.grade for i, run in known.items()}

    @property
    def weaker(self) -> Mapping[str, str]:
        """Return why a grade is not `A`, by test id."""
        return {i: run.weaker for i, run in self.runs.items() if run.weaker}

    @property
    def better(self) -> Mapping[str, str]:
        """Return the better grade that a test could have had with other code, by test id."""
        return {i: run.better for i, run in self.runs.items() if run.better}

    @property
    def attempt(self) -> Attempt:
        """Return the attempt that the ratchet compares."""
        t = self.tests
        return Attempt(t.tree, Score(t.passed, t.errors, t.failed), self.green_ids)


class ResultCell(msgspec.Struct, frozen=True):
    """One cell of a linked list: adding a test's result copies no map, however many tests there are."""

    run: ev.TestRun
    rest: ResultCell | None


class ConversationCell(msgspec.Struct, frozen=True):
    """One cell of the conversation so far, newest first: requests, replies, actions, observations, reverts."""

    event: ev.Event
    rest: ConversationCell | None


class RunState(msgspec.Struct, frozen=True):
    """Complete state of a run. Built only by `reduce`."""

    phase: Phase = Phase.NEW
    start: ev.RunStart | None = None
    tree: str = ""
    """The workspace's tree."""
    best: Attempt | None = None
    evidence: ev.Tests | None = None
    """The verification that the best tree has."""
    judged: Judged | None = None
    not_general: int = 0
    """Verdicts in which every visible test passed and held-out ones did not."""
    wavering: tuple[str, ...] = ()
    """Expected ids that came out differently on one and the same tree, in any verdict of the run."""
    accepted: Mapping[str, Outcome] | None = None
    """Skips and xfails of the frozen run; None until there was one."""
    spend: Spend = Spend()
    baseline_runs: int = 0
    executions: int = 0
    seq: int = -1
    """Number of the newest event."""
    replies: int = 0
    """Number of settled calls: the position at which a script or recording continues."""
    request: ev.ModelRequest | None = None
    request_seq: int = -1
    """Number of the newest request: its row in the ledger."""
    tries: int = 0
    """Number of times in a row that the newest request failed for a reason that may pass."""
    pause: float = 0.0
    """Seconds to wait before the next call."""
    measured: tuple[int, int] = (0, 0)
    """Messages and tokens of the newest prompt that a provider counted."""
    reply: Reply | None = None
    """The reply whose actions are being performed."""
    flaw: str = ""
    """Reason why that reply holds nothing to perform; empty: it may."""
    stage: str = ""
    """The stage that reply belongs to; `draft` once a draft was taken up again."""
    actions_done: int = 0
    draft: Reply | None = None
    """A first draft that was not written yet: it is being reviewed."""
    violations: str = ""
    """Violations that the review found in the draft."""
    asked_tests: tuple[str, ...] | None = None
    """The ids whose results the model asked for (empty: all); None: it did not."""
    recent: tuple[str, ...] = ()
    """Effects of the last six actions, by name: see `jumar.core.run.stall`."""
    conversation: ConversationCell | None = None
    """The conversation, newest first."""
    born_green: bool = False
    """True if no expected test was red when the run began."""
    written: bool = False
    """True if a file was written, or written again, since the newest verification."""
    edited: bool = False
    """True if a file was written since the newest turn of an external agent began."""
    postponed: str = ""
    """A tree that was written and, because the run had to stop, not verified; empty is none."""
    removals: Removals = Removals()
    """Files of the best tree that the workspace's tree deletes, where there is no gate."""
    postponed_removals: Removals = Removals()
    """The same of `postponed`."""
    refused: frozenset[str] = frozenset()
    """Digests of all proposals that were verified or refused in this run."""
    localisation: ev.Localisation | None = None
    tried: int = 0
    """Candidates that were screened in this run."""
    run_seconds: float = 0.0
    """Duration of one test run that ends green, as measured on the best tree."""
    latest_results: Mapping[str, object] = {}
    """The newest observation of test results."""
    best_results: Mapping[str, object] = {}
    """The observation of test results that belongs to the best tree."""
    last_rejection: str = ""
    """Reason why the newest proposal was not kept; empty when it was."""
    final_message: str | None = None
    """The model's own last word."""
    escalated: Escalation | None = None
    """The test that the agent gave up on because it contradicts something."""
    expired: str = ""
    """The model's word that its time ended before its candidates did; empty is none."""
    fault: str = ""
    """Broken infrastructure, in one sentence; empty is none."""
    hit: ev.Guardrail | None = None
    final: ev.Final | None = None
    end: ev.RunEnd | None = None
    last_ts: float = 0.0
    gate_state: GateState = GateState()
    """State of the gate."""
    asking: bool = False
    """True if a host's agent waits for the answer of its model."""
    plain: ev.PlainRun | None = None
    """The plain run of the verification at hand."""
    runs: ResultCell | None = None
    """The `test_run` events of the verification at hand, newest first."""

    @property
    def run(self) -> ev.RunStart:
        """The first event; a state that has none cannot be asked for it."""
        if self.start is None:
            raise IllegalEvent("the run has not started")
        return self.start

    @property
    def history(self) -> tuple[ev.Event, ...]:
        """The conversation, oldest first."""
        return self.list_since(None) or ()

    def list_since(self, known: ConversationCell | None) -> tuple[ev.Event, ...] | None:
        """Return the events added to the conversation after the cell *known*, oldest first; None: unknown cell."""
        events: list[ev.Event] = []
        cell = self.conversation
        while cell is not known:
            if cell is None:
                return None
            events.append(cell.event)
            cell = cell.rest
        return tuple(reversed(events))

    @property
    def expected(self) -> tuple[str, ...]:
        """The ids that judge now: those the run began with, and those of tests it wrote and saw red."""
        return (*self.run.expected, *self.gate_state.joined)

    @property
    def coalesces(self) -> bool:
        """Return whether the edits of a turn are judged together, at its end.

        Under a gate, and where a host makes them.
        """
        gated = self.gate_state.mode is not Gate.OFF or self.run.agent in HOSTED
        return gated and self.run.test_policy is TestPolicy.ON_WRITE

    @property
    def unjudged(self) -> bool:
        """Return whether the state of the workspace has no verdict yet.

        Its tree may have had one when other edits made it.
        """
        if self.judged is None or not self.coalesces:
            return self.judged is None or self.judged.tests.tree != self.tree
        return self.written

    @property
    def green(self) -> bool:
        """Return whether the best tree passes every expected test."""
        return self.best is not None and self.best.score.passed == len(self.expected) > 0
