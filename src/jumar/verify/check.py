"""A command that must succeed runs like a suite, in a room of its own and supervised. Its status is all it says."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread

from jumar.core.verdict import Ended
from jumar.ports import Checked, Invocation
from jumar.verify import check_boot
from jumar.verify.command import printed
from jumar.verify.launch import Confinement
from jumar.verify.process import confined


async def checked(command: str, room: Path, output: Path, seconds: float, environ: Mapping[str, str]) -> Checked:
    """Whether the shell *command* succeeds in *room* within *seconds*; what it prints goes to *output*."""
    started, code = time.monotonic(), None
    invocation = Invocation(
        argv=(sys.executable, "-I", "-S", "-B", check_boot.__file__), config={"command": command}, env={}
    )
    async with confined(invocation, Confinement(room=room, output=output, seconds=seconds, environ=environ)) as child:
        while (record := await child.receive()) is not None:
            match record:
                case ["end", int(status)]:
                    code = status
    said = await to_thread.run_sync(printed, output)
    ok = child.ended is Ended.NORMAL and code == 0
    why = "" if ok or child.ended is Ended.NORMAL else f"\n{child.detail}"
    return Checked(ok=ok, output=f"{said.rstrip()}{why}", duration_ms=int(1000 * (time.monotonic() - started)))
