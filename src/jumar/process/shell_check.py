"""Runs a command that must succeed like a suite, in a room of its own and confined. Only its exit status counts."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType

from anyio import to_thread
from msgspec.structs import replace

from jumar.child import start
from jumar.child.commands import check_main
from jumar.core.state.verdict import Ended
from jumar.errors import BadInput
from jumar.ports import Checked, Invocation
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.workspace.files.disk_faults import explain_disk_faults

NO_ENV: Mapping[str, str] = MappingProxyType({})


def format_command_line(invocation: Invocation) -> str:
    """Return the command line of *invocation* for a shell: the person's own if its config holds one."""
    own = invocation.config.get("argv")
    return shlex.join(map(str, own) if isinstance(own, list) else invocation.argv)


def build_shell_invocation(command: str, *arguments: str) -> Invocation:
    """Return the invocation that runs *command* with a shell, with *arguments* as `$1` and so on."""
    envoy = (sys.executable, "-I", "-S", "-B", *start.build_command(check_main))
    return Invocation(argv=envoy, config={"command": [command, "sh", *arguments]})


async def run_check(command: str, confinement: Confinement, env: Mapping[str, str] = NO_ENV) -> Checked:
    """Check that the shell *command* succeeds; its output goes to the output of *confinement*.

    *env* is added to its environment: where toolchains and their caches lie.

    Raises:
        Infra: if the machine cannot start a process.
    """
    if confinement.output is None:
        raise BadInput("a command that is checked needs a file for what it prints")
    started, code = time.monotonic(), None
    async with run_confined(replace(build_shell_invocation(command), env=env), confinement) as child:
        while (record := await child.receive()) is not None:
            match record:
                case ["end", int(status)]:
                    code = status
    with explain_disk_faults(f"cannot read {confinement.output}"):
        said = await to_thread.run_sync(read_output, confinement.output)
    ok = child.ended is Ended.NORMAL and code == 0
    why = "" if ok or child.ended is Ended.NORMAL else f"\n{child.detail}"
    return Checked(ok=ok, output=f"{said.rstrip()}{why}", duration_ms=int(1000 * (time.monotonic() - started)))
