"""Syncs the journals of many runs of one process together: those that come during a sync share the next one."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import to_thread

MANY = 4
"""Least files that are synced by a sync of their whole file system: what else was written there is synced too."""

SYNCS_WHOLE = frozenset({"ext4", "xfs"})
"""File systems where that makes every file last; of others (FUSE, network disks) not all do it."""

_REPORTS_FAULTS = (5, 8)
"""The Linux from which it reports that a page could not be written."""

SyncFiles = Callable[[Sequence[int]], list[OSError | None]]
"""Syncs open files; the fault of each, or None."""


class _Request:
    """A file to be synced."""

    def __init__(self, fd: int) -> None:
        self.fd, self.done = fd, False
        self.fault: OSError | None = None


class GroupCommit:
    """The syncs of one process. No more than one is under way; whoever comes meanwhile waits for the next."""

    def __init__(self, sync_files: SyncFiles | None = None) -> None:
        self._lock, self._waiting = anyio.Lock(), list[_Request]()
        self._sync_files = sync_files or sync_files_together

    async def sync(self, fd: int) -> None:
        """Sync the open file *fd*; what was written to it before lasts.

        Raises:
            OSError: if the disk refuses.
        """
        mine = _Request(fd)
        self._waiting.append(mine)
        # Whoever gave up in the middle could not tell whether its bytes last.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if not mine.done:
                    due, self._waiting = self._waiting, []
                    faults = await to_thread.run_sync(self._sync_files, [request.fd for request in due])
                    for request, fault in zip(due, faults, strict=True):
                        request.fault, request.done = fault, True
        if mine.fault is not None:
            raise mine.fault


def sync_files_together(files: Sequence[int]) -> list[OSError | None]:
    """Sync the open *files*: many on one file system at once, where that makes them last; the fault of each."""
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


def can_sync_whole(fd: int, mounts: str = "/proc/self/mountinfo") -> bool:
    """Return whether a sync of the file system of *fd* makes all its files last, and reports what did not."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if platform.system() != "Linux" or release is None or tuple(map(int, release.groups())) < _REPORTS_FAULTS:
        return False
    device = os.fstat(fd).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path(mounts).read_text(errors="replace").splitlines()
    except OSError:
        return False
    # Number, parent, device, root, place, options, tags, a dash, type: see proc(5).
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2:3] == [name]}
    return bool(kinds) and kinds <= SYNCS_WHOLE
