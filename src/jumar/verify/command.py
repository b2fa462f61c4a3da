"""A command of a model's runs confined in a copy of a tree, or not at all; what comes out is text, and nothing else."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from jumar.core.verdict import Ended
from jumar.disk.beneath import disk
from jumar.errors import BadInput, Infra
from jumar.ports import Invocation, Ran
from jumar.sandbox import bwrap
from jumar.verify import command_boot
from jumar.verify.launch import Confinement
from jumar.verify.process import confined
from jumar.verify.room import Store, laid_out

COMMAND_BYTES = 100_000
"""A longer command is refused: no kernel takes an argument of 128 KiB."""

OUTPUT_BYTES = 1 << 20
"""As much of the output is kept, half of it from the start and half from the end."""

OMITTED = "\n[jumar: the middle of the output is left out here]\n"

REFUSED = 126
"""The exit status shells give to what was found but not executed."""

PROBE_SECONDS = 20.0

_CONTROL = re.compile(
    r"""\x1b\][^\x07\x1b\n]*+(?:\x07|\x1b\\)            # a title, a link, the clipboard
      | \x1b[PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)        # other strings for a terminal
      | (?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]              # colours, cursor
      | \x1b[ -/]*+[0-~]                                # the rest of what begins with an escape
      | [\x00-\x08\x0b-\x1f\x7f-\x9f]                   # what no text holds""",
    re.VERBOSE,
)

_PROBE = """
refuse() { echo "$1"; exit 1; }
folder=$1 python=$2; shift 2
for outside; do
    name=${outside%%:*}
    [ "$(readlink "/proc/self/ns/$name")" != "$outside" ] || refuse "commands share the $name namespace of jumar"
done
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || refuse 'commands keep capabilities'
grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status || refuse 'commands can gain privileges'
[ ! -e "$folder" ] || refuse "commands can see $folder"
[ ! -w /usr/bin ] || refuse 'commands can write to /usr/bin'
! (: >> /proc/self/oom_score_adj) 2>/dev/null || refuse 'commands can write to /proc'
"$python" -I -c '' || refuse "$python does not start in the sandbox"
"""


@dataclass(frozen=True, slots=True)
class ConfinedCommands:
    """Runs commands for a model (see `ports.Commands`); made by `confined_commands`, which has tried it."""

    program: Path
    """The bubblewrap that works here."""
    store: Store
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
        if why := _unfit(command):
            return Ran(exit=REFUSED, output=f"jumar: {why}\n")
        async with laid_out(self.store, tree, self.folder / "rooms") as room:
            return await self._in(room, ("/bin/sh", "-c", command), seconds)

    async def probed(self) -> str:
        """Why commands are not confined here, in one sentence; empty if they are."""
        argv = ("/bin/sh", "-c", _PROBE, "sh", str(self.folder), str(self.python), *_namespaces())
        async with laid_out(_Empty(), "", self.folder / "rooms") as room:
            try:
                ran = await self._in(room, argv, PROBE_SECONDS)
            except Infra as fault:
                return str(fault)
        said = ran.output.strip().splitlines()
        return "" if ran.exit == 0 else f"{self.program} does not confine: {said[-1] if said else 'it hangs'}"

    async def _in(self, room: Path, argv: tuple[str, ...], seconds: float) -> Ran:
        kept = {k: v for k, v in self.environ.items() if k in ("LANG", "TZ") or k.startswith("LC_")}
        variables = {"LANG": "C.UTF-8", **kept, "PATH": bwrap.search_path(self.python)}
        before = bwrap.prefix(self.program, room, bwrap.interpreter(self.python), variables)
        envoy = (sys.executable, "-I", "-S", "-B", command_boot.__file__)
        # Its environment can be read in there: it tells nothing of the person but where the run lies.
        invocation = Invocation(argv=envoy, config={"argv": [*before, *argv]}, env={"PATH": bwrap.PATH})
        started, code = anyio.current_time(), None
        # A named file beside the room: a kill leaves it where rooms are cleared away.
        with disk(f"cannot write to {room.parent}"), tempfile.NamedTemporaryFile(dir=room.parent) as output:
            path = Path(output.name)
            confinement = Confinement(room=room, output=path, seconds=seconds, environ=kept)
            async with confined(invocation, confinement) as child:
                while (record := await child.receive()) is not None:
                    match record:
                        case ["end", int(status)]:
                            code = status
            text = await to_thread.run_sync(printed, path)
        if child.ended is Ended.NORMAL:
            return Ran(exit=code, output=text)
        if child.ended in (Ended.TIMEOUT, Ended.CRASH) or anyio.current_time() - started >= seconds:
            return Ran(exit=None, output=text)
        said = text.strip().splitlines()
        raise Infra(f"{self.program} cannot confine a command: {said[-1] if said else child.detail}")


async def confined_commands(store: Store, folder: Path, python: Path, environ: Mapping[str, str]) -> ConfinedCommands:
    """Commands that are confined by the first bubblewrap of this machine that passes a self-test.

    Args:
        store: where the trees lie.
        folder: the run's folder, an absolute path; it must be one that no command can see.
        python: the interpreter that runs the tests, an absolute path.
        environ: LANG, LC_* and TZ are let through.

    Raises:
        BadInput: if none does; nothing is ever run unconfined.
    """
    reasons = []
    for program in bwrap.programs(environ):
        commands = ConfinedCommands(program, store, folder, python, environ)
        reason = await commands.probed()
        if not reason:
            return commands
        reasons.append(reason)
    allow = "allow user namespaces to it, or do without commands of the model"
    raise BadInput(f"commands of a model cannot be confined here ({'; '.join(reasons)}): {allow}")


async def confinable(python: Path, environ: Mapping[str, str]) -> str:
    """Why commands of a model cannot be confined on this machine, in one sentence; empty if they can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            await confined_commands(_Empty(), Path(folder), python, environ)
        except (BadInput, Infra) as reason:
            return str(reason)
    return ""


class _Empty:
    """A store for the self-test, which needs no files."""

    def materialise(self, tree: str, dest: Path) -> None:  # noqa: ARG002  # the protocol's name for it
        dest.mkdir(parents=True)


def _namespaces() -> tuple[str, ...]:
    """The names of our own namespaces, such as `net:[4026531840]`."""
    return tuple(str(Path("/proc/self/ns", name).readlink()) for name in ("user", "mnt", "pid", "net", "ipc", "uts"))


def plain(text: str) -> str:
    """*text* without what only a terminal understands; a carriage return ends a line."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def printed(path: Path) -> str:
    """What the file at *path* says, its middle left out where it is long."""
    half = OUTPUT_BYTES // 2
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if size <= OUTPUT_BYTES:
            return plain(stream.read(OUTPUT_BYTES).decode("utf-8", "replace"))
        head = stream.read(half)
        stream.seek(size - half)
        tail = stream.read(half)
    return OMITTED.join(plain(part.decode("utf-8", "replace")) for part in (head, tail))


def _unfit(command: str) -> str:
    """Why *command* cannot be handed to a shell, or empty."""
    try:
        size = len(command.encode("utf-8"))
    except UnicodeEncodeError:
        return "a command is text that UTF-8 can hold, without lone surrogates"
    if "\0" in command:
        return "a command holds no NUL character"
    return f"a command has at most {COMMAND_BYTES:,} bytes; write a file and run that" if size > COMMAND_BYTES else ""
