"""All events of a run: frozen, past tense, one tagged union. Field names are a promise to other tools."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jumar.core.state.budget import Budget
from jumar.core.state.event_base import EventBase
from jumar.core.state.mode_events import Codemod as Codemod  # noqa: PLC0414  an event like the others here
from jumar.core.state.mode_events import Mode as Mode  # noqa: PLC0414  an event like the others here
from jumar.core.state.mode_events import PlainRun as PlainRun  # noqa: PLC0414  an event like the others here
from jumar.core.state.mode_events import Refusal as Refusal  # noqa: PLC0414  an event like the others here
from jumar.core.state.ratchet import Score
from jumar.core.state.reply import Reply
from jumar.core.state.settings import Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Blame, Outcome, Void


class RunStart(EventBase, frozen=True, kw_only=True, tag="run_start"):
    """First event of a journal: task, agent, rules and expected ids of the run."""

    run: str
    task: str
    agent: str
    model: str
    test_policy: TestPolicy
    gate: Gate
    budget: Budget
    expected: tuple[str, ...]
    tree: str
    settings: Settings = Settings()
    excused: Mapping[str, int] = {}
    """The same as in `Tests`, by runs of the untouched tree before the start; empty unless that is each expected id."""


class ModelRequest(EventBase, frozen=True, kw_only=True, tag="model_request"):
    """A model request, on disk before the call is made: an open one counts as spent after a crash."""

    tier: str
    model: str
    stage: str
    reserved_usd: float
    reserved_tokens: int = 0
    messages: int = 0
    """Number of messages in the prompt."""


class ModelCall(EventBase, frozen=True, kw_only=True, tag="model_call"):
    """Result of a request, which it settles: every billed call, failed and unparsable ones too."""

    reply: Reply
    tier: str
    model: str
    stage: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    ms: int = 0
    error: str = ""
    """Reason why there is no usable reply (`jumar.core.run.retry.ERRORS`); empty: there is one."""
    detail: str = ""
    """Error text of the provider, one line, without any key."""
    retry_after: float | None = None
    """Seconds the provider asked to wait."""
    assumed: bool = False
    """True if no usage was reported and the reserved amount counts as spent."""


class ActionTaken(EventBase, frozen=True, kw_only=True, tag="action"):
    """An action of a turn, refused or not. File bodies are named by hash, not repeated."""

    name: str
    args: dict[str, object]
    admitted: bool
    reason: str = ""
    last: bool = False
    """True if it was the last action of its turn."""


class Write(EventBase, frozen=True, kw_only=True, tag="write"):
    """A change of a file. Hashes are sha256 of the bytes; empty means absent."""

    path: str
    before: str
    after: str
    tree: str
    """The workspace's tree after this write."""
    claimed: tuple[str, ...] = ()
    """The tests it shall turn green."""
    test: bool = False
    """True if the write contains tests of the agent's own."""


class EditClaim(EventBase, frozen=True, kw_only=True, tag="edit_claim"):
    """Claim of the model that names the red test an edit advances."""

    test_id: str
    edit_target: str


class TestRun(EventBase, frozen=True, kw_only=True, tag="test_run"):
    """Result of one test in a verification."""

    __test__ = False

    test_id: str
    test_id_source: str = "native"
    status: str
    outcome: Outcome
    command: str = ""
    duration_ms: int = 0
    blame: Blame | None = None
    """Cause of a failure, where the runner can tell."""
    absent: str = ""
    """The module or file that the test misses; see `jumar.core.state.verdict.TestResult`."""
    path: str = ""
    """The test's file, where the id does not begin with it."""
    grade: str = ""
    """Of the evidence that this test passes, where a green was accepted."""
    weaker: str = ""
    """Reason that the grade is not `A`, as far as it is known."""
    better: str = ""
    """The better grade that it could have had with other code; empty: none."""

    @property
    def file(self) -> str:
        """The test's file."""
        return self.path or self.test_id.partition("::")[0]


CHECK = "gate.verify"
"""Stands for a test: the command that must be green before refactor mode is left. It is no expected id."""


