"""Reads hostile text in a confined script: the parent gets records only, and nothing of the text."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import anyio
from anyio import to_thread

from jumar.child import start
from jumar.core.state.verdict import Ended
from jumar.ports import Invocation, Record
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.room import discard
from jumar.workspace.files.safe_paths import explain_disk_faults


class StandaloneScript(NamedTuple):
    """A standalone script and the interpreter that runs it."""

    program: ModuleType
    python: str
    """The interpreter that knows the language of the task; empty is ours."""


async def run_script(
    script: StandaloneScript, config: Mapping[str, object], rooms: Path, confinement: Callable[[Path], Confinement]
) -> tuple[list[Record], str]:
    """Return the records of *script* for *config*, run in an empty room below *rooms*, and why it failed, or nothing.

    Raises:
        Infra: if the machine cannot start a process.
    """
    room = Path(os.path.abspath(rooms)) / secrets.token_hex(4)  # noqa: ASYNC240, PTH100  it reads no disk
    argv = (script.python or sys.executable, "-I", "-S", "-B", *start.build_command(script.program))
    records: list[Record] = []
    try:
        with explain_disk_faults(f"cannot make a room in {rooms}"):
            await to_thread.run_sync(_made, room)
        async with run_confined(Invocation(argv=argv, config=config), confinement(room)) as child:
            while (record := await child.receive()) is not None:
                records.append(record)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard, room)
    odd = next(iter(child.anomalies), "")
    return records, odd or ("" if child.ended is Ended.NORMAL else child.detail)


def _made(room: Path) -> None:
    room.mkdir(parents=True)
