"""Syncs the journals of many runs of one process together: those that arrive during a sync share the next one."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from jumar.workspace.files.mounts import MOUNTS, find_file_system

MANY = 4
"""Least files that are synced by a sync of their whole file system: what else was written there is synced too."""

SYNCS_WHOLE = frozenset({"ext4", "xfs"})
"""File systems where that makes every file last; of others (FUSE, network disks) not all do it."""

_REPORTS_FAULTS = (5, 8)
"""The Linux from which it reports that a page could not be written."""

SyncFiles = Callable[[Sequence[int]], list[OSError | None]]
"""Syncs open files; the fault of each, or None."""


class _Batch:
    """Files that are synced together."""

    def __init__(self) -> None:
        self.files: list[int] = []
        self.faults: list[OSError | None] = []
        self.done = anyio.Event()


class GroupCommit:
    """The syncs of one process. At most one is in progress; later calls wait for the next."""

    def __init__(self, sync_files: SyncFiles | None = None) -> None:
        self._sync_files = sync_files or sync_files_together
        self._running: _Batch | None = None
        self._next: _Batch | None = None

    async def sync(self, fd: int) -> None:
        """Sync the open file *fd*: earlier writes to it are on the disk then.

        Raises:
            OSError: if the disk refuses.
        """
        batch = self._next
        first = batch is None
        if batch is None:
            batch = self._next = _Batch()
        place = len(batch.files)
        batch.files.append(fd)
        # Whoever gave up in the middle could not tell whether its bytes last.
        with anyio.CancelScope(shield=True):
            await (self._sync_batch(batch) if first else batch.done.wait())
        if (fault := batch.faults[place]) is not None:
            raise fault

    async def _sync_batch(self, batch: _Batch) -> None:
        """Sync *batch* as soon as the one before it is done."""
        if self._running is not None:
            await self._running.done.wait()
        self._running, self._next = batch, None
        batch.faults = [OSError(errno.EIO, "the sync did not end")] * len(batch.files)
        try:
            batch.faults = await to_thread.run_sync(self._sync_files, batch.files)
        finally:
            batch.done.set()


def sync_files_together(files: Sequence[int]) -> list[OSError | None]:
    """Sync the open *files*, many of one file system at once if that is safe; return the fault of each."""
    whole = len(files) >= MANY and len({os.fstat(fd).st_dev for fd in files}) == 1 and can_sync_whole(files[0])
    if whole and ctypes.CDLL(None).syncfs(files[0]) == 0:
        return [None] * len(files)
    # Where that failed something was not written, of these or of others: each says for itself.
    return [_sync(fd) for fd in files]


def _sync(fd: int) -> OSError | None:
    try:
        os.fsync(fd)
    except OSError as fault:
        return fault
    return None


def can_sync_whole(fd: int, mounts: Path = MOUNTS) -> bool:
    """Return whether a sync of the file system of *fd* makes all its files last, and reports what did not."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if platform.system() != "Linux" or release is None or tuple(map(int, release.groups())) < _REPORTS_FAULTS:
        return False
    return find_file_system(fd, mounts) in SYNCS_WHOLE
