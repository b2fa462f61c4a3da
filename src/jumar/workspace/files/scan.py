"""Reads a folder once, whole: links are kept as texts, and files that could block are refused."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from operator import attrgetter

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.stat_cache import StatCache
from jumar.workspace.files.trees import EMPTY, EntryKind, Node

DEEPEST = 100
"""Folders within folders: each costs a descriptor while it is read."""

_NAME = attrgetter("name")

Put = Callable[[bytes], str]
"""From bytes to their hash; it may store them. A fault of that is `Infra`, and none of what is read."""


class FolderScan:
    """One pass over a folder; it counts what it reads, so that no tree can fill the disk or the memory."""

    def __init__(self, limit_bytes: int, skip: Callable[[str], bool], put: Put, cache: StatCache | None = None) -> None:
        self.manifest: dict[str, Node] = {}
        """All that belongs to a tree."""
        self.hidden: list[str] = []
        """Folders and files that belong to no tree and may stand in the way of one: environments, leftovers."""
        self._limit = self._left = limit_bytes
        self._skip, self._put, self._cache = skip, put, cache or StatCache()
        self._caches = cache is not None

    def read(self, folder: int) -> dict[str, Node]:
        """Read the open *folder*, and return its manifest. What somebody deletes meanwhile is left out.

        Raises:
            BadInput: if something in it cannot be read, is neither file, folder nor link, or it all weighs too much.
        """
        if self._caches:
            self._cache.begin(folder)
        self._scan_folder(folder, "", 0)
        return self.manifest

    def _scan_folder(self, folder: int, path: str, depth: int) -> tuple[bool, bool]:
        """Read *folder*, at *path* with a slash at its end; return whether it holds anything, and any of a tree."""
        entries = _list_entries(folder, path, depth)
        if path and trees.VENV in map(_NAME, entries):
            self.hidden.append(path[:-1])
            return False, False
        held = shown = False
        known, manifest = self._cache.files, self.manifest
        for entry in entries:
            inner = path + entry.name
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as fault:
                raise self._build_refusal(inner, fault) from fault
            seen = known.get(inner)
            if seen and seen[0] == (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns):
                manifest[inner] = seen[1]
                self._left -= found.st_size
                held = shown = True
            elif self._skip(inner + "/" if stat.S_ISDIR(found.st_mode) else inner):
                # What holds something to be skipped is not empty, and nothing that a tree would speak of.
                held = True
            elif not trees.is_ignored(entry.name):
                below = self._scan_entry(folder, entry.name, inner, depth)
                held, shown = held or below[0], shown or below[1]
            elif trees.is_leftover(entry.name):
                self.hidden.append(inner)
        if path and not held:
            manifest[path[:-1]] = EMPTY
            return True, True
        return held, shown

    def _scan_entry(self, folder: int, name: str, path: str, depth: int) -> tuple[bool, bool]:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self.manifest[path] = Node(EntryKind.LINK, self._put(safe_paths.link(folder, name)))
            elif stat.S_ISREG(mode):
                self._scan_file(folder, name, path)
            elif stat.S_ISDIR(mode):
                inner = os.open(name, safe_paths.FOLDER, dir_fd=folder)
            else:
                raise BadInput(f"{path!r} is neither a file, a folder nor a link; remove it from the task")
        except FileNotFoundError:
            return False, False
        except OSError as fault:
            raise self._build_refusal(path, fault) from fault
        if not stat.S_ISDIR(mode):
            return True, True
        try:
            return self._scan_folder(inner, f"{path}/", depth + 1)
        finally:
            os.close(inner)

    def _scan_file(self, folder: int, name: str, path: str) -> None:
        with safe_paths.open_file(folder, name) as fd:
            held = self._cache.is_held(fd)
            data, found = safe_paths.read_whole(fd, self._left)
        self._left -= len(data)
        self.manifest[path] = node = Node(EntryKind.FILE, self._put(data), bool(found.st_mode & stat.S_IXUSR))
        if held and found.st_size == len(data):
            self._cache.note(path, found, node)

    def _build_refusal(self, path: str, fault: OSError) -> BadInput:
        if fault.errno == errno.EFBIG:
            return BadInput(
                f"{path!r} takes the task past {self._limit} bytes; move large data out of the task's folder"
            )
        return _refuse_unreadable(path, fault)


def _list_entries(folder: int, path: str, depth: int) -> list[os.DirEntry[str]]:
    """Return the entries of *folder*, sorted by name."""
    if depth > DEEPEST:
        raise BadInput(f"{path[:60]!r}... is nested more than {DEEPEST} folders deep; no task is, so take it out")
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=_NAME)
    except OSError as fault:
        raise _refuse_unreadable(path.rstrip("/") or ".", fault) from fault


def is_skipped(skip: Callable[[str], bool], folder: int, name: str, path: str) -> bool:
    """Return whether *skip* names *path*, which is *name* in *folder*; a folder's path ends with a slash."""
    found = safe_paths.lstat(folder, name)
    return skip(path + "/" if found is not None and stat.S_ISDIR(found.st_mode) else path)


def _refuse_unreadable(path: str, fault: OSError) -> BadInput:
    return BadInput(f"{path!r} cannot be read: {fault.strerror}; make it readable or take it out of the task")
