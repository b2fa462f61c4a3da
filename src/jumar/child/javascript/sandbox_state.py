"""Takes the state of everything that code under test can write to, so that a trace of one run is seen before the next.

It sees that something was changed, not what: the kernel notes the time of each change of a file, of its name, its mode
and its attributes, and lets nobody but root set that time.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    State = dict[str, tuple[object, ...]]
    """Path of each file, link and folder -> its number, mode, links, size, and when it was changed."""

QUEUES = ("shm", "sem", "msg")
"""Kinds of System V objects, which no file stands for."""


def read_state(folders: Iterable[str], *, alone: bool) -> State:
    """Return the state of *folders* with all in them; what is mounted in them is left out.

    A sandbox that is *alone* has shared memory of its own, whose state belongs to it.
    """
    state: State = {}
    for folder in folders:
        device = os.lstat(folder).st_dev
        _add(state, folder, device)
    for kind in QUEUES if alone else ():
        with contextlib.suppress(OSError):
            lines = Path("/proc/sysvipc", kind).read_text("ascii").splitlines()
            state[kind] = tuple(line.split()[1] for line in lines)
    return state


def _add(state: State, path: str, device: int) -> None:
    seen = os.lstat(path)
    # Files of one overlay have several devices: what was written since lies in another file system.
    if seen.st_dev != device and not (stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode)):
        return
    kept = (seen.st_ino, seen.st_mode, seen.st_nlink, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    state[path] = kept
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  walked thousands of times
        for entry in os.scandir(path):
            _add(state, entry.path, device)


def find_difference(before: State, after: State) -> str:
    """Return the first path whose state differs; empty if none does."""
    return min((path for path in before.keys() | after.keys() if before.get(path) != after.get(path)), default="")


def empty_folder(folder: str) -> None:
    """Remove all that is in *folder*, which is no link; what cannot be removed stays."""
    if os.path.islink(folder):  # noqa: PTH114  as above
        return
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)  # noqa: PTH101  as above
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                empty_folder(entry.path)
                with contextlib.suppress(OSError):
                    os.rmdir(entry.path)  # noqa: PTH106
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108
