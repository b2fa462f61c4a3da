"""Lets runs share their judging: a run waits for a free core, and reuses the verdict of another run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from jumar.core.state.events import Localisation
from jumar.core.state.verdict import Outcome
from jumar.ports import Checked, Verification, Verifier
from jumar.runs.judging.byte_locks import hold_byte
from jumar.runs.judging.verdict_store import StoredVerdict, hash_question
from jumar.workspace.files.disk_faults import explain_disk_faults


class JudgedRun(NamedTuple):
    """A run as the store of verdicts knows it."""

    folder: Path
    """Its directory."""
    rules: str
    """Hash of everything that decides a verdict beside the tree; see `hash_rules`."""
    new_output: Callable[[], Path]
    """Makes a file for what processes print."""
    tests: str = ""
    """The tree whose test files are the task's own; empty: the first one."""


class CoreLimit(NamedTuple):
    """Limit on the runs that all processes of a campaign judge at once."""

    path: Path
    """A file in which each core has a byte."""
    cores: int


class Verdicts(Protocol):
    """Verdicts of many runs, by question: a `VerdictStore`, or a substitute for one."""

    def ask(self, key: bytes) -> AbstractAsyncContextManager[StoredVerdict | None]:
        """Enter with the verdict on the question *key*, or None; within the block nobody else works on it."""
        ...

    def keep(self, key: bytes, done: Verification, run: Path) -> None:
        """Keep the verdict *done*, made in the run directory *run*, if it says something for sure."""
        ...


class SharedJudging(NamedTuple):
    """Parts that judge several runs."""

    limit: CoreLimit | None = None
    """Limits how many judge at once; None: there is no limit."""
    store: Verdicts | None = None
    """Verdicts of all runs; None: each run judges for itself."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context that is entered when a core is free; no time limit runs before that."""
        return hold_byte(self.limit.path, range(self.limit.cores)) if self.limit else nullcontext()

    def wrap(self, verifier: Verifier, run: Callable[[], JudgedRun]) -> Verifier:
        """Return a verifier for *run* that waits for its turn and asks the store before *verifier* judges."""
        return verifier if self.limit is None and self.store is None else QueuedVerifier(verifier, self, run())


class QueuedVerifier:
    """Verifier that asks the store before it judges, and waits for a free core before it starts a process."""

    def __init__(self, inner: Verifier, shared: SharedJudging, run: JudgedRun) -> None:
        self._inner, self._shared, self._run = inner, shared, run

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        """Judge *tree*; see `jumar.ports.Verifier`, as for the others."""
        store = self._shared.store
        if store is None:
            return await self._judge(tree, accepted, control, also, first)
        key = hash_question(self._run.rules, self._run.tests, tree, accepted, sorted(also))
        async with store.ask(key) as known:
            if known is not None:
                return self._serve(known)
            done = await self._judge(tree, accepted, control, also, first)
            if not done.selected:
                store.keep(key, done, self._run.folder)
            return done

    async def _judge(
        self, tree: str, accepted: Mapping[str, Outcome] | None, control: str, also: Sequence[str], first: Sequence[str]
    ) -> Verification:
        async with self._shared.turn():
            return await self._inner.verify(tree, accepted, control=control, also=also, first=first)

    def _serve(self, known: StoredVerdict) -> Verification:
        """Return the verdict of another run; its output says where the tests ran."""
        output = self._run.new_output()
        source = Path(known.run, "output", known.done.output)
        with explain_disk_faults(f"cannot write {output}"):
            output.write_text(f"This tree was judged before; no test ran here. What they printed is in {source}\n")
        return replace(known.done, executions=0, duration_ms=0, starts={}, output=output.name)

    def with_tests(self, tests: str) -> Verifier:
        """Return a verifier that treats the test files of the tree *tests* as the task's own."""
        return QueuedVerifier(self._inner.with_tests(tests), self._shared, self._run._replace(tests=tests))

    async def plain(self, tree: str, accepted: Mapping[str, Outcome] | None, also: Sequence[str] = ()) -> Verification:
        """Run all expected ids of *tree* once. The store holds no plain runs: they are no verdicts."""
        async with self._shared.turn():
            return await self._inner.plain(tree, accepted, also)

    async def check(self, tree: str, command: str, seconds: float) -> Checked:
        """Run the shell *command* in a room of *tree*."""
        async with self._shared.turn():
            return await self._inner.check(tree, command, seconds)

    async def localise(
        self, tree: str, red: Sequence[str], green: Sequence[str], seconds: float | None = None
    ) -> Localisation:
        """Find the lines that the red tests run and the green ones do not."""
        async with self._shared.turn():
            return await self._inner.localise(tree, red, green, seconds)
