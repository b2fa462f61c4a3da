"""The folder an agent works in: always one known tree, which can be laid out again from the objects."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.checkout import Skip
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.restore_modes import unlock
from jumar.workspace.files.scan import FolderScan
from jumar.workspace.files.special_files import remove_special_files
from jumar.workspace.files.stat_cache import StatCache
from jumar.workspace.files.trees import EntryKind, Manifest, Node
from jumar.workspace.store.object_store import Store


class OutsideWorkspace(ValueError):  # noqa: N818  it is an answer, not an error
    """Raised if a write would change something outside: a link leads out, or a file has a second name."""


class Workspace:
    """A folder and the tree it holds. Changes that did not come through `write` are seen by `capture` alone.

    What *skip* names (folders with a slash at their end) is in the folder and in no tree: it is never read, written or
    removed. That is how a person's own repository can be one: what git ignores there is theirs.
    """

    def __init__(self, folder: Path, store: Store, skip: Skip = lambda _: False) -> None:
        self.folder, self._store, self._skip = folder, store, skip
        self._tree = ""
        self._manifest: Manifest | None = None
        self.cache = StatCache()
        """Files that were read before and need not be read again."""

    @property
    def store(self) -> Store:
        """Return the store of its trees and their bytes."""
        return self._store

    @property
    def tree(self) -> str:
        """Hash of the tree in the folder, which is read if the tree is not known yet."""
        return self._tree or self.capture()

    def capture(self) -> str:
        """Read the whole folder and store its tree; return the hash.

        Raises:
            BadInput: if something in it cannot be kept, or the folder was replaced by a link.
        """
        if self.folder.is_symlink():
            raise BadInput(f"{self.folder} is a link now: what it leads to is no workspace; take it away")
        try:
            tree = self._store.capture(self.folder, skip=self._skip, cache=self.cache)
        except BadInput:
            if not unlock(self.folder, self._skip):
                raise
            tree = self._store.capture(self.folder, skip=self._skip, cache=self.cache)
        if tree != self._tree:
            self._tree, self._manifest = tree, None
        return tree

    def remove_special_files(self) -> tuple[str, ...]:
        """Remove pipes, sockets and devices, which no tree can hold; return the paths.

        Raises:
            Infra: if the disk refuses.
        """
        if self.folder.is_symlink() or not self.folder.is_dir():
            return ()
        with explain_disk_faults(f"cannot clear {self.folder}"):
            return remove_special_files(self.folder, self._skip)

    def reset(self, tree: str) -> None:
        """Make the folder equal to *tree*, byte for byte: new, deleted, binary, links, empty files and folders, bits.

        What is never part of a tree (caches, histories, virtual environments) stays where its folder stays. A link or a
        file that took the place of the folder itself goes; where the link leads, nothing is touched.

        Raises:
            Infra: if the tree is not whole or the disk refuses; the folder may then be half laid out.
        """
        manifest = self._store.manifest(tree)
        self._tree = ""
        with explain_disk_faults(f"cannot lay out a tree in {self.folder}"):
            if self.folder.is_symlink() or self.folder.is_file():
                self.folder.unlink()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._store.align(self.folder, manifest, self._skip, self._scan_for(manifest))
        self._tree, self._manifest = tree, manifest

    def take_back(self, tree: str) -> None:
        """Make the folder equal to *tree* at the paths where the known tree differs; only those are read.

        What somebody else changed meanwhile stays, for `capture` and `reset` to find.

        Raises:
            Infra: as `reset`.
        """
        if not self._tree:
            self.reset(tree)
            return
        now, manifest = self._get_manifest(), self._store.manifest(tree)
        self._tree = ""
        try:
            self._store.align(self.folder, manifest, self._skip, now)
        except (OSError, BadInput):  # something else stands in the way now
            self.reset(tree)
        self._tree, self._manifest = tree, manifest

    def _scan_for(self, wanted: Manifest) -> Manifest | None:
        """Return the manifest of the folder, which becomes *wanted*; None: it holds what no tree can, or hides some."""
        scan = FolderScan(self._store.limit_bytes, self._skip, lambda data: sha256(data).hexdigest(), self.cache)
        try:
            with safe_paths.open_root(self.folder) as top:
                now = scan.read(top)
        except BadInput:
            return None
        self.cache.keep(wanted)
        beneath = tuple(f"{folder}/" for folder in scan.hidden)
        hides = any(trees.is_leftover(path.rpartition("/")[2]) for path in scan.hidden)
        return None if hides or (beneath and any(path.startswith(beneath) for path in wanted)) else now

    def write(self, path: str, data: bytes | None) -> tuple[str, str]:
        """Write *data* to *path*, or delete it (None); return the hashes before and after, empty for a missing file.

        The bytes and the new tree are kept before the folder is touched. A file keeps its executable bit.

        Raises:
            OutsideWorkspace: if a link on the way leads out of the folder, or the file has a second name elsewhere.
            ValueError: if *path* leads through or to a link or a folder, or could be part of no tree.
            Infra: if the disk refuses.
        """
        safe_paths.split_path(path)
        places = (path, *(f"{folder}/" for folder in trees.list_parents(path)))
        if trees.is_ignored(path) or any(map(self._skip, places)):
            raise ValueError(f"{path!r} is never part of a tree: histories, caches and what git ignores are left out")
        manifest = self._get_manifest()
        with (
            explain_disk_faults(f"cannot write {path!r} in {self.folder}"),
            safe_paths.open_root(self.folder) as top,
        ):
            try:
                before, node = _read_present(top, path)
            except OutsideWorkspace:
                raise
            except ValueError as refused:
                raise self._refuse_outside(path, refused) from refused
            if data is not None and node is not None and node.kind is EntryKind.LINK:
                named = ValueError(f"{path!r} is a link: write to the file it names, or delete the link first")
                raise self._refuse_outside(path, named)
            after = (
                None if data is None else Node(EntryKind.FILE, sha256(data).hexdigest(), bool(node and node.executable))
            )
            if after != node or after != manifest.get(path):
                manifest = trees.put(manifest, path, after)
                tree = self._store.keep(manifest, *(content for content in (before, data) if content is not None))
                self._tree = ""
                _replace(top, path, data, after)
                self._tree, self._manifest = tree, manifest
        return node.sha256 if node else "", after.sha256 if after else ""

    def _refuse_outside(self, path: str, refused: ValueError) -> ValueError:
        """Return *refused*, or that *path* leads outside. It only words a refusal that was made already."""
        try:
            away = not (self.folder / path).resolve().is_relative_to(self.folder.resolve())
        except (OSError, RuntimeError):  # a link that leads to itself
            away = False
        return OutsideWorkspace(f"{path!r} leads outside the workspace by a link") if away else refused

    def changed(self, since: str) -> tuple[str, ...]:
        """Return the paths at which the folder's tree differs from the tree *since*, sorted."""
        return trees.find_differences(self._store.manifest(since), self._get_manifest())

    def files(self, matches: Callable[[str], bool]) -> dict[str, bytes]:
        """Return the regular files of the tree whose path *matches*, with their bytes."""
        wanted = {p: n for p, n in sorted(self._get_manifest().items()) if n.kind is EntryKind.FILE and matches(p)}
        return {path: self._store.get(node.sha256) for path, node in wanted.items()}

    def file(self, path: str) -> bytes | None:
        """Return the bytes of the regular file *path* of the tree, or None if there is none."""
        node = self._get_manifest().get(path)
        return self._store.get(node.sha256) if node is not None and node.kind is EntryKind.FILE else None

    def paths(self) -> tuple[str, ...]:
        """Return the names of the tree's regular files, sorted; no bytes are read."""
        return tuple(sorted(p for p, n in self._get_manifest().items() if n.kind is EntryKind.FILE))

    def _get_manifest(self) -> Manifest:
        tree = self.tree
        if self._manifest is None:
            self._manifest = self._store.manifest(tree)
        return self._manifest


