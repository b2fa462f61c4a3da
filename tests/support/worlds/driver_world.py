"""Small worlds for stories about the driver: the counter program of `stories`, a module and a test beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
import msgspec

from jumar.agents.driver import Driver
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.run.strategy import Message
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.ratchet import Rule
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Settings, Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Void
from jumar.journal.writer import Journal
from jumar.kernel import Kernel, Watch
from jumar.models.script import ScriptLine, ScriptModel
from jumar.ports import Answer, Ask, Commands, Model, Ran
from jumar.runtime.dependencies import RunDependencies, skip_pause
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.worlds.run_world import IDS, World, judge, program

FILES = {"src/sums.py": "def total(rows):\n    return sum(rows)\n", "docs/notes.md": "The total is a sum.\n"}
"""What lies in the workspace beside `app.py` and its tests; only `src/` may be edited."""


def strict(files: Mapping[str, bytes]) -> Mapping[str, str] | Void:
    """As `stories.judge`; a program that is none passes nothing."""
    counts = re.search(rb"PASSING = \d", files.get("app.py", b""))
    return judge(files) if counts else dict.fromkeys(IDS, "error")


class Rules(msgspec.Struct, frozen=True):
    """What a story about the driver may vary."""

    budget: Budget = Budget()
    policy: TestPolicy = TestPolicy.ON_WRITE
    start: int = 8
    instruction: str = ""
    switches: Switches = Switches()
    rule: Rule = Rule()
    commands: Commands | None = None
    judge: Callable[[Mapping[str, bytes]], Mapping[str, str] | Void] = strict


@contextmanager
def swift() -> Iterator[Path]:
    """A folder in memory where there is one: hundreds of small runs spend their time in fsync and nowhere else."""
    memory = "/dev/shm"  # noqa: S108  a file system, not a name that could be guessed
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


class Heard:
    """A model that remembers what it was sent."""

    during: Callable[[], object] = staticmethod(lambda: None)
    """What happens while a call is in flight."""

    def __init__(self, lines: tuple[ScriptLine, ...]) -> None:
        self._script = ScriptModel(lines)
        self.name = "script"
        self.prompts: list[tuple[Message, ...]] = []

    def worst(self, ask: Ask) -> Cost:
        """What the script says."""
        return self._script.worst(ask)

    async def complete(self, ask: Ask) -> Answer:
        """The script's next line."""
        self.prompts.append(ask.messages)
        self.during()
        await anyio.lowlevel.checkpoint()
        return await self._script.complete(ask)


class Echo:
    """Runs no command; says what it was asked to run."""

    during: Callable[[], object] = staticmethod(lambda: None)
    """What happens while a command runs."""

    async def run(self, tree: str, command: str, seconds: float) -> Ran:
        """The command, as if it were its own output."""
        assert tree
        assert seconds > 0
        self.during()
        await anyio.lowlevel.checkpoint()
        return Ran(exit=None if command == "forever" else 0, output=command)

    async def edit(self, tree: str, command: str, seconds: float) -> tuple[Ran, str]:
        """The same, and the tree as it was."""
        return await self.run(tree, command, seconds), tree


class Turns(msgspec.Struct):
    """A run of the driver, its model, and what it may be made of again."""

    world: World
    model: Heard
    shell: EffectRunner
    agent: Driver
    parts: RunDependencies

    @property
    def events(self) -> Callable[[type[ev.Event]], list[ev.Event]]:
        """The journal's events of one type."""
        return self.world.events

    def shown(self, name: str) -> list[dict[str, object]]:
        """What the model was shown under *name*, in order."""
        return [e.content for e in self.events(ev.Observation) if isinstance(e, ev.Observation) and e.name == name]

    def taken(self) -> list[tuple[str, bool, str]]:
        """Every action: its name, whether it was admitted, and why not."""
        return [(e.name, e.admitted, e.reason) for e in self.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken)]

    def triggers(self) -> list[str]:
        """What each verification was for."""
        return [e.trigger.value for e in self.events(ev.Tests) if isinstance(e, ev.Tests)]

    def last(self) -> str:
        """The newest message of the newest prompt."""
        return self.model.prompts[-1][-1].content

    def text(self, path: str) -> str | None:
        """What lies in the workspace under *path*."""
        file = self.world.folder / "workspace" / path
        return file.read_text() if file.exists() else None


