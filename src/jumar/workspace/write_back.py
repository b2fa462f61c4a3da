"""Writes the changes of a run onto a person's folder: a three-way merge, all of it or nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.disk_faults import explain_disk_faults, refuse_unwritable
from jumar.workspace.files.trees import EntryKind, Manifest, Node
from jumar.workspace.merge import merge
from jumar.workspace.store.object_store import Store


class Change(msgspec.Struct, frozen=True):
    """New content of one path of the original."""

    path: str
    old: Node | None
    new: Node | None
    data: bytes | None = None
    """Of a file, merged from both sides; None: those of `new`."""


class Conflict(msgspec.Struct, frozen=True):
    """A path that cannot take the change of the run."""

    path: str
    why: str


class Conflicts(BadInput):
    """Raised when nothing was written because some paths were changed on both sides."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(f"nothing was applied: {'; '.join(c.why for c in conflicts)}")
        self.conflicts = conflicts


def apply(
    store: Store, base: str, best: str, origin: Path, closed: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """Write the changes from *base* to *best* onto *origin*; return the paths written, sorted. Equal files stay.

    Raises:
        Conflicts: naming each path of *origin* that was changed too, in the same place; nothing was written then.
        BadInput: if a path is *closed*; nothing was written.
        Unwritable: if *origin* is read-only, or not the person's.
        Infra: if the disk refuses half-way; the files written before stay, each of them whole.
    """
    what = f"cannot write to {origin}"
    with explain_disk_faults(what), refuse_unwritable(what, ""), safe_paths.open_root(origin) as top:
        due = plan(store, base, best, top)
        for change in due:
            if closed(change.path):
                raise BadInput(f"nothing was applied: {change.path!r} is one of the task's own tests")
        for change in reversed(due):
            if change.old is not None and (change.new is None or change.new.kind is not change.old.kind):
                _take_away(top, change)
        for change in due:
            if change.new is not None:
                data = change.data if change.data is not None else _get_data(store, change.new)
                _put(top, change.path, change.new, data)
    return tuple(change.path for change in due)


def plan(store: Store, base: str, best: str, top: int) -> tuple[Change, ...]:
    """Return the changes to write below the open folder *top*, sorted by path.

    Raises:
        Conflicts: as `apply`.
        OSError: if something cannot be read.
    """
    old, new = trees.add_folders(store.manifest(base)), trees.add_folders(store.manifest(best))
    changed = trees.find_differences(old, new)
    due: list[Change] = []
    conflicts: list[Conflict] = []
    for change in (Change(path, old.get(path), new.get(path)) for path in changed):
        found = _find_due(store, top, change, old)
        if isinstance(found, Conflict):
            conflicts.append(found)
        elif found is not None:
            due.append(found)
    if conflicts:
        raise Conflicts(tuple(conflicts))
    return tuple(due)


def _find_due(store: Store, top: int, change: Change, old: Manifest) -> Change | Conflict | None:
    """Return the part of *change* left to do: nothing, all of it, or a merge with the present content."""
    path, there = change.path, _find_node(top, change.path)
    if there == change.new:
        return None
    if change.new is not None and (blocked := _find_blocking(top, path, old)):
        return Conflict(path, f"{path!r} lies beneath {blocked!r}, which is a link or a file there; move it away")
    if there != change.old:
        return _merge(store, top, change, there)
    if there is not None and there.kind is EntryKind.DIR and change.new is not None:
        for other in _list_inside(top, path):
            if f"{path}/{other}" not in old:
                why = f"{path!r} must become a file, but holds {other!r}, unknown to the run; move it away"
                return Conflict(path, why)
    return change


def _merge(store: Store, top: int, change: Change, there: Node | None) -> Change | Conflict | None:
    """Return *change* merged with the present content of the file."""
    path, old, new = change.path, change.old, change.new
    if there is None or new is None or old is None:
        theirs = "deleted" if there is None else "made" if old is None else "changed"
        ours = "deleted" if new is None else "made" if old is None else "changed"
        return Conflict(path, f"{path!r} was {theirs} while the run worked, and was {ours} by the run")
    if {old.kind, new.kind, there.kind} != {EntryKind.FILE} or not there.sha256:
        return Conflict(path, f"{path!r} was changed while the run worked, and is no file on one of the sides")
    mine, runs = _read_file(top, path)
    data = merge(store.get(old.sha256), mine, store.get(new.sha256))
    if data is None:
        return Conflict(path, f"{path!r} was changed while the run worked, in the same lines or as no text")
    executable = new.executable if new.executable is not old.executable else runs
    if data == mine and executable is runs:
        return None
    return Change(path, there, Node(EntryKind.FILE, sha256(data).hexdigest(), executable), data)


def _get_data(store: Store, node: Node) -> bytes:
    return b"" if node.kind is EntryKind.DIR else store.get(node.sha256)


def _list_inside(top: int, path: str) -> list[str]:
    with safe_paths.open_parent(top, path) as (folder, name), safe_paths.open_inside(folder, name) as inner:
        return safe_paths.list_names(inner)


def _read_file(top: int, path: str) -> tuple[bytes, bool]:
    with safe_paths.open_parent(top, path) as (folder, name):
        return safe_paths.read(folder, name)


def _find_blocking(top: int, path: str, old: Manifest) -> str:
    """Return the folder above *path* that became a link or a file since the run began; empty: there is none."""
    for folder in reversed(tuple(trees.list_parents(path))):
        found = _find_node(top, folder)
        if found is not None and found.kind is not EntryKind.DIR and found != old.get(folder):
            return folder
    return ""


def _find_node(top: int, path: str) -> Node | None:
    try:
        with safe_paths.open_parent(top, path) as (folder, name):
            found = safe_paths.lstat(folder, name)
            if found is None:
                return None
            if stat.S_ISDIR(found.st_mode):
                return trees.EMPTY
            if stat.S_ISLNK(found.st_mode):
                return Node(EntryKind.LINK, sha256(safe_paths.link(folder, name)).hexdigest())
            if not stat.S_ISREG(found.st_mode):
                return Node(EntryKind.FILE)
            data, executable = safe_paths.read(folder, name)
            return Node(EntryKind.FILE, sha256(data).hexdigest(), executable)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _take_away(top: int, change: Change) -> None:
    with safe_paths.open_parent(top, change.path) as (folder, name):
        if change.old is None or change.old.kind is not EntryKind.DIR:
            os.unlink(name, dir_fd=folder)
        else:
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as fault:
                # It still holds what is no part of a tree (caches): then it stays, and so do they.
                if fault.errno != errno.ENOTEMPTY:
                    raise
        os.fsync(folder)


def _put(top: int, path: str, node: Node, data: bytes) -> None:
    with safe_paths.open_parent(top, path, create=True) as (folder, name):
        if node.kind is EntryKind.DIR:
            if safe_paths.lstat(folder, name) is None:
                os.mkdir(name, dir_fd=folder)
        else:
            temporary = safe_paths.make_temporary_name()
            try:
                _make(folder, temporary, node, data, safe_paths.lstat(folder, name))
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                safe_paths.remove(folder, temporary)
                raise
        os.fsync(folder)


def _make(folder: int, name: str, node: Node, data: bytes, replaced: os.stat_result | None) -> None:
    if node.kind is EntryKind.LINK:
        os.symlink(data, os.fsencode(name), dir_fd=folder)
        return
    safe_paths.create(folder, name, data, executable=node.executable)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        if replaced is not None and stat.S_ISREG(replaced.st_mode):
            bits = stat.S_IMODE(replaced.st_mode)
            os.fchmod(fd, bits | (bits & 0o444) >> 2 if node.executable else bits & ~0o111)
        os.fsync(fd)
    finally:
        os.close(fd)