def _read_present(top: int, path: str) -> tuple[bytes | None, Node | None]:
    """Return what a write to *path* replaces: the bytes (of a link, its text) and the node, or None."""

    def refuse_environment(folder: int) -> None:
        if safe_paths.lstat(folder, trees.VENV) is not None:
            raise ValueError(f"{path!r} lies in a virtual environment, which is never part of a tree")

    try:
        with safe_paths.open_parent(top, path, unlock=True, enter=refuse_environment) as (folder, name):
            return _read_entry(folder, name, path)
    except FileNotFoundError:
        return None, None
    except NotADirectoryError as fault:
        raise ValueError(f"{path!r} leads through a link or a file: only real folders are entered") from fault


def _read_entry(folder: int, name: str, path: str) -> tuple[bytes | None, Node | None]:
    """Return the bytes and the node of *name* in *folder*, at *path*; see `_read_present`."""
    found = safe_paths.lstat(folder, name)
    if found is None:
        return None, None
    if stat.S_ISLNK(found.st_mode):
        text = safe_paths.link(folder, name)
        return text, Node(EntryKind.LINK, sha256(text).hexdigest())
    if stat.S_ISREG(found.st_mode):
        if found.st_nlink != 1:
            raise OutsideWorkspace(f"{path!r} has a second name (a hard link), which may lie outside the workspace")
        data, executable = safe_paths.read(folder, name)
        return data, Node(EntryKind.FILE, sha256(data).hexdigest(), executable)
    raise ValueError(f"{path!r} is no file: it cannot be written or deleted as one")


def _replace(top: int, path: str, data: bytes | None, node: Node | None) -> None:
    # The old file is replaced, not truncated: another name of it (a hard link) keeps its bytes.
    with safe_paths.open_parent(top, path, create=data is not None, unlock=True) as (folder, name):
        if data is None:
            safe_paths.remove(folder, name)
            return
        temporary = safe_paths.make_temporary_name()
        try:
            safe_paths.create(folder, temporary, data, executable=bool(node and node.executable))
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            safe_paths.remove(folder, temporary)
            raise
