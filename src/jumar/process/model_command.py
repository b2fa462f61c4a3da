"""Runs a model's command confined in a copy of a tree, or not at all. It returns only text."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from anyio import to_thread

from jumar.core.state.verdict import Ended
from jumar.errors import BadInput, Infra
from jumar.ports import Ran, Sandbox
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.process.room import TreeStore, lay_out
from jumar.process.sandbox_check import find_bubblewrap
from jumar.process.shell_check import build_shell_invocation
from jumar.sandbox import bwrap
from jumar.sandbox.program_files import PATH, find_interpreter_files
from jumar.sandbox.request import Reach
from jumar.workspace.files.disk_faults import explain_disk_faults

COMMAND_BYTES = 100_000
"""A longer command is refused: no kernel takes an argument of 128 KiB."""

REFUSED = 126
"""The exit status shells give to what was found but not executed."""

PROBE_SECONDS = 20.0

_PROBE = """
refuse() { echo "$1"; exit 1; }
[ ! -e "$1" ] || refuse "commands can see $1"
"$2" -I -c '' || refuse "$2 does not start in the sandbox"
"""


class CommandTrees(TreeStore, Protocol):
    """Store of trees, which also keeps the tree of a folder."""

    def capture(self, folder: Path) -> str:
        """Store the tree of *folder*; return its hash."""
        ...


@dataclass(frozen=True, slots=True)
class ConfinedCommands:
    """Runs commands for a model (see `ports.Commands`); built by `build_confined_commands`, which tests it."""

    sandbox: Sandbox
    store: CommandTrees
    folder: Path
    """The run's folder: rooms are made in `rooms/`. Commands cannot see it."""
    python: Path
    """The interpreter that runs the tests: it is the first on the PATH, with what is installed for it."""
    environ: Mapping[str, str]
    """The environment that LANG, LC_* and TZ come from."""

    async def run(self, tree: str, command: str, seconds: float) -> Ran:
        """Run *command* with a shell in a fresh copy of *tree*, for at most *seconds*, without a network.

        What the command changes is thrown away with the copy. One that cannot be handed to a shell (too long, a NUL)
        has not run: exit 126.

        Raises:
            Infra: if the sandbox cannot be set up, although it could before.
        """
        if why := _explain_unfit(command):
            return Ran(exit=REFUSED, output=f"jumar: {why}\n")
        async with lay_out(self.store, tree, self.folder / "rooms") as room:
            return await self._run_in(room, (command,), seconds)

    async def edit(self, tree: str, command: str, seconds: float) -> tuple[Ran, str]:
        """Run *command* like `run`, and return the tree that it left; the caller decides what to keep.

        Raises:
            Infra: as `run`.
            BadInput: if the command left what no tree can hold.
        """
        if why := _explain_unfit(command):
            return Ran(exit=REFUSED, output=f"jumar: {why}\n"), tree
        async with lay_out(self.store, tree, self.folder / "rooms") as room:
            ran = await self._run_in(room, (command,), seconds, kept=True)
            return ran, await to_thread.run_sync(self.store.capture, room)

    async def check(self) -> str:
        """Return why commands cannot run here, in one sentence; empty if they can."""
        async with lay_out(_Empty(), "", self.folder / "rooms") as room:
            try:
                ran = await self._run_in(room, (_PROBE, str(self.folder), str(self.python)), PROBE_SECONDS)
            except Infra as fault:
                return str(fault)
        said = ran.output.strip().splitlines()
        return "" if ran.exit == 0 else said[-1] if said else "commands hang in the sandbox"

    async def _run_in(self, room: Path, words: tuple[str, ...], seconds: float, *, kept: bool = False) -> Ran:
        started, code = anyio.current_time(), None
        invocation = msgspec.structs.replace(
            build_shell_invocation(*words), env={"PATH": f"{self.python.parent}:{PATH}"}
        )
        # A named file beside the room: a kill leaves it where rooms are cleared away.
        with (
            explain_disk_faults(f"cannot write to {room.parent}"),
            tempfile.NamedTemporaryFile(dir=room.parent) as output,
        ):
            path = Path(output.name)
            confinement = Confinement(
                room=room,
                output=path,
                seconds=seconds,
                environ=self.environ,
                sandbox=self.sandbox,
                reach=Reach(readable=find_interpreter_files(self.python), writable=(room,) if kept else ()),
            )
            async with run_confined(invocation, confinement) as child:
                while (record := await child.receive()) is not None:
                    match record:
                        case ["end", int(status)]:
                            code = status
            text = await to_thread.run_sync(read_output, path)
        if child.ended is Ended.NORMAL:
            return Ran(exit=code, output=text)
        if child.ended is not Ended.UNSTARTED or anyio.current_time() - started >= seconds:
            return Ran(exit=None, output=text)
        said = text.strip().splitlines()
        raise Infra(f"the sandbox {self.sandbox.tier} cannot confine a command: {said[-1] if said else child.detail}")


async def build_confined_commands(
    store: CommandTrees, folder: Path, python: Path, environ: Mapping[str, str], sandbox: Sandbox | None = None
) -> ConfinedCommands:
    """Build the executor of commands confined by *sandbox*, or by the first bubblewrap here that confines.

    Args:
        store: where the trees lie.
        folder: the run's folder, an absolute path; it must be one that no command can see.
        python: the interpreter that runs the tests, an absolute path.
        environ: LANG, LC_* and TZ are let through.
        sandbox: one that was tried already.

    Raises:
        BadInput: if none does; nothing is ever run unconfined.
    """
    box = sandbox or await find_bubblewrap(folder / "rooms", environ)
    if isinstance(box, bwrap.Bubblewrap):
        box = dataclasses.replace(box, place=bwrap.WORKSPACE)
    commands = ConfinedCommands(box, store, folder, python, environ)
    if reason := await commands.check():
        allow = "keep runs elsewhere, name another interpreter, or do without commands of the model"
        raise BadInput(f"commands of a model cannot be confined here ({reason}): {allow}")
    return commands


async def check_confinable(python: Path, environ: Mapping[str, str]) -> str:
    """Return why commands of a model cannot be confined on this machine, in one sentence; empty if they can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            await build_confined_commands(_Empty(), Path(folder), python, environ)
        except (BadInput, Infra) as reason:
            return str(reason)
    return ""


class _Empty:
    """A store for the self-test, which needs no files."""

    def materialise(self, tree: str, dest: Path) -> None:  # noqa: ARG002  # the protocol's name for it
        dest.mkdir(parents=True)

    def capture(self, folder: Path) -> str:  # noqa: ARG002  # as above
        return ""


def _explain_unfit(command: str) -> str:
    """Return why *command* cannot be handed to a shell, or empty."""
    try:
        size = len(command.encode("utf-8"))
    except UnicodeEncodeError:
        return "a command is text that UTF-8 can hold, without lone surrogates"
    if "\0" in command:
        return "a command holds no NUL character"
    return f"a command has at most {COMMAND_BYTES:,} bytes; write a file and run that" if size > COMMAND_BYTES else ""
