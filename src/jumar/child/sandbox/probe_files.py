"""Probes of files: each tries something bad on a decoy, and says how it went; what a decoy can tell is asked of it.

Runs in the sandbox that is tested, loaded by path by `probe_main.py`; standard library only. A probe gets the aims
(see `jumar.sandbox.probes.decoys`) and returns evidence that it succeeded, or nothing, or raises an OSError.
"""

from __future__ import annotations

# ruff: noqa: PTH101, PTH108, PTH116, PTH118, PTH123, PTH208
import contextlib
import os
import stat
from typing import Any

NEEDLESS = ("/etc/shadow", "/etc/fstab", "/etc/machine-id", "/var/log")
"""A decoy can lie in a folder that is covered, as /tmp is; the machine as a whole is not there in S3 alone."""

Aims = dict[str, Any]
"""Paths, numbers of processes, the token."""


def write_room(aims: Aims) -> str:
    """Probe: the one thing that is meant to be possible."""
    return _written(os.path.join(aims["room"], "probe"), aims)


def write_home(aims: Aims) -> str:
    """Probe: a new file in the person's home."""
    return _written(os.path.join(aims["home"], "probe"), aims)


def write_run(aims: Aims) -> str:
    """Probe: a line in the journal of a run."""
    return _written(aims["journal"], aims, "a")


def write_programs(aims: Aims) -> str:
    """Probe: a new file in /usr."""
    return _written(os.path.join("/usr", aims["name"]), aims)


def write_settings(aims: Aims) -> str:
    """Probe: a new file in /etc."""
    return _written(os.path.join("/etc", aims["name"]), aims)


def write_jumar(aims: Aims) -> str:
    """Probe: jumar's own code, opened for writing; nothing is written."""
    with open(aims["code"], "ab"):
        return str(aims["code"])


def write_tests(aims: Aims) -> str:
    """Probe: tests that may only be read."""
    return _written(aims["tests"], aims, "a")


def write_git(aims: Aims) -> str:
    """Probe: the configuration of a repository that may only be read."""
    return _written(aims["git"], aims, "a")


def truncate_outside(aims: Aims) -> str:
    """Probe: empty a file without opening it."""
    os.truncate(aims["truncated"], 0)
    return str(aims["truncated"])


def remove_outside(aims: Aims) -> str:
    """Probe: remove a file outside the sandbox."""
    os.unlink(aims["removed"])
    return str(aims["removed"])


def link_outside(aims: Aims) -> str:
    """Probe: a second name, in the room, for a file outside: whoever follows it there changes both."""
    os.link(aims["secret"], os.path.join(aims["room"], "linked"))
    return str(aims["secret"])


def change_modes(aims: Aims) -> str:
    """Change who may open a file."""
    os.chmod(aims["moded"], 0o640)
    return str(aims["moded"])


def see_files(aims: Aims) -> str:
    """Look for a journal and its length, that very file, and for files of the machine that no program needs."""
    with contextlib.suppress(OSError):
        if os.stat(aims["journal"]).st_ino == aims["journal_number"]:
            return str(aims["journal"])
    return next(filter(os.path.lexists, NEEDLESS), "")


def read_home(aims: Aims) -> str:
    """Probe: a key in the person's home."""
    return _read(aims["secret"], aims)


def list_home(aims: Aims) -> str:
    """List the files in the person's home."""
    return str(aims["home"]) if "jumar-decoy" in os.listdir(aims["home"]) else ""


def read_run(aims: Aims) -> str:
    """Probe: the held-out tests of a run."""
    return _read(aims["hidden"], aims)


def read_other_root(aims: Aims) -> str:
    """Probe: a key in the person's home, by way of what another process has as its root."""
    return _read(f"/proc/{aims['decoy']}/root{aims['secret']}", aims)


def read_disk(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: the bytes of a disk, beneath every file."""
    for name in os.listdir("/dev"):
        path = os.path.join("/dev", name)
        try:
            if stat.S_ISBLK(os.lstat(path).st_mode):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                return path
        except OSError:
            continue
    return ""


def read_shared_memory(aims: Aims) -> str:
    """Probe: a file in /dev/shm, where processes of one user share memory."""
    return _read(aims["shared"], aims)


def write_terminal(aims: Aims) -> str:
    """Probe: another terminal, by its path: what is written there may make it do something."""
    handle = os.open(aims["terminal_path"], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    os.write(handle, aims["token"].encode())
    os.close(handle)
    return str(aims["terminal_path"])


def _written(path: str, aims: Aims, mode: str = "x") -> str:
    with open(path, mode, encoding="utf-8") as file:
        file.write(aims["token"])
    return path


def _read(path: str, aims: Aims) -> str:
    with open(path, encoding="utf-8") as file:
        return path if aims["token"] in file.read() else ""


PROBES = (
    write_room, write_home, write_run, write_programs, write_settings, write_jumar, write_tests, write_git,
    truncate_outside, remove_outside, link_outside, change_modes, see_files, read_home, list_home, read_run,
    read_other_root, read_disk, read_shared_memory, write_terminal,
)  # fmt: skip