def turns(folder: Path, lines: tuple[ScriptLine, ...], rules: Rules | None = None) -> Turns:
    """A run of the driver in *folder* whose model answers *lines*."""
    rules = rules or Rules()
    store = Store(folder / "objects")
    workspace = Workspace(folder / "workspace", store)
    for path, text in {**FILES, "app.py": program(rules.start), "test_app.py": "# the tests\n"}.items():
        (workspace.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace.folder / path).write_text(text)
    tree = workspace.capture()
    guard = WriteRules(lambda p: p == "app.py" or p.startswith("src/"), lambda p: p == "test_app.py")
    model, verifier = Heard(lines), FakeVerifier(store, IDS, rules.judge)
    agent = Driver(workspace.paths(), ("test_app.py",), rules.switches)
    parts = RunDependencies(
        workspace=workspace, verifier=verifier, route=_always(model), agent=agent, guard=guard, clock=FakeClock(),
        commands=rules.commands, sleep=skip_pause,
    )  # fmt: skip
    first = ev.RunStart(
        run="story", task="app", agent=agent.name, model="script", test_policy=rules.policy, gate=Gate.OFF,
        budget=rules.budget, expected=IDS, tree=tree,
        settings=Settings(rule=rules.rule, instruction=rules.instruction, switches=rules.switches),
    )  # fmt: skip
    journal, shell = Journal.create(folder), EffectRunner(parts)
    kernel = Kernel(journal, shell, agent, replay(journal.append((first,), 0.0)))
    return Turns(World(folder, kernel, verifier, store, journal), model, shell, agent, parts)


def ended(made: Turns) -> StopReason:
    """Run it; why it stopped. What the journal says is what the kernel believed."""
    with made.world.journal:
        end = anyio.run(made.world.kernel.run)
    assert made.world.replayed().end == end.end
    assert end.end is not None
    return end.end.stop


def resumed(made: Turns, watch: Watch | None = None) -> RunState:
    """Go on with it in a new kernel, as after a crash or an end."""
    with Journal.open(made.world.folder) as journal:
        kernel = Kernel(journal, made.shell, made.agent, replay(journal.entries))
        kernel.record((ev.Resume(from_seq=journal.entries[-1].seq),))
        made.world.kernel = kernel
        kernel.watch = watch or kernel.watch
        return anyio.run(kernel.run)


def interrupting(made: Turns, effect: str, times: int = 1) -> Watch:
    """Asks the kernel to stop when it is about to do *effect* for the *times*th time."""
    left = iter(range(times - 1, -1, -1))

    def watch(_: RunState, about: object) -> None:
        if type(about).__name__ == effect and next(left, -1) == 0:
            made.world.kernel.halt(Halt(StopReason.INTERRUPTED))

    return watch


def call(name: str, **arguments: object) -> ScriptLine:
    """A reply with one tool call."""
    return ScriptLine(tool_calls=(ToolCall(name, dict(arguments)),), usd=0.01)


def both(*lines: ScriptLine) -> ScriptLine:
    """One reply with the calls of all *lines*."""
    return ScriptLine(tool_calls=tuple(call for line in lines for call in line.tool_calls), usd=0.01)


def writes(passing: int, note: str = "") -> ScriptLine:
    """A reply that writes a program which passes the first *passing* tests."""
    return call("write_file", path="app.py", text=program(passing, note))


def _always(model: Model) -> Callable[[str], Model]:
    return lambda _tier: model
