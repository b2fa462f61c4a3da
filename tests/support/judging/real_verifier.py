"""A court for one small project: its files go into a store, and the trusted verifier judges them in real processes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from msgspec.structs import replace

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome
from jumar.ports import Verification
from jumar.process.warm.starts import WarmStarts
from jumar.runners.pytest import PytestRunner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON

QUICK = Suite(timeout_seconds=20.0, test_timeout_seconds=5.0)


class Court:
    """Judges trees below *folder*, by processes that are forked from zygotes of all courts, unless they are *started*.

    A fork says what a process says that is started (`test_warm.py`), and takes a third of the time.
    """

    def __init__(self, folder: Path, suite: Suite = QUICK, *, started: bool = False) -> None:
        suite = replace(suite, python=suite.python or PLAIN_PYTHON)
        self.folder = folder
        self.store = Store(folder / "objects")
        # As the sandboxes of this machine are found by it: all courts have the same, and so the same zygotes.
        self.verifier = TrustedVerifier(self.store, PytestRunner(), suite, folder / "run", environ=ENVIRON)
        self.verifier.warm = None if started else WarmStarts()
        self._trees = 0

    def tree(self, files: Mapping[str, str]) -> str:
        """The tree of *files*: path to text."""
        self._trees += 1
        source = self.folder / f"source{self._trees}"
        for path, text in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text, "utf-8")
        return self.store.capture(source)

    def collect(self, tree: str) -> tuple[str, ...]:
        """The ids of *tree*, which are the expected ones from now on."""
        self.verifier.expected = ()
        self.verifier.base = tree
        self.verifier.expected = anyio.run(self.verifier.collect, tree).ids
        return self.verifier.expected

    def judge(self, tree: str, accepted: Mapping[str, Outcome] | None = None, *, control: str = "") -> Verification:
        """The verification of *tree*."""

        async def verify() -> Verification:
            return await self.verifier.verify(tree, accepted, control=control)

        return anyio.run(verify)

    def outcomes(self, done: Verification) -> dict[str, str]:
        """Test name -> outcome."""
        return {i.partition("::")[2]: str(r.outcome) for i, r in done.verdict.results.items()}

    def output(self, done: Verification) -> str:
        """What the processes of *done* printed."""
        return (self.folder / "run" / "output" / done.output).read_text("utf-8", "replace")

    def survivors(self) -> list[str]:
        """The command lines of living processes that were started for a room below *folder*.

        It is looked three times: who starts another process and ends while a look lasts is not seen by that one.
        """
        mark = str(self.folder).encode()
        found = []
        for process in (entry for _ in range(3) for entry in Path("/proc").glob("[0-9]*")):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes() and b"JUMAR_ROOM=" in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text("utf-8", "replace"))
        return found
