"""Leases on a store. They protect newly stored objects from a sweep that runs at the same moment.

A writer has a lease from before its first object on, for as long as it lives: a file that it holds locked. A sweep
keeps every object that is as new as the oldest lease that somebody still holds.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

SHARED = ".objects"
"""The store of all runs in a folder. A store of any other name has one writer, and needs no lease."""

LEASES, LOCK, PARTS = "leases", "lock", "tmp"
"""In a store: who uses it, what a batch and a sweep lock against each other, what is not yet named."""


class Lease:
    """The lease of one writer. It begins with the first `take` and ends with the process or the object."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ended: Callable[[], object] = int
        self.name = "own"
        """Of the file; its parts in `tmp/` begin with it."""

    def take(self) -> None:
        """Take the lease: from now on no object is swept.

        Raises:
            OSError: if the disk refuses.
        """
        if self.name != "own":
            return
        if self._root.name != SHARED:
            self._root.mkdir(parents=True, exist_ok=True)
            return
        name = uuid4().hex
        path = self._root / LEASES / name
        fd = -1
        while fd < 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            with (
                suppress(FileNotFoundError),
                self.hold_off_sweep(),
            ):  # the whole store may be discarded until it is locked
                fd = open_locked(path, fcntl.LOCK_EX)
        self.name = name
        self._ended = weakref.finalize(self, _release, path, fd, os.getpid())

    def end(self) -> None:
        """End the lease: objects that were stored and are in no journal may be swept."""
        self._ended()

    @contextmanager
    def hold_off_sweep(self) -> Iterator[None]:
        """Prevent any sweep within the block: an object found in it stays."""
        if self._root.name != SHARED:
            yield
            return
        fd = open_locked(self._root / LOCK, fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(fd)


@contextmanager
def lock_for_sweep(root: Path) -> Iterator[None]:
    """Prevent all storing in *root* within the block, so keep it short."""
    fd = open_locked(root / LOCK, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def list_held_leases(root: Path) -> dict[str, int]:
    """Return the start of each lease that is held, by name, in nanoseconds by the file system's clock.

    Those of processes that were killed are removed.
    """
    found: dict[str, int] = {}
    with suppress(FileNotFoundError):
        for path in (root / LEASES).iterdir():
            if (began := _read_start(path)) is not None:
                found[path.name] = began
    return found


def _read_start(path: Path) -> int | None:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)  # under its lock: who is about to lock it will see that it is gone
    except BlockingIOError:
        return os.fstat(fd).st_mtime_ns
    else:
        return None
    finally:
        os.close(fd)


def open_locked(path: Path, kind: int) -> int:
    """Return a descriptor of the file *path*, created if missing, that is locked and still has that name."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, kind)
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _release(path: Path, fd: int, owner: int) -> None:
    if os.getpid() == owner:  # a fork ends, and its parent goes on
        with suppress(OSError):
            path.unlink()
        os.close(fd)
