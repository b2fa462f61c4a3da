"""Extension points, one Protocol each. Implement one in one file; it is found by its module's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from jumar.core.gate.admission import Action
from jumar.core.run.strategy import Message, Request, Tool
from jumar.core.state.budget import Cost
from jumar.core.state.events import Localisation
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Broken, Ended, Outcome, Report, Verdict
from jumar.sandbox.request import Reach, Wrapped


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One process to start: its command, and the files it is given. Only `verify/` starts it."""

    argv: tuple[str, ...]
    config: Mapping[str, object] = {}
    """Handed to the child as JSON on its standard input, which then ends; *env* is added to its environment."""
    env: Mapping[str, str] = {}
    builds: tuple[str, ...] = ()
    """Packages of the toolchain's own that it needs built (`Surroundings.prepare`)."""


class Sandbox(Protocol):
    """Confines processes, keeping them from the rest of the machine. It starts none itself."""

    @property
    def tier(self) -> str:
        """`S3` to `S0`: the result of the probes on this machine, whatever the tool is called."""
        ...

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Return *argv* confined: in *room*, with its home and temporary files in *private*, and all else unchanged."""
        ...


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """Test ids of a suite, found without judging anything."""

    ids: tuple[str, ...]
    broken: Mapping[str, Broken] = {}  # path of each test file that could not be collected -> why
    passed_over: Mapping[str, str] = {}  # path of each one that skips all of its tests while it is collected -> why
    anomaly: str = ""  # why the collection is no evidence at all (no pytest in that interpreter, a usage error)


Record = list[object]
"""One authenticated record of the channel: a kind, then its fields."""


class Site(msgspec.Struct, frozen=True):
    """The place of a test in its file, read from the syntax tree."""

    id: str  # native, `path::name`, without parameters
    start: int  # its first line, counted from 1, decorators and attributes included
    end: int  # its last one


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Needs of a runner beside the tree: no part of any tree, and the same for every verification of a run."""

    env: Mapping[str, str] = {}
    """Added to the scrubbed environment: where toolchains and their caches lie."""
    links: Mapping[str, Path] = {}
    """Path in the room, absent from the tree -> target of a symbolic link there, where relative also in the room."""
    readable: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    barred: tuple[Path, ...] = ()
    """Paths that must be seen at their own place, as toolchains; the task's own; never shown (no runner says these)."""
    missing: str = ""
    """Reason that this runner cannot work here, and what to do, in one sentence; empty: it can."""
    probe: tuple[str, ...] = ()
    """A quick command that succeeds where a sandbox shows the toolchain; empty: there is none."""
    prepare: tuple[str, ...] = ()
    cache: Path | None = None
    """A command of the toolchain's own, if it has one, that builds packages into a cache which others only read."""


class Runner(Protocol):
    """Turns ids into an invocation and records into results. It starts no process and reads no file a child wrote."""

    name: str
    grade: str
    """Of the evidence it gives: `D` authenticated by a plug-in of ours inside it, `X` what the runner itself says."""

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Return paths, variables and programs that the runner needs for the task in a folder, with *environ*."""
        ...

    def collection(self, suite: Suite, room: Path) -> Invocation:
        """Return the invocation that lists the ids of the suite in *room*."""
        ...

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:
        """Return the invocation that judges *ids* in *room*."""
        ...

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        ...

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        ...

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return those of the task's files that hold tests, by name alone."""
        ...

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests in a test file, in its order, read from its syntax tree: it may not even import yet."""
        ...


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Request to a model: messages for a language model, and the same facts in a structured view."""

    request: Request
    messages: tuple[Message, ...]
    tree: str
    files: Mapping[str, bytes]
    """The editable files of the best tree."""
    red: tuple[str, ...]
    green: tuple[str, ...]
    localisation: Localisation | None
    position: int
    """Replies of this model in this run so far: where a script or recording goes on."""
    refused: frozenset[str]
    """`Action.digest` of every proposal that was verified or refused already."""
    seed: int
    seconds: float | None
    """Seconds of the run's time that the answer may take; None is no cap."""
    tried: int = 0  # candidates that were screened in this run before
    output: str = ""
    """The output of the red tests on the best tree, for an agent that localises."""
    tools: tuple[Tool, ...] = ()
    measured: tuple[int, int] = (0, 0)
    """The first messages of the conversation and their tokens, as the provider counted; (0, 0): nobody counted."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply and its cost."""

    reply: Reply
    input_tokens: int = 0
    """All of the prompt, those included that came from the provider's prefix cache (`cached_tokens`)."""
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    error: str = ""  # one of `jumar.core.run.retry.ERRORS`, or empty
    detail: str = ""  # message of the provider about the error, in one line, without keys
    retry_after: float | None = None  # seconds to wait before another try, as the provider asked; None: it did not
    assumed: bool = False
    """No usage was reported although the call may be billed: the kernel counts what was reserved."""


