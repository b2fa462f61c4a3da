"""A run of an agent that is none of ours: a script the test writes, a provider on loopback, and the kernel between."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import anyio
import anyio.from_thread
import anyio.lowlevel
import msgspec

from jumar.agents.external import ExternalAgent
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Price, Route, Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.journal.writer import Journal, read_journal
from jumar.kernel import Kernel, Watch
from jumar.models.metered_forward import ForwardedModel
from jumar.models.wire.prices import OwnPrices
from jumar.ports import Sandbox
from jumar.runs.external.host import ExternalHost
from jumar.runs.setup.assembly import RunPlace
from jumar.runtime.dependencies import RunDependencies
from jumar.runtime.effect_runner import EffectRunner
from jumar.sandbox.unconfined import Unconfined
from jumar.testing import FakeVerifier
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.processes import fake_provider as wire
from support.worlds.driver_world import strict
from support.worlds.run_world import IDS, program

KEY = "sk-the-key-of-the-person"

FILES = {
    "app.py": program(8),
    "test_app.py": "# the tests\n",
    "src/sums.py": "def total(rows):\n    return sum(rows)\n",
    "docs/notes.md": "The total is a sum.\n",
}
"""What lies in the workspace; `app.py` and `src/` may be edited."""

PRELUDE = dedent('''\
    """Imported by every scripted agent."""
    import json, os, pathlib, subprocess, sys, threading, time, urllib.error, urllib.request

    def post(url, body, **headers):
        headers["content-type"] = "application/json"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def ask(text="go on", **more):
        """One call of the model; the status and the answer."""
        body = {"model": "whatever", "messages": [{"role": "user", "content": text}], **more}
        token = "Bearer " + os.environ["OPENAI_API_KEY"]
        return post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, authorization=token)

    def claim(test, path):
        """What the gate says to a claim."""
        return post(os.environ["JUMAR_HOST"] + "/claim", {"test_id": test, "edit_target": path})[1]

    def write(path, text):
        pathlib.Path(path).write_text(text)

    def until(done):
        """Wait for *done* to come true."""
        while not done():
            time.sleep(0.005)

    def sh(command):
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    ''')


class Terms(msgspec.Struct, frozen=True):
    """What a story may vary."""

    gate: Gate = Gate.OFF
    policy: TestPolicy = TestPolicy.ON_WRITE
    budget: Budget = Budget(usd=1.0, attempts=3)
    instruction: str = ""
    outside: ExternalAgentSettings = ExternalAgentSettings()
    words: tuple[str, ...] = ()
    """After the script, as arguments."""
    environ: Mapping[str, str] = {}
    sandbox: Sandbox = Unconfined()
    """What its turns run in: the script is then a word of its command, as its file would not be seen."""
    price: Price = Price(input=1.0, output=1.0)
    origin: str = ""
    """The folder of the task."""
    reserved: tuple[str, ...] = ()
    """Places that it holds for itself."""


class Outing:
    """One run. *script* is the agent's Python program, without its prelude; it is started anew in every turn."""

    def __init__(self, folder: Path, script: str, server: wire.Server, terms: Terms | None = None) -> None:
        self.folder, self.terms = folder, terms or Terms()
        self.workspace = folder / "workspace"
        self.agent = folder / "agent.py"
        folder.mkdir(parents=True, exist_ok=True)
        self.agent.write_text(PRELUDE + dedent(script))
        store = Store(folder / "objects")
        workspace = Workspace(self.workspace, store)
        for path, text in FILES.items():
            (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / path).write_text(text)
        self.tree = workspace.capture()
        self.verifier = FakeVerifier(store, IDS, strict)
        route = Route(model="openai:gpt-run", max_output_tokens=100, base_url=server.url)
        self.model = ForwardedModel(route, KEY, OwnPrices(self.terms.price))
        environ = {**os.environ, "OPENAI_API_KEY": KEY, **self.terms.environ}
        self.place = RunPlace(folder, store, environ, self.terms.sandbox)
        confined = self.terms.sandbox.tier != "S0"
        source = ("-c", self.agent.read_text()) if confined else (str(self.agent),)
        argv = (sys.executable, *source, *self.terms.words)
        self.outside = msgspec.structs.replace(self.terms.outside, argv=self.terms.outside.argv or argv)
        self._halt: Callable[[Halt], object] = print

    def run(self, watch: Watch | None = None) -> ev.RunEnd:
        """Run it; its end. What the journal says is what the kernel believed."""
        state = anyio.run(self._run, watch)
        assert state.end is not None
        assert replay(read_journal(self.folder)).end == state.end
        return state.end

    async def _run(self, watch: Watch | None) -> RunState:
        terms, agent = self.terms, ExternalAgent(("test_app.py",), metered=self.outside.metered)
        guard = WriteRules(
            editable=lambda path: path == "app.py" or path.startswith("src/"),
            protected=lambda path: path == "test_app.py",
            authorable=lambda path: path.startswith("test_") and path != "test_app.py",
        )
        first = ev.RunStart(
            run="outing", task="app", agent=agent.name, model=self.model.name, test_policy=terms.policy,
            gate=terms.gate, budget=terms.budget, expected=IDS, tree=self.tree,
            settings=Settings(instruction=terms.instruction, origin=terms.origin, reserved=terms.reserved),
        )  # fmt: skip
        host = ExternalHost(self.outside, self.place, agent, self.model)
        async with host.at_work():
            parts = RunDependencies(
                workspace=Workspace(self.workspace, self.place.store), verifier=self.verifier,
                route=lambda _tier: self.model, agent=agent, guard=guard, clock=time.time, host=host,
            )  # fmt: skip
            with Journal.create(self.folder) as journal:
                state = replay(journal.append((first,), time.time()))
                kernel, token = Kernel(journal, EffectRunner(parts), agent, state), anyio.lowlevel.current_token()
                self._halt = lambda why: anyio.from_thread.run_sync(kernel.halt, why, token=token)
                kernel.watch = watch or kernel.watch
                state = await kernel.run()
                await host.leave(state)
                return state

    def halt(self) -> None:
        """As Ctrl-C does; from another thread."""
        self._halt(Halt(StopReason.INTERRUPTED))

    def events(self, kind: type[ev.Event]) -> list[ev.Event]:
        """The journal's events of one type."""
        return [entry.event for entry in read_journal(self.folder) if isinstance(entry.event, kind)]

    def calls(self) -> list[ev.ModelCall]:
        """Every call that was settled."""
        return [e for e in self.events(ev.ModelCall) if isinstance(e, ev.ModelCall)]

    def reverts(self) -> list[tuple[tuple[str, ...], str]]:
        """What went back, and why."""
        return [(e.paths, e.why) for e in self.events(ev.Revert) if isinstance(e, ev.Revert)]

    def turns(self) -> list[dict[str, object]]:
        """How each turn ended."""
        taken = [e for e in self.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken)]
        return [e.args for e in taken if e.name == "turn_end"]

    def said(self, number: int = 1) -> str:
        """What the agent printed in a turn."""
        return (self.folder / "output" / f"agent-{number:03}.txt").read_text()

    def prompt(self, number: int = 1) -> str:
        """What it was told when a turn began."""
        return (self.folder / "output" / f"agent-{number:03}.md").read_text()

    def snapshot(self) -> dict[str, tuple[str, int]]:
        """What lies in the workspace now, but for the history: path -> bytes or link (as text) and mode."""
        found: dict[str, tuple[str, int]] = {}
        for path in sorted(self.workspace.rglob("*")):
            name = path.relative_to(self.workspace).as_posix()
            if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
                continue
            text = f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes().decode("latin-1")
            found[name] = (text, path.lstat().st_mode & 0o100)
        return found


def looking(
    outings: list[Outing], see: Callable[[Outing, wire.Received], None]
) -> Callable[[wire.Received], wire.Step]:
    """Answers every call, after *see* has looked at the run at that very moment."""

    def step(received: wire.Received) -> wire.Step:
        see(outings[0], received)
        return wire.reply("go on")

    return step
