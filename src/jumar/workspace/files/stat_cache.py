"""Remembers the files of a folder by their stat: a file whose stat is the same is not read again.

An agent must not be able to hide a change behind an equal stat, so an entry counts only if

- its ctime, which no program can set, is older than the clock of the file system when the reading began: a later write
  in the same tick of that clock would else leave no trace;
- nobody had the file open for writing while it was read (a lease was granted): a page that is mapped and written
  already takes further writes without a new ctime;
- the file system shows writes through a mapping in the times of a file at all, which tmpfs does not, and counts a
  mapping among those who have a file open, which an overlay does not.

Everything else is read anew each time.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
from pathlib import Path

from jumar.workspace.files.mounts import MOUNTS, find_file_system
from jumar.workspace.files.trees import Manifest, Node

TRUSTED = frozenset({"ext4", "xfs"})
"""File systems for which all of this was looked up; of other ones every file is read each time."""

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime of a file. Owner and permission bits cannot change without the ctime."""


class StatCache:
    """Nodes of the files of one folder, by path, each with the stat it had when it was read."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[Stamp, Node]] = {}
        self._fresh: dict[str, tuple[Stamp, Node]] = {}
        self._clock = self._device = 0

    def begin(self, folder: int) -> None:
        """Begin to read the open *folder*: files read from now on may be remembered."""
        self._fresh = {}
        self._clock, self._device = read_clock(folder)

    def is_held(self, fd: int) -> bool:
        """Check that nobody can write the file *fd*, open for reading, before it is closed or its stat changes."""
        if not self._clock:
            return False
        try:
            # Whoever opens the file meanwhile waits until it is closed, and we are told by a signal that is ignored.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:  # somebody writes it, it is another user's, or the file system has no leases
            return False
        return True

    def note(self, path: str, found: os.stat_result, node: Node) -> None:
        """Note that the file at *path* was read as *node*, while it was held and its stat was *found*."""
        if found.st_ctime_ns < self._clock and found.st_dev == self._device:
            self._fresh[path] = (stamp(found), node)

    def keep(self, manifest: Manifest) -> None:
        """Remember the noted files that are the same in *manifest*: the tree that the folder has, or will have."""
        self.files |= {path: noted for path, noted in self._fresh.items() if manifest.get(path) == noted[1]}
        self._fresh = {}
        if len(self.files) > 2 * len(manifest):
            self.files = {path: self.files[path] for path in manifest if path in self.files}


def stamp(found: os.stat_result) -> Stamp:
    """Return the stamp of a file whose stat is *found*."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_clock(folder: int, mounts: Path = MOUNTS) -> tuple[int, int]:
    """Return the time of the file system of *folder*, in nanoseconds, and its device; 0 if it is not to be trusted."""
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600, dir_fd=folder)
    except OSError:
        return 0, 0
    try:
        if find_file_system(fd, mounts) not in TRUSTED:
            return 0, 0
        os.write(fd, b"\0")
        os.utime(fd, ns=(0, 0))
        with mmap.mmap(fd, 1) as page:
            page[0] += 1  # read first: a page that was read may then be written without a fault
        found = os.fstat(fd)
    except OSError:
        return 0, 0
    finally:
        os.close(fd)
    return (found.st_ctime_ns, found.st_dev) if found.st_mtime_ns else (0, 0)
