"""A small world for stories about the kernel: a counter program whose score is written in its own text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jumar.agents.pipeline import Pipeline
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.reducers.transitions import replay
from jumar.core.run.strategy import Strategy
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Rule
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Cause, Void
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.ports import Model
from jumar.runtime.dependencies import RunDependencies, skip_pause
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier, script
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

TOTAL = 17
IDS = tuple(f"test_app.py::test_{n}" for n in range(TOTAL))


def program(passing: int, note: str = "") -> str:
    """A program that passes the first *passing* tests."""
    return f"PASSING = {passing}  # {note}\n"


def judge(files: Mapping[str, bytes]) -> Mapping[str, str] | Void:
    """The first PASSING tests pass; 99 and 98 stand for no usable evidence."""
    passing = int(re.findall(rb"PASSING = (\d+)", files["app.py"])[0])
    if passing in (98, 99):
        return Void(Cause.TAMPER if passing == 99 else Cause.HARNESS, "forged" if passing == 99 else "no runner")
    return {test_id: "passed" if n < passing else "failed" for n, test_id in enumerate(IDS)}


@dataclass
class World:
    """One run, ready to go."""

    folder: Path
    kernel: Kernel
    verifier: FakeVerifier
    store: Store
    journal: Journal

    @property
    def text(self) -> str:
        """What lies in the workspace."""
        return (self.folder / "workspace" / "app.py").read_text()

    def events(self, kind: type[ev.Event]) -> list[ev.Event]:
        """The journal's events of one type."""
        return [e.event for e in self.entries() if isinstance(e.event, kind)]

    def entries(self) -> list[ev.Entry]:
        """The journal, read back from disk."""
        from jumar.journal.writer import read_journal  # noqa: PLC0415  a reader, not a part of the run

        return list(read_journal(self.folder))

    def replayed(self) -> RunState:
        """The state that the journal alone gives."""
        return replay(self.entries())


class Terms(msgspec.Struct, frozen=True):
    """What a story may vary."""

    rule: Rule = Rule()
    budget: Budget = Budget()
    policy: TestPolicy = TestPolicy.ON_WRITE
    gate: Gate = Gate.OFF
    start: int = 8
    instruction: str = ""
    model: Model | None = None
    judge: Callable[[Mapping[str, bytes]], Mapping[str, str] | Void] = judge
    agent: Strategy | None = None
    task: str = "app"
    min_grade: str = ""


def world(folder: Path, replies: tuple[str, ...], terms: Terms | None = None) -> World:
    """A run in *folder* whose model answers *replies*."""
    terms = terms or Terms()
    store = Store(folder / "objects")
    workspace = Workspace(folder / "workspace", store)
    workspace.folder.mkdir(parents=True)
    (workspace.folder / "app.py").write_text(program(terms.start))
    (workspace.folder / "test_app.py").write_text("# the tests\n")
    tree = workspace.capture()
    guard = WriteRules(editable=lambda p: p == "app.py", protected=lambda p: p == "test_app.py")
    verifier = FakeVerifier(store, IDS, terms.judge)
    agent = terms.agent or Pipeline(("app.py",))
    model = terms.model or script(*replies)
    parts = RunDependencies(
        workspace=workspace,
        verifier=verifier,
        route=lambda _: model,
        agent=agent,
        guard=guard,
        clock=FakeClock(),
        sleep=skip_pause,
    )
    shell = EffectRunner(parts)
    first = ev.RunStart(
        run="story",
        task=terms.task,
        agent=agent.name,
        model="script",
        test_policy=terms.policy,
        gate=terms.gate,
        budget=terms.budget,
        expected=IDS,
        tree=tree,
        settings=Settings(rule=terms.rule, instruction=terms.instruction, min_grade=terms.min_grade),
    )
    journal = Journal.create(folder)
    kernel = Kernel(journal, shell, agent, replay(journal.append((first,), 0.0)))
    return World(folder, kernel, verifier, store, journal)
