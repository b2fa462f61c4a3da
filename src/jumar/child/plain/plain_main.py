"""Starts `python -m pytest` as a person does, and passes on what its plug-in has written down.

That process has nothing of the channel. Code under test can write down what it likes there: what comes this way may
refuse a green, and proves none.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import runner_bridge
from jumar.child.plain.jumar_reports import FILE, FOLDER, NAME, PATH, PLUGINS
from jumar.child.pytest.preparation import build_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumar.child.channel import Send

OURS = ("TMPDIR", "JUMAR_ROOM")
"""Variables that no shell has. They are not needed where all temporary folders are the process's own."""

BEHIND = "import runpy, sys; del sys.path[0]; runpy.run_module('pytest', run_name='__main__', alter_sys=True)"
"""Starts pytest as `pytest` alone does, without the folder where it starts on the path."""


def main() -> None:
    """Run pytest once, and report."""
    runner_bridge.serve(run_job)


def run_job(config: dict[str, Any], send: Send) -> int:
    """Run pytest as *config* says, and send the records of its plug-in; return the status with which pytest ended."""
    room, private = Path.cwd(), Path(os.environ["TMPDIR"])
    send(["hello", {}])
    notes = private / "reports"
    notes.write_bytes(marshal.dumps({**config, "room": str(room), "private": str(private)}))
    how = ("-c", BEHIND) if config["behind"] else ("-m", "pytest")
    argv = [sys.executable, *how, *build_arguments(room, private, config)]
    status = runner_bridge.build_shell_status(
        subprocess.run(argv, env=_build_environment(config, notes), check=False).returncode  # noqa: S603  as above
    )
    usual: Any = ()
    for record in _read(notes):
        if record[0] == "usual":
            usual = record[1]
        else:
            send(record)
    if usual is not None and status not in usual:
        why = "although no test failed" if usual else "before it had run its tests"
        send(["stopped", f"pytest ended with status {status}, {why}"])
    return status


def _build_environment(config: dict[str, Any], notes: Path) -> dict[str, str]:
    """Return the environment for pytest, from which the plug-in takes away again what leads to it."""
    env = {name: value for name, value in os.environ.items() if name not in OURS or not config["own_folders"]}
    for name, more, between in ((PATH, str(FOLDER), os.pathsep), (PLUGINS, NAME, ",")):
        env[name] = between.join((more, env[name])) if name in env else more
    return {**env, FILE: str(notes)}


def _read(notes: Path) -> Iterator[list[Any]]:
    """Yield the records in *notes*; one that is cut off ends them."""
    with notes.open("rb") as stream:
        try:
            while True:
                yield list(marshal.load(stream))  # noqa: S302  in the room of the code under test, whoever wrote it
        except (EOFError, ValueError, TypeError):
            return