class Tests(EventBase, frozen=True, kw_only=True, tag="tests"):
    """Result of one verification."""

    __test__ = False

    trigger: Trigger
    ok: bool
    passed: int
    failed: int
    errors: int
    total: int
    void: Void | None = None
    grade: str = "D"
    sandbox: str = "S0"
    executions: int = 1
    output: str = ""
    """Path of the full output, relative to the run's directory."""
    cached: bool = False
    duration_ms: int = 0
    tree: str = ""
    grades: Mapping[str, int] = {}
    """Grade -> how many of the expected ids have it; empty where no green was accepted."""
    reachable: str = ""
    """The best grade that one of its tests could have had, and has not; empty: `grade`."""
    asked: int | None = None
    """Requests that the code under test made of the tests in two processes; None: they ran in one."""
    flaky: tuple[str, ...] = ()
    """Expected ids whose outcome changed while the tree did not: neither red nor credited."""
    excused: Mapping[str, int] = {}
    """Outcome -> number of the tests that have it and count in `passed`: the untouched tree skips them, too."""
    selected: int = 0
    """Tests that ran, where a part of them showed that the tree cannot stay; the others have those of the best tree."""
    warnings: tuple[str, ...] = ()
    """Warnings of code that looks written for the tests, with file and line. They change no verdict."""
    starts: Mapping[str, int] = {}
    """`warm` -> how many processes were forked from one with everything imported; reason -> how many were not."""


class Observation(EventBase, frozen=True, kw_only=True, tag="observation"):
    """Result shown to the model; `driver.run_tests` for test results."""

    name: str
    call_id: str = ""
    content: dict[str, object]


class Localisation(EventBase, frozen=True, kw_only=True, tag="localisation"):
    """Lines that the red tests run and the green ones do not: path, line, suspiciousness, most suspicious first."""

    tree: str
    suspects: tuple[tuple[str, int, float], ...]
    problem: str = ""
    """Reason why the localisation is incomplete, in a sentence; empty: it is complete."""
    duration_ms: int = 0


class BestFound(EventBase, frozen=True, kw_only=True, tag="best"):
    """A new best tree: the ratchet moved up (or a tie kept the newer tree)."""

    tree: str
    score: Score


class Revert(EventBase, frozen=True, kw_only=True, tag="revert"):
    """A revert of the workspace to an earlier tree."""

    to: str
    paths: tuple[str, ...]
    why: str
    left: tuple[int, ...] = ()
    """Of a gate's revert: which edits of the turn lie in `to`, by their places."""
    found: bool = False
    """True if only changes made around the tools were reverted: the known tree stays."""


class Repair(EventBase, frozen=True, kw_only=True, tag="repair"):
    """A claimed edit that did not turn its tests green."""

    test_ids: tuple[str, ...]
    edits: tuple[str, ...]
    failures: int


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan."""

    title: str
    test_id: str = ""
    test_file_path: str = ""


class Plan(EventBase, frozen=True, kw_only=True, tag="plan"):
    """Plan that the model submitted."""

    steps: tuple[PlanStep, ...]


class Guardrail(EventBase, frozen=True, kw_only=True, tag="guardrail"):
    """A violation of a hard rule, which ends the run."""

    rule: str
    what: str


class Final(EventBase, frozen=True, kw_only=True, tag="final", omit_defaults=True):
    """Final result, written on every exit path. `test_result` is of the tree that is shipped; absent under `never`."""

    message: str
    stop: StopReason
    test_result: dict[str, object] | None = None


class RunEnd(EventBase, frozen=True, kw_only=True, tag="run_end"):
    """The last line of a segment."""

    stop: StopReason
    best: Score | None
    """Score of the best tree; None where no test has judged the run."""
    usd: float
    tokens: int
    test_runs: int
    executions: int
    why: str = ""
    """One sentence where the reason alone does not tell: which cap, which fault."""


class Resume(EventBase, frozen=True, kw_only=True, tag="resume"):
    """A new segment began; what an open request had reserved counts as spent."""

    from_seq: int


class Limit(EventBase, frozen=True, kw_only=True, tag="limit"):
    """A cap was changed."""

    name: str
    old: float | None
    new: float | None
    by: str


Event = (
    RunStart | ModelRequest | ModelCall | ActionTaken | Write | EditClaim | TestRun | PlainRun | Tests | Observation
    | Localisation | BestFound | Revert | Repair | Plan | Mode | Codemod | Refusal | Guardrail | Final | RunEnd | Resume
    | Limit
)  # fmt: skip


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event as it lies in the journal: the shell supplies the number and the time."""

    seq: int
    ts: float
    event: Event
