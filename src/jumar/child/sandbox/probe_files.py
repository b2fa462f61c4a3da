"""Probes of files: each tries something bad on a decoy, and says how it went; what a decoy can tell is asked of it.

A probe gets the aims (see `jumar.sandbox.probes.decoys`) and returns evidence that it succeeded, or nothing, or raises
an OSError. `jumar.sandbox.probes.catalogue` says what each of them would show.
"""

from __future__ import annotations

# ruff: noqa: PTH101, PTH108, PTH116, PTH118, PTH123, PTH208
import contextlib
import os
import stat
from collections.abc import Callable
from functools import partial
from typing import Any

NEEDLESS = ("/etc/shadow", "/etc/fstab", "/etc/machine-id", "/var/log")
"""A decoy can lie in a folder that is covered, as /tmp is; the machine as a whole is not there in S3 alone."""

Aims = dict[str, Any]
"""Paths, numbers of processes, the token."""

Probe = Callable[[Aims], str]


def name_probes(*probes: Any) -> dict[str, Probe]:
    """Return *probes* by the names of their functions."""
    return {probe.__name__: probe for probe in probes}


def write(place: str, mode: str, aims: Aims) -> str:
    """Write the token to a file, in *mode*; *place* is a path that names aims."""
    path = place.format_map(aims)
    with open(path, mode, encoding="utf-8") as file:
        file.write(aims["token"])
    return path


def read(place: str, aims: Aims) -> str:
    """Read the token in a file."""
    path = place.format_map(aims)
    with open(path, encoding="utf-8") as file:
        return path if aims["token"] in file.read() else ""


def write_jumar(aims: Aims) -> str:
    """Open jumar's own code for writing; nothing is written."""
    with open(aims["code"], "ab"):
        return str(aims["code"])


def truncate_outside(aims: Aims) -> str:
    """Empty a file without opening it."""
    os.truncate(aims["truncated"], 0)
    return str(aims["truncated"])


def remove_outside(aims: Aims) -> str:
    """Remove a file outside the sandbox."""
    os.unlink(aims["removed"])
    return str(aims["removed"])


def link_outside(aims: Aims) -> str:
    """Give a file outside a second name in the room: whoever follows it there changes both."""
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


def list_home(aims: Aims) -> str:
    """List the files in the person's home."""
    return str(aims["home"]) if "jumar-decoy" in os.listdir(aims["home"]) else ""


def read_disk(_: Aims) -> str:
    """Open a disk, beneath every file."""
    for name in os.listdir("/dev"):
        path = os.path.join("/dev", name)
        try:
            if stat.S_ISBLK(os.lstat(path).st_mode):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                return path
        except OSError:
            continue
    return ""


def write_terminal(aims: Aims) -> str:
    """Write to another terminal, by its path: what is written there may make it do something."""
    handle = os.open(aims["terminal_path"], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    os.write(handle, aims["token"].encode())
    os.close(handle)
    return str(aims["terminal_path"])


ALONE = name_probes(
    write_jumar, truncate_outside, remove_outside, link_outside, change_modes, see_files, list_home, read_disk,
    write_terminal,
)  # fmt: skip

PROBES: dict[str, Probe] = {
    **ALONE,
    "write_room": partial(write, "{room}/probe", "x"),
    "write_home": partial(write, "{home}/probe", "x"),
    "write_run": partial(write, "{journal}", "a"),
    "write_programs": partial(write, "/usr/{name}", "x"),
    "write_settings": partial(write, "/etc/{name}", "x"),
    "write_tests": partial(write, "{tests}", "a"),
    "write_git": partial(write, "{git}", "a"),
    "read_home": partial(read, "{secret}"),
    "read_run": partial(read, "{hidden}"),
    "read_other_root": partial(read, "/proc/{decoy}/root{secret}"),
    "read_shared_memory": partial(read, "{shared}"),
}
