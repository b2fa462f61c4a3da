"""Tries a runner's toolchain in a sandbox, so that `jumar doctor` can name the files it cannot reach."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

import anyio

from jumar.errors import BadInput, Infra
from jumar.ports import Sandbox, Surroundings
from jumar.process.launch import Confinement
from jumar.process.sandbox_check import find_bubblewrap
from jumar.process.shell_check import run_check
from jumar.sandbox import landlock
from jumar.sandbox.landlock import Landlocked
from jumar.sandbox.request import Reach
from jumar.sandbox.unconfined import Unconfined

PROBE_SECONDS = 60.0

LINES = 2
"""Number of last lines of a failed probe that are reported."""


def check_toolchain(around: Surroundings, environ: Mapping[str, str]) -> str:
    """Return why the toolchain of *around* does not work in this machine's sandbox, and the fix; empty: it works."""
    if not around.probe:
        return ""
    with tempfile.TemporaryDirectory(prefix="jumar-doctor-") as folder:
        Path(folder).chmod(0o755)
        try:
            return anyio.run(_probe, around, Path(folder), environ)
        except (BadInput, Infra, OSError) as fault:
            return f"it could not be tried in a sandbox ({fault}): see the lines on sandboxes"


async def _probe(around: Surroundings, folder: Path, environ: Mapping[str, str]) -> str:
    sandbox, room = await _choose_untested(folder, environ), folder / "room"
    room.mkdir(mode=0o700)
    reach = Reach(readable=around.readable, own=around.own, barred=around.barred)
    confinement = Confinement(
        room=room, output=folder / "output", seconds=PROBE_SECONDS, environ=environ, sandbox=sandbox, reach=reach
    )
    done = await run_check(f"exec {shlex.join(around.probe)}", confinement, around.env)
    if done.ok:
        return ""
    said = " ".join(done.output.strip().splitlines()[-LINES:]).replace(": ", " - ")
    return (
        f"`{shlex.join(around.probe)}` fails in sandbox {sandbox.tier} ({said}): "
        "make it work in a shell; where it does, put the toolchain's own bin folder first on PATH"
    )


_CHOSEN: dict[tuple[str, str], Sandbox] = {}
"""PATH and the folder of temporary folders -> the sandbox, which is found once for all toolchains of a command."""


async def _choose_untested(place: Path, environ: Mapping[str, str]) -> Sandbox:
    """Return the strongest sandbox that is available here without a self-test."""
    key = environ.get("PATH", ""), str(place.parent)
    if key not in _CHOSEN:
        try:
            _CHOSEN[key] = await find_bubblewrap(place, environ)
        except BadInput:
            _CHOSEN[key] = Unconfined() if landlock.explain_missing() else Landlocked()
    return _CHOSEN[key]
