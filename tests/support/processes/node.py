"""Where the tests find node's runners, and a court that judges projects of JavaScript with them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import msgspec
import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import TestResult
from jumar.ports import Collected, Verification
from jumar.runners._javascript import NAMED, JavaScriptRunner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.real_verifier import Court

PACKAGES = Path(__file__).parents[3] / ".venv" / "tools" / "javascript" / "node_modules"
"""Where `make test` installs the packages of `tests/tools/javascript`."""

QUICK = Suite(timeout_seconds=60.0, test_timeout_seconds=1.0)


def environ() -> dict[str, str]:
    """The environment that runners of JavaScript are found by; skips where they are not installed."""
    if shutil.which("node") is None:
        pytest.skip("no node on PATH: install Node.js 20 or newer, then run `make test`")
    if not PACKAGES.is_dir():
        pytest.skip("no vitest and jest for these tests: `make test` installs them where npm is on PATH")
    return {"PATH": os.environ["PATH"], NAMED: str(PACKAGES)}


class NodeCourt(Court):
    """Judges trees of JavaScript below *folder*."""

    def __init__(
        self, folder: Path, runner: JavaScriptRunner, suite: Suite = QUICK, origin: Path | None = None
    ) -> None:
        super().__init__(folder, suite)
        around = runner.surroundings(origin or folder, environ())
        assert not around.missing
        store = Store(folder / "objects")
        self.verifier = TrustedVerifier(store, runner, suite, folder / "run", environ=environ(), around=around)

    def find(self, tree: str) -> Collected:
        """What is collected of *tree*; its ids are the expected ones from now on."""
        self.verifier.expected = ()
        self.verifier.base = tree
        found = anyio.run(self.verifier.collect, tree)
        self.verifier.expected = found.ids
        return found

    def asked(self, tree: str, *ids: str) -> Verification:
        """The verification of *tree* on *ids*."""
        self.verifier.expected = ids
        return self.judge(tree, {})


def told(result: TestResult) -> tuple[str, str, str]:
    """How a test came out and whose doing that is, as plain text."""
    outcome, blame = str(result.outcome), str(result.blame or "")
    return outcome, blame, result.absent


def quick(**changes: object) -> Suite:
    """The quick suite, with *changes*."""
    return msgspec.structs.replace(QUICK, **changes)
