"""Makes a folder equal to a tree: equal files stay, others are removed and created anew, never written through."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from hashlib import sha256

import msgspec
from anyio import from_thread

from jumar.workspace.files import safe_paths, scan, trees
from jumar.workspace.files.trees import EntryKind, Folder, Node

Get = Callable[[str], bytes]
"""From a hash to the bytes."""

Skip = Callable[[str], bool]
"""Predicate: a path (a folder's ends with a slash) that is not part of the tree."""

Names = Mapping[str, AbstractSet[str]]
"""From a folder, by its path with a slash at its end, to names in it."""

_USABLE = 0o600
"""Permissions of the owner on every file that is laid out, whatever the replaced file had."""


Clone = Callable[[str, int, int], bool]
"""From a hash, an empty open file and a size to a file that shares its blocks with the object; False: it cannot."""


class Checkout(msgspec.Struct, frozen=True):
    """Makes folders equal to trees. Paths that *skip* names are not read, written or removed, at any depth."""

    get: Get
    skip: Skip
    clone: Clone
    fresh: bool = False
    """True if the folder is new and nobody reads it before it is whole: files are made under their own names."""

    def align(self, folder: int, wanted: Folder, path: str = "", within: Names | None = None) -> None:
        """Make the open *folder*, at *path* with a slash at its end, hold exactly *wanted*, and its skipped files.

        If *within* is given, all names that it does not have, and all that is in them, are known to be right.

        Raises:
            OSError: if the disk refuses.
        """
        for name in safe_paths.list_names(folder) if within is None else within.get(path, ()):
            if within is None or safe_paths.lstat(folder, name) is not None:
                self._clear(folder, name, wanted.get(name), path)
        for name, want in wanted.items():
            if not isinstance(want, dict):
                self._put(folder, name, want)
                continue
            if safe_paths.lstat(folder, name) is None:
                os.mkdir(name, dir_fd=folder)
            with safe_paths.open_inside(folder, name, unlock=True) as inner:
                self.align(inner, want, f"{path}{name}/", within)

    def _clear(self, folder: int, name: str, want: Node | Folder | None, path: str) -> None:
        """Remove *name* if it blocks *want* or is not wanted any more."""
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        if want is None and is_folder:
            self._empty(folder, name, f"{path}{name}/")
        elif want is None:
            if trees.is_leftover(name) or not (trees.is_ignored(name) or self.skip(path + name)):
                safe_paths.remove(folder, name)
        elif is_folder is not isinstance(want, dict):
            # Where a tree knows a file, a folder was made later, and with it all that is in it, ignored or not.
            safe_paths.remove(folder, name)

    def _empty(self, folder: int, name: str, path: str) -> None:
        """Remove the folder *name*, which is in no tree; skipped files in it stay."""
        if not trees.is_leftover(name):
            if trees.is_ignored(name) or self.skip(path):
                return
            with safe_paths.open_inside(folder, name, unlock=True) as inner:
                if safe_paths.lstat(inner, trees.VENV) is not None:
                    return
                if self._holds_skipped(inner, path):
                    self.align(inner, {}, path)
                    return
        safe_paths.remove(folder, name)

    def _holds_skipped(self, folder: int, path: str) -> bool:
        """Check whether the open *folder* holds something to skip, at any depth that a tree may have."""
        if path.count("/") > scan.DEEPEST:
            return False
        for name in safe_paths.list_names(folder):
            if scan.is_skipped(self.skip, folder, name, path + name):
                return True
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                with safe_paths.open_inside(folder, name, unlock=True) as inner:
                    if self._holds_skipped(inner, f"{path}{name}/"):
                        return True
        return False

    def _put(self, folder: int, name: str, node: Node) -> None:
        """Make *name* be *node*, whole or not at all: it is created beside its place and moved over the old entry."""
        with suppress(RuntimeError):  # no thread that waits for it: nobody can cancel
            from_thread.check_cancelled()
        found = safe_paths.lstat(folder, name)
        if found is not None and _equals_file(folder, name, found.st_mode, node):
            return
        data, temporary = self.get(node.sha256), name if self.fresh else safe_paths.make_temporary_name()
        try:
            if node.kind is EntryKind.LINK:
                os.symlink(data, os.fsencode(temporary), dir_fd=folder)
            else:
                self._create(folder, temporary, node, data)
                if found is not None and stat.S_ISREG(found.st_mode):
                    _keep_private(folder, temporary, stat.S_IMODE(found.st_mode), executable=node.executable)
            if not self.fresh:
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            safe_paths.remove(folder, temporary)
            raise

    def _create(self, folder: int, name: str, node: Node, data: bytes) -> None:
        """Create the file *name*: sharing the blocks of the object if possible, else as a copy."""

        def fill(fd: int) -> None:
            if not self.clone(node.sha256, fd, len(data)):
                safe_paths.write_all(fd, data)

        safe_paths.make(folder, name, fill, executable=node.executable)


def _keep_private(folder: int, name: str, bits: int, *, executable: bool) -> None:
    """Keep the file private if it was: the tree decides only whether it may be executed."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        bits = (bits & 0o777) | _USABLE
        os.fchmod(fd, bits | (bits & 0o444) >> 2 if executable else bits & ~0o111)
    finally:
        os.close(fd)


def _equals_file(folder: int, name: str, mode: int, want: Node) -> bool:
    if want.kind is EntryKind.LINK:
        return stat.S_ISLNK(mode) and sha256(safe_paths.link(folder, name)).hexdigest() == want.sha256
    if not stat.S_ISREG(mode):
        return False
    try:
        data, executable = safe_paths.read(folder, name)
    except OSError:
        # Unreadable is not equal; it is made anew, and if the disk is at fault that will say so.
        return False
    return executable == want.executable and sha256(data).hexdigest() == want.sha256
