"""Locks a journal: one writer at a time, or any number of readers for a moment."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jumar.errors import BadInput

LOCK = "lock"
"""File in a run's directory: the lock of its writer."""

READERS_SECONDS = 2.0
"""Seconds that a writer waits for those who hold the journal still."""


@contextmanager
def hold_still(folder: Path) -> Iterator[bool]:
    """Prevent writes to the journal in *folder* within the block; False: it is being written, or is missing.

    Any number of readers may hold it at once. One who wants to write waits for them, so hold it for a moment only.
    """
    try:
        fd = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _try_flock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def take_lock(folder: Path) -> int:
    """Return a descriptor of the lock in *folder*, held as its one writer.

    Raises:
        BadInput: if another process writes there.
    """
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    until = time.monotonic() + READERS_SECONDS
    while not _try_flock(fd, fcntl.LOCK_EX):
        # Whoever can share the lock shares it with readers, who are done in a moment: they are waited for, not taken
        # for a writer. A writer shares with nobody and is reported at once.
        if not _try_flock(fd, fcntl.LOCK_SH) or time.monotonic() > until:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip()
            os.close(fd)
            raise BadInput(
                f"another jumar (process {holder or 'unknown'}) is writing to {folder}; wait for it to end"
            ) from None
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(0.002)
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def _try_flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
