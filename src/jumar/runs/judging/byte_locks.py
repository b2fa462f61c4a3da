"""Locks single bytes of a file for processes and tasks: the kernel releases the locks of a process that dies."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from jumar.workspace.files.disk_faults import explain_disk_faults

POLL_SECONDS = 0.02
"""Interval at which a lock is tried again: another process that lets go of it tells nobody."""

_FLOCK = struct.Struct("hhqqi")
"""Type, whence, start, length and process of a lock. Format: `struct flock`, fcntl_locking(2)."""


@asynccontextmanager
async def hold_byte(path: Path, places: Sequence[int]) -> AsyncIterator[None]:
    """Hold one of the bytes *places* of the file *path*, which is created if missing; wait until one is free.

    Raises:
        Infra: if the file cannot be opened.
    """
    with explain_disk_faults(f"cannot open {path}"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while not any(_try_lock(fd, place) for place in places):  # noqa: ASYNC110  see POLL_SECONDS
            await anyio.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int, place: int) -> bool:
    """Lock byte *place* of the open file *fd* for its description; return False if another one holds it."""
    # An open file description lock: unlike those of POSIX, two tasks of one process exclude each other, too.
    lock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock)
    except (BlockingIOError, PermissionError):
        return False
    return True
