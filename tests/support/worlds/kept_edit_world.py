"""A small world for stories about kept edits: real tests of three files, and a judge that knows how they come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import anyio

from jumar.agents.driver import Driver
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.effects import Halt, Verify
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings, Suite, Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.models.script import ScriptedUsage, ScriptLine, ScriptModel
from jumar.runners.pytest import PytestRunner
from jumar.runtime.dependencies import RunDependencies, skip_pause
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

A, B, C, OLD = (f"test_app.py::test_{name}" for name in ("a", "b", "c", "old"))
IDS = (A, B, C, OLD)

FILES: Mapping[str, bytes] = {
    "one.py": b"A = 0\nKEPT = 'k'\nMORE = 'm'\nB = 0\n",
    "two.py": b"C = 0\n",
    "data.bin": b"\xff\0old\n",
    "gone.py": b"GONE = 1\n",
    "test_app.py": (
        b"import os\n\nimport one\nimport two\n\n\ndef test_a():\n    assert one.A == 1\n\n\n"
        b"def test_b():\n    assert one.B == 1\n\n\ndef test_c():\n    assert two.C == 1\n\n\n"
        b"def test_old():\n    assert one.KEPT == 'k'\n"
    ),
}


def judge(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """How the tests of these files come out, without running them; of a written one, `test_new.py::test_new`, too."""
    holds = {
        A: ("one.py", b"A = 1\n"),
        B: ("one.py", b"B = 1\n"),
        C: ("two.py", b"C = 1\n"),
        OLD: ("one.py", b"KEPT = 'k'"),
        "test_new.py::test_new": ("two.py", b"NEW = 1\n"),
    }
    return {i: "passed" if text in files.get(path, b"") else "failed" for i, (path, text) in holds.items()}


def ran(
    folder: Path, *lines: ScriptLine, name: str = "story", files: Mapping[str, bytes] = FILES, stop: int = 0
) -> Path:
    """A run of the driver under the gate whose model answers *lines*; its directory, below *folder*.

    With *stop* it is stopped at its verification of that number (the first is the baseline's), and gone on with.
    """
    where = folder / name
    store = Store(where / "objects")
    workspace = Workspace(where / "workspace", store)
    workspace.folder.mkdir(parents=True)
    for path, data in files.items():
        (workspace.folder / path).write_bytes(data)
    guard = WriteRules(_no_test, lambda path: path == "test_app.py", lambda path: path == "test_new.py")
    model, switches = ScriptModel(lines, "script:/somewhere/else/replies.jsonl"), Switches(model_may_run_tests=True)
    agent, runner = Driver(workspace.paths(), ("test_app.py",), switches, Gate.STRICT), PytestRunner()
    parts = RunDependencies(
        workspace=workspace, verifier=FakeVerifier(store, IDS, judge), route=lambda _tier: model, agent=agent,
        guard=guard, clock=FakeClock(), sites=runner.sites, sleep=skip_pause,
    )  # fmt: skip
    first = ev.RunStart(
        run=name, task="app", agent="driver", model=model.name, test_policy=TestPolicy.ON_WRITE, gate=Gate.STRICT,
        budget=Budget(turns=12), expected=IDS, tree=workspace.capture(),
        settings=Settings(instruction="Do it.", suite=Suite(), switches=switches, origin=str(folder / "origin")),
    )  # fmt: skip
    with Journal.create(where) as journal:
        kernel = Kernel(journal, EffectRunner(parts), agent, replay(journal.append((first,), 0.0)))
        kernel.watch = _stopping(kernel, stop)
        anyio.run(kernel.run)
    if stop:
        with Journal.open(where) as journal:
            kernel = Kernel(journal, EffectRunner(parts), agent, replay(journal.entries))
            kernel.record((ev.Resume(from_seq=journal.entries[-1].seq),))
            anyio.run(kernel.run)
    return where


def _stopping(kernel: Kernel, stop: int) -> Callable[[RunState, object], None]:
    """Halts *kernel* at its verification number *stop*, counted from 1; 0 is never."""
    numbers = count(1)

    def watch(_state: RunState, effect: object) -> None:
        if isinstance(effect, Verify) and next(numbers) == stop:
            kernel.halt(Halt(StopReason.INTERRUPTED, "a story stops here"))

    return watch


def turn(*calls: ToolCall) -> ScriptLine:
    """A reply with these calls, which costs something."""
    return ScriptLine(
        tool_calls=calls, usd=0.25, usage=ScriptedUsage(input_tokens=100, cached_tokens=40, output_tokens=10)
    )


def claim(test_id: str, path: str) -> ToolCall:
    """An edit of *path* shall turn *test_id* green."""
    return ToolCall("edit_claim", {"test_id": test_id, "edit_target": path})


def edit(path: str, old: str, new: str) -> ToolCall:
    """An exact replacement."""
    return ToolCall("edit_file", {"path": path, "old": old, "new": new})


def write(path: str, text: str) -> ToolCall:
    """A whole file."""
    return ToolCall("write_file", {"path": path, "text": text})


def delete(path: str) -> ToolCall:
    """A file less."""
    return ToolCall("delete_file", {"path": path})


FIX_A = (claim(A, "one.py"), edit("one.py", "A = 0\n", "A = 1\n"))
FIX_B = (claim(B, "one.py"), edit("one.py", "B = 0\n", "B = 1\n"))
FIX_C = (claim(C, "two.py"), edit("two.py", "C = 0\n", "C = 1\n"))
"""What turns each of the tests green."""


def _no_test(path: str) -> bool:
    return not path.startswith("test_")
