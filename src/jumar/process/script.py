"""Reads hostile text in a confined script: the parent gets records only, and nothing of the text."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from jumar.child import start
from jumar.core.state.verdict import Ended
from jumar.ports import Invocation, Record
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement, Role, WarmStart
from jumar.process.room import discard
from jumar.workspace.files.disk_faults import explain_disk_faults


class ScriptStart(NamedTuple):
    """The way in which a script is started, or forked."""

    argv: tuple[str, ...] = (sys.executable, "-I", "-S", "-B")
    """The interpreter and its options."""
    env: Mapping[str, str] = {}
    warm: WarmStart | None = None
    """Forks it if it can be forked; None: it is started."""
    role: Role = Role.CANDIDATE

    @classmethod
    def by(cls, python: str) -> ScriptStart:
        """Return a start by the interpreter *python*; empty is jumar's own."""
        return cls((python or sys.executable, "-I", "-S", "-B"))

    def build_invocation(self, program: str, config: Mapping[str, object]) -> Invocation:
        """Return the invocation of *program*."""
        return Invocation(argv=(*self.argv, *start.build_command(program)), config=config, env=self.env)

    def confine(self, confinement: Confinement) -> Confinement:
        """Return *confinement* for a process that is started in this way."""
        return replace(confinement, warm=self.warm or confinement.warm, role=self.role)


class StandaloneScript(NamedTuple):
    """A standalone script and the way in which it is started."""

    program: str
    started: ScriptStart


async def run_script(
    script: StandaloneScript, config: Mapping[str, object], rooms: Path, confinement: Callable[[Path], Confinement]
) -> tuple[list[Record], str]:
    """Return the records of *script* for *config*, run in an empty room below *rooms*, and why it failed, or nothing.

    Raises:
        Infra: if the machine cannot start a process.
    """
    room = Path(os.path.abspath(rooms)) / secrets.token_hex(4)  # noqa: ASYNC240, PTH100  it reads no disk
    invocation = script.started.build_invocation(script.program, config)
    records: list[Record] = []
    try:
        with explain_disk_faults(f"cannot make a room in {rooms}"):
            await to_thread.run_sync(_make_room, room)
        async with run_confined(invocation, script.started.confine(confinement(room))) as child:
            while (record := await child.receive()) is not None:
                records.append(record)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard, room)
    odd = next(iter(child.anomalies), "")
    return records, odd or ("" if child.ended is Ended.NORMAL else child.detail)


def _make_room(room: Path) -> None:
    room.mkdir(parents=True)
