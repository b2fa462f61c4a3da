"""Runs that hosts have open, without a world: sessions that write down what they are asked, and may be held up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel

from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput, Infra
from jumar.runs.session import ActionOutcome
from jumar.runs.session_pool import RunOpeners, SessionPool
from jumar.task.task import Task


class Run:
    """A session that writes down what it is asked, and may be held up."""

    def __init__(self, folder: Path, log: list[str]) -> None:
        self.folder, self.log = folder, log
        self.calls: list[ToolCall] = []
        self.go_on = anyio.Event()

    @property
    def state(self) -> RunState:
        """A run that has just begun."""
        first = ev.RunStart(
            run=self.folder.name, task="t", agent="host", model="host", test_policy=TestPolicy.ON_WRITE,
            gate=Gate.STRICT, budget=Budget(), expected=("t.py::a",), tree="0",
            settings=Settings(origin=str(self.folder.parent)),
        )  # fmt: skip
        return replay((ev.Entry(0, 0.0, first),))

    async def act(self, call: ToolCall) -> ActionOutcome:
        """`slow` waits until it may go on, `final` and `escalate` end the run, `break` breaks it."""
        self.log.append(f"{self.folder.name} {call.name} begins")
        self.calls.append(call)
        await anyio.lowlevel.checkpoint()
        if call.name == "slow":
            await self.go_on.wait()
        if call.name == "break":
            raise Infra("the disk is gone")
        if call.name == "bug":
            raise LookupError("nobody thought of this")
        self.log.append(f"{self.folder.name} {call.name} ends")
        ends = {"final": StopReason.FINAL, "escalate": StopReason.ESCALATED}
        return ActionOutcome(admitted=True, text="done", stop=ends.get(call.name))


class House:
    """Where runs are kept in a story."""

    def __init__(self, folder: Path, desk: Callable[[RunOpeners], SessionPool]) -> None:
        self.folder, self.log = folder, list[str]()
        self.runs: list[Run] = []
        self.desk = desk(RunOpeners(lambda task: self._entered(task.name), lambda at: self._entered(at.name)))

    @asynccontextmanager
    async def _entered(self, name: str) -> AsyncIterator[Run]:
        if name == "bad":
            raise BadInput("bad cannot be opened")
        run = Run(self.folder / name, self.log)
        self.runs.append(run)
        self.log.append(f"{name} in")
        try:
            yield run
        finally:
            self.log.append(f"{name} out")


def told(folder: Path, story: Callable[[House], Awaitable[None]], idle_seconds: float = 60.0) -> list[str]:
    """Play *story*; what happened, in order."""

    async def play() -> list[str]:
        async with anyio.create_task_group() as group:
            house = House(folder, lambda doors: SessionPool(group, doors, folder, idle_seconds))
            await story(house)
            group.cancel_scope.cancel()
        return house.log

    return anyio.run(play)


def task(name: str) -> Task:
    return Task(root=Path(name), name=name)


def call(name: str) -> ToolCall:
    return ToolCall(name)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not true():
            await anyio.lowlevel.checkpoint()


SOURCE = """\
def add(a, b):
    return a - b


def half(n):
    return n * 2
"""

TESTS = """\
from calc import add, half


def test_add():
    assert add(2, 3) == 5


def test_half():
    assert half(8) == 4


def test_truth():
    assert add(0, 0) == 0
"""

ADD, HALF, TRUTH = (f"test_calc.py::test_{name}" for name in ("add", "half", "truth"))


def repository(folder: Path) -> Path:
    """A small project in *folder* with two red tests and a green one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calc.py").write_text(SOURCE)
    (folder / "other.py").write_text("LIMIT = 1\n")
    (folder / "test_calc.py").write_text(TESTS)
    return folder
