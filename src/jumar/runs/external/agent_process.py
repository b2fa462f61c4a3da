"""Runs one turn of an external agent: a supervised process in the workspace, without the person's files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from jumar.child import start
from jumar.child.commands import agent_main
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.verdict import Ended as Manner
from jumar.errors import Infra, JumarError
from jumar.ports import Invocation
from jumar.process.child_process import Child, run_confined
from jumar.process.freeze import FrozenTree, freeze_processes
from jumar.process.launch import PATH, Confinement
from jumar.runs.external.model_proxy import HOST, ProxyEndpoints
from jumar.runs.external.visible_files import AgentView
from jumar.runs.setup.assembly import RunPlace
from jumar.sandbox.barred_places import list_barred_places
from jumar.sandbox.request import Reach
from jumar.task.agent_command import fill_placeholders, has_placeholder
from jumar.workspace.files.disk_faults import explain_disk_faults

LAST_BYTES = 4096
"""Of the agent's output, to find its last line in."""


class AgentWorkplace(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that all turns of a run share."""

    outside: ExternalAgentSettings
    place: RunPlace
    doors: ProxyEndpoints
    model: str
    """The name that the agent may ask for: whatever it asks for, it gets the run's."""
    python: str
    """The interpreter that runs the tests: the agent finds it, and what is installed for it, first."""
    origin: Path
    """The folder of the task."""
    reserved: tuple[str, ...] = ()
    """Places that the task holds for itself, see `Settings.reserved`."""

    @property
    def folder(self) -> Path:
        """Path of the workspace."""
        return self.place.folder / "workspace"

    def build_invocation(self, prompt: str, prompt_file: Path) -> Invocation:
        """Return the invocation of a turn.

        Raises:
            BadInput: if *prompt* does not fit the command.
        """
        argv, environ = self.outside.argv, self.place.environ
        piped = not (has_placeholder(argv, "prompt") or has_placeholder(argv, "prompt_file"))
        texts = {"prompt": prompt, "prompt_file": str(prompt_file), "model": self.model}
        return Invocation(
            argv=(sys.executable, "-I", "-S", "-B", *start.build_command(agent_main)),
            config={
                "argv": fill_placeholders(argv, texts),
                "stdin": prompt if piped else "",
                "git": shutil.which("git", path=environ.get("PATH") or PATH) or "",
                "door": [self.doors.port, str(self.doors.socket)] if self.doors.socket else [],
            },
            env={name: environ[name] for name in self.outside.variables if name in environ} | self._build_environment(),
        )

    def build_reach(self, prompt_file: Path) -> Reach:
        """Return the files of the machine that a turn may reach."""
        home = self.place.environ.get("HOME")
        return AgentView(
            argv=self.outside.argv,
            search=self.search,
            run=self.place.folder.absolute(),
            home=Path(home) if home else None,
            prompt=prompt_file.absolute() if has_placeholder(self.outside.argv, "prompt_file") else None,
            door=self.doors.socket,
            origin=self.origin,
            barred=list_barred_places(self.origin, self.reserved),
        ).build_reach()

    @property
    def search(self) -> str:
        """PATH of the agent's process."""
        own = (str(Path(self.python).parent), str(Path(sys.executable).parent))
        return f"{own[0]}:{self.place.environ.get('PATH') or PATH}:{own[1]}"

    def _build_environment(self) -> dict[str, str]:
        doors = self.doors
        return {
            "PATH": self.search,
            "OPENAI_BASE_URL": f"{doors.root}/v1",
            "OPENAI_API_BASE": f"{doors.root}/v1",
            "OPENAI_API_KEY": doors.token,
            "ANTHROPIC_BASE_URL": doors.root,
            "ANTHROPIC_API_KEY": doors.token,
            "JUMAR_HOST": doors.claims,
            "JUMAR_WORKSPACE": str(self.folder.absolute()),
            "NO_PROXY": f"{HOST},localhost",
            "no_proxy": f"{HOST},localhost",
            # Where its own history is gone, git must not find the one of a repository that the runs lie in.
            "GIT_CEILING_DIRECTORIES": str(self.place.folder),
        }


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of a turn's process. All that it had started is gone."""

    exit: int | None
    """Its exit status; None: it was stopped."""
    why: str = ""
    """Reason for having no status of its own."""
    said: str = ""
    """Its last line, and how it ended, for a person."""


Tell = Callable[[TurnEnd | JumarError], None]


class AgentTurn:
    """A process of the agent, from its start until all of it is gone. *tree* is the tree it began with."""

    def __init__(self, shop: AgentWorkplace, tree: str) -> None:
        self.tree, self.calls, self.gone = tree, 0, anyio.Event()
        self._shop, self._scope = shop, anyio.CancelScope()
        self._child: Child | None = None
        self._stillness: FrozenTree | None = None
        folder = shop.place.folder / "output"
        with explain_disk_faults(f"cannot write to {folder}"):
            folder.mkdir(exist_ok=True)
            number = 1 + sum(1 for _ in folder.glob("agent-*.txt"))
        self.output = folder / f"agent-{number:03}.txt"
        self.prompt_file = self.output.with_suffix(".md")

    async def work(self, prompt: str, seconds: float, tell: Tell) -> None:
        """Run the turn for at most *seconds*, and *tell* how it ended."""
        try:
            with self._scope:
                with explain_disk_faults(f"cannot write {self.prompt_file}"):
                    self.prompt_file.write_text(prompt, "utf-8", "replace")
                tell(await self._run_process(self._shop.build_invocation(prompt, self.prompt_file), seconds))
        except JumarError as broken:
            tell(broken)
        finally:
            self.gone.set()

    async def freeze(self) -> None:
        """Stop all processes of the turn where they are.

        Raises:
            Infra: if they cannot be stopped.
        """
        if self._child is not None and not self.gone.is_set():
            self._stillness = await to_thread.run_sync(freeze_processes, self._child.family)

    def check(self) -> None:
        """Check that the stopped processes have not moved since.

        Raises:
            Infra: if one has, so that its call or claim was perhaps answered for files that nobody looked at.
        """
        if self._stillness is not None and not self.gone.is_set() and not self._stillness.lasts:
            raise Infra("a process of the agent went on by itself while it was stopped: its work cannot be judged")

    def thaw(self) -> None:
        """Let the stopped processes continue."""
        if self._stillness is not None:
            self._stillness.end()
        self._stillness = None

    async def stop(self) -> None:
        """End the turn, and wait until all its processes are gone."""
        self._scope.cancel()
        await self.gone.wait()

    async def _run_process(self, invocation: Invocation, seconds: float) -> TurnEnd:
        shop, code = self._shop, None
        confinement = Confinement(
            room=shop.folder,
            output=self.output,
            seconds=seconds,
            environ=shop.place.environ,
            sandbox=shop.place.sandbox,
            reach=shop.build_reach(self.prompt_file),
        )
        async with run_confined(invocation, confinement) as child:
            self._child = child
            while (record := await child.receive()) is not None:
                match record:
                    case ["end", int(status)]:
                        code = status
        if child.anomalies:
            raise Infra(f"nobody knows what the agent left running: {child.anomalies[0]}")
        if child.ended is Manner.NORMAL:
            return TurnEnd(exit=code, said=_describe_last_line(self.output, f"exit {code}"))
        why = f"its turn took more than {seconds:g} s" if child.ended is Manner.TIMEOUT else child.detail
        return TurnEnd(exit=None, why=why, said=_describe_last_line(self.output, why))


def _describe_last_line(output: Path, how: str) -> str:
    with explain_disk_faults(f"cannot read {output}"), output.open("rb") as stream:
        stream.seek(max(0, output.stat().st_size - LAST_BYTES))
        lines = stream.read().decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return f"{how}: {''.join(c for c in said[-1] if c.isprintable())[:200]}" if said else f"{how}, without a word"
