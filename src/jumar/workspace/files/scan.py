"""Reads a folder once, whole: links are kept as texts, and files that could block are refused."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.trees import EntryKind

DEEPEST = 100
"""Folders within folders: each costs a descriptor while it is read."""


class ScannedPath(msgspec.Struct, frozen=True):
    """One thing met on a walk through a folder."""

    path: str
    kind: EntryKind
    data: bytes = b""
    executable: bool = False


class FolderScan:
    """One pass over a folder; it counts what it reads, so that no tree can eat the disk or the memory."""

    def __init__(self, limit_bytes: int, skip: Callable[[str], bool]) -> None:
        self._limit = self._left = limit_bytes
        self._hides = False
        """True if the folder that was left last holds only skipped entries, at any depth."""
        self._skip = skip

    def through(self, folder: int, path: str = "") -> Iterator[ScannedPath]:
        """Yield all that is in *folder* and belongs to a tree, each path beginning with *path*."""
        if path.count("/") >= DEEPEST:
            raise BadInput(f"{path[:60]!r}... is nested more than {DEEPEST} folders deep; no task is, so take it out")
        names = self._names(folder, path)
        self._hides = False
        if path and trees.VENV in names:
            return
        held = shown = False
        for name in names:
            inner = f"{path}/{name}" if path else name
            if is_skipped(self._skip, folder, name, inner):
                # What holds something to be skipped is not empty, and nothing that a tree would speak of.
                held = True
            elif not trees.is_ignored(name):
                for found in self._at(folder, name, inner):
                    held = shown = True
                    yield found
                held |= self._hides
        if path and not held:
            yield ScannedPath(path, EntryKind.DIR)
        self._hides = held and not shown

    def _names(self, folder: int, path: str) -> list[str]:
        try:
            return safe_paths.list_names(folder)
        except OSError as fault:
            raise _unreadable(path or ".", fault) from fault

    def _at(self, folder: int, name: str, path: str) -> Iterator[ScannedPath]:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                yield ScannedPath(path, EntryKind.LINK, safe_paths.link(folder, name))
            elif stat.S_ISREG(mode):
                yield self._file(folder, name, path)
            elif not stat.S_ISDIR(mode):
                raise BadInput(f"{path!r} is neither a file, a folder nor a link; remove it from the task")
        except OSError as fault:
            raise self._refusal(path, fault) from fault
        if stat.S_ISDIR(mode):
            yield from self._below(folder, name, path)

    def _below(self, folder: int, name: str, path: str) -> Iterator[ScannedPath]:
        try:
            inner = os.open(name, safe_paths.FOLDER, dir_fd=folder)
        except OSError as fault:
            raise _unreadable(path, fault) from fault
        try:
            yield from self.through(inner, path)
        finally:
            os.close(inner)

    def _file(self, folder: int, name: str, path: str) -> ScannedPath:
        data, executable = safe_paths.read(folder, name, self._left)
        self._left -= len(data)
        return ScannedPath(path, EntryKind.FILE, data, executable)

    def _refusal(self, path: str, fault: OSError) -> BadInput:
        if fault.errno == errno.EFBIG:
            return BadInput(
                f"{path!r} takes the task past {self._limit} bytes; move large data out of the task's folder"
            )
        return _unreadable(path, fault)


def is_skipped(skip: Callable[[str], bool], folder: int, name: str, path: str) -> bool:
    """Return whether *skip* names *path*, which is *name* in *folder*; a folder's path ends with a slash."""
    found = safe_paths.lstat(folder, name)
    return skip(path + "/" if found is not None and stat.S_ISDIR(found.st_mode) else path)


def _unreadable(path: str, fault: OSError) -> BadInput:
    return BadInput(f"{path!r} cannot be read: {fault.strerror}; make it readable or take it out of the task")