class Model(Protocol):
    """Source of completions: a provider, a script, a recording or a search."""

    name: str

    def worst(self, ask: Ask) -> Cost:
        """Return the most that answering *ask* can cost; it is reserved before the call."""
        ...

    async def complete(self, ask: Ask) -> Answer:
        """Return the answer to *ask*. Faults of the provider are values (`Answer.error`), not exceptions."""
        ...


class Ledger(Protocol):
    """Shared budget of many runs in many processes. Rows are keyed by (run, seq of the `model_request`)."""

    def reserve(self, seq: int, worst: Cost) -> str:
        """Set *worst* aside before the request is written down; return the cap that refuses it, or empty."""
        ...

    def settle(self, seq: int, cost: Cost) -> None:
        """Record the final cost of the call, after it was written down. Settling twice changes nothing."""
        ...

    def seconds_left(self) -> float | None:
        """Return the seconds until the cap on time, when a call in flight is cancelled; None: no cap."""
        ...


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a host's agent, from outside.

    Beside the driver's tools: `look` (compare the workspace), `ask_model` (of the agent's), `turn_end` (its process's).
    """

    action: Action
    last: bool = True  # its turn is over: edits that were not judged yet are judged then


class Host(Protocol):
    """Source of the actions of a hosted agent."""

    async def next(self, state: RunState) -> Push | None:
        """Wait for the next action; None: the host leaves, and the run stays open.

        Asked again only when all that the last push led to is in the journal, and *state* knows it.
        """
        ...


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a command of the model."""

    exit: int | None  # None: it did not end by itself
    output: str  # both outputs, control sequences stripped, uncapped


class Commands(Protocol):
    """Runs commands for a model, confined, in a copy of the tree."""

    async def run(self, tree: str, command: str, seconds: float) -> Ran:
        """Run *command* with a shell in a fresh copy of *tree*, for at most *seconds*."""
        ...

    async def edit(self, tree: str, command: str, seconds: float) -> tuple[Ran, str]:
        """Run *command* like `run`, and return also the tree that it left, with all its changes."""
        ...


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A judged verification and its cost."""

    verdict: Verdict
    ended: Ended
    executions: int
    duration_ms: int
    output: str  # the name of a file in the run's `output/`, with all of it
    grade: str = "D"  # `A` to `D` or `X`; `+H` where held-out tests agreed (`jumar.core.gate.grades`)
    grades: Mapping[str, str] = {}  # expected id -> grade of its own evidence, where a green was accepted
    weaker: Mapping[str, str] = {}  # id that is not at `A` -> what is known of why, where a green was accepted
    reachable: str = ""  # the best that one of its tests could have had, and has not; empty: `grade`
    better: Mapping[str, str] = {}  # id that could have had a better grade with other code -> that grade
    sandbox: str = "S0"  # tier of the processes
    asked: int | None = None  # requests of the code under test that the tests performed in two processes
    warnings: tuple[str, ...] = ()  # about code that looks written for the tests, with file and line
    natives: Mapping[str, str] = {}  # id that an annotation gives -> the id that the runner knows the test by
    command: str = ""
    selected: int = 0  # tests that ran, where they were a part and showed that the tree cannot stay; 0: all
    starts: Mapping[str, int] = {}  # `warm` -> how many processes were forked; reason -> how many were not


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a command that must succeed."""

    ok: bool
    output: str
    duration_ms: int


class Verifier(Protocol):
    """Judges trees, named by hash; the rooms they are laid out in are the verifier's own."""

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        """Judge *tree* on all expected ids, and those in *also*: tests that were written during the run.

        *accepted*: outcomes of ids that did not pass in the frozen run; None: there was none yet. *control*: the best
        tree so far. *first*: one of these or of what it had green that is red is enough (`Verification.selected`).
        """
        ...

    def with_tests(self, tests: str) -> Verifier:
        """Return a verifier with the test files of *tests* as the task's own; empty: of the first tree."""
        ...

    async def plain(self, tree: str, accepted: Mapping[str, Outcome] | None, also: Sequence[str] = ()) -> Verification:
        """Run all expected ids of *tree*, and those in *also*, once: no green is accepted, it is no verdict."""
        ...

    async def check(self, tree: str, command: str, seconds: float) -> Checked:
        """Run the shell *command* in a room of *tree*, for at most *seconds*: `[gate] verify`."""
        ...

    async def localise(
        self, tree: str, red: Sequence[str], green: Sequence[str], seconds: float | None = None
    ) -> Localisation:
        """Find the lines that the red tests run and the green ones do not, as far as seen within *seconds*."""
        ...
