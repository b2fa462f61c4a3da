"""Starts `python -m pytest` as a person does, and passes on what its plug-in has written down.

That process has nothing of the channel. Code under test can write down what it likes there: what comes this way may
refuse a green, and proves none.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jumar.child import runner_bridge, start
from jumar.child.plain.plain_plugins import CONFIG, NOTES
from jumar.child.pytest.preparation import CONFIGS, build_common_options, find_configuration, list_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumar.child.channel import Send

OURS = ("TMPDIR", "JUMAR_ROOM")
"""Variables that no shell has. They are not needed where all temporary folders are the process's own."""

PRIVATE = ("HOME", "TMPDIR")
"""Variables that are ours whatever the task says."""

NAMES_FILE = re.compile(r"(?:^|\s)(?:-c|--config-file)")
"""Stands in options of a person that name a file of configuration."""

BEHIND = "import runpy, sys; del sys.path[0]; runpy.run_module('pytest', run_name='__main__', alter_sys=True)"
"""Starts pytest as `pytest` alone does, without the folder where it starts on the path."""

PLUGIN = '''\
"""PYTEST_DONT_REWRITE"""
import sys

sys.path.insert(0, {child!r})
try:
    import start
finally:
    del sys.path[0]
    sys.modules.pop("start", None)


def pytest_addoption(parser, pluginmanager):
    start.load("jumar.child.plain.plain_plugins").register(pluginmanager, __name__, {folder!r})
'''
"""Module that pytest loads because a variable names it. Its name is drawn: no module of the task can have it."""


def main() -> None:
    """Run pytest once, and report."""
    runner_bridge.serve(run_job)


def run_job(config: dict[str, Any], send: Send) -> int:
    """Run pytest as *config* says, and send the records of its plug-in; return the status with which pytest ended."""
    send(["hello", {}])
    name = f"jumar_{os.urandom(8).hex()}"
    room, folder = Path.cwd(), Path(os.environ["TMPDIR"], name)
    folder.mkdir()
    folder.joinpath(f"{name}.py").write_text(PLUGIN.format(child=start.FOLDER, folder=str(folder)), "utf-8")
    env, before = _build_environment(config, folder)
    told = {**config, "room": str(room), "private": str(folder.parent), "before": before}
    folder.joinpath(CONFIG).write_bytes(marshal.dumps(told))
    how = ("-c", BEHIND) if config["renamed"] and not _starts(env) else ("-m", "pytest")
    argv = [sys.executable, *how, *list_arguments(room, config)]
    with read_notes(folder / NOTES) as records:
        done = subprocess.run(argv, env=env, check=False)  # noqa: S603  as above
    status = runner_bridge.build_shell_status(done.returncode)
    usual = next((record[1] for record in records if record[0] == "usual"), ())
    send(*(record for record in records if record[0] != "usual"))
    if usual is not None and status not in usual:
        why = "although no test failed" if usual else "before it had run its tests"
        send(["stopped", f"pytest ended with status {status}, {why}"])
    return status


def _build_environment(config: dict[str, Any], folder: Path) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the environment for pytest, and what it had for those variables that lead to our plug-in and options."""
    # An interpreter that is isolated, as this one, changes what the task says of the locale.
    told = {name: value for name, value in config["env"].items() if name not in PRIVATE}
    env = {name: value for name, value in os.environ.items() if name not in OURS or not config["own_folders"]}
    env.update(told)
    options = shlex.join(_build_options(Path.cwd(), config))
    path, plugins, more = (env.get(name) or "" for name in ("PYTHONPATH", "PYTEST_PLUGINS", "PYTEST_ADDOPTS"))
    ours = {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), path))),
        "PYTEST_PLUGINS": ",".join(filter(None, (folder.name, plugins))),
        "PYTEST_ADDOPTS": f"{more} {options}",
    }
    return {**env, **ours}, {name: env.get(name) for name in ours}


def _build_options(room: Path, config: dict[str, Any]) -> list[str]:
    """Return the options for pytest. No configuration that lies above *room* is taken for its own."""
    named = NAMES_FILE.search(os.environ.get("PYTEST_ADDOPTS", ""))
    above = any((folder / name).is_file() for folder in room.parents for name in CONFIGS)
    misled = not named and above and find_configuration(room, list_arguments(room, config)) == os.devnull
    return [*build_common_options(room), *(["-c", os.devnull] if misled else [])]


def _starts(env: dict[str, str]) -> bool:
    """Return whether pytest starts with the room first on the path, which has modules with names of Python's own."""
    env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "--version"], env=env, check=False, capture_output=True)
    return done.returncode == 0


@contextlib.contextmanager
def read_notes(path: Path) -> Iterator[list[list[Any]]]:
    """Read the records that are written to a new pipe at *path* while the body runs; nobody can change one afterwards.

    Data that is no record ends them.
    """
    records: list[list[Any]] = []
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    with os.fdopen(pipe, "rb") as stream:  # with a buffer: a record may come in pieces
        reader = threading.Thread(target=_read_all, args=(stream, records), daemon=True)
        reader.start()
        yield records
        # What is left in the pipe is read, and nothing is waited for: the last record may have been cut short.
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            os.write(pipe, marshal.dumps([]))  # wakes the reader
        reader.join()


def _read_all(stream: IO[bytes], records: list[list[Any]]) -> None:
    with contextlib.suppress(EOFError, ValueError, TypeError):
        while record := list(marshal.load(stream)):  # noqa: S302  in the room of the code under test, whoever wrote it
            records.append(record)
