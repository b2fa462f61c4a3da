"""A person's folder is written only if it still is what the run began with; each file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.disk import beneath, trees
from jumar.disk.objects import Store
from jumar.disk.trees import Kind, Manifest, Node
from jumar.errors import BadInput


class Change(msgspec.Struct, frozen=True):
    """What one path becomes."""

    path: str
    old: Node | None
    new: Node | None


def apply(store: Store, base: str, best: str, origin: Path) -> tuple[str, ...]:
    """Write what *best* changed in *base* onto *origin*; the paths written, sorted. What is so already is left alone.

    Raises:
        BadInput: naming the path of *origin* that is no longer what *base* has; nothing was written then.
        Infra: if the disk refuses half-way; the files written before stay, each of them whole.
    """
    old, new = trees.spelt_out(store.manifest(base)), trees.spelt_out(store.manifest(best))
    changes = [Change(path, old.get(path), new.get(path)) for path in trees.difference(old, new)]
    with beneath.disk(f"cannot write to {origin}"), beneath.root(origin) as top:
        due = [change for change in changes if _due(top, change, old)]
        for change in reversed(due):
            if change.old is not None and (change.new is None or change.new.kind is not change.old.kind):
                _take_away(top, change)
        for change in due:
            if change.new is not None:
                _put(top, change.path, change.new, store)
    return tuple(change.path for change in due)


def _due(top: int, change: Change, old: Manifest) -> bool:
    """Whether *change* is still to be made.

    Raises:
        BadInput: if what stands there is neither the old nor the new.
    """
    there = _standing(top, change.path)
    if there == change.new:
        return False
    if there != change.old:
        raise BadInput(f"{change.path!r} was changed while the run worked; nothing was applied: use best.patch instead")
    if there is not None and there.kind is Kind.DIR and change.new is not None:
        with beneath.parent(top, change.path) as (folder, name), beneath.inside(folder, name) as inner:
            for other in beneath.names(inner):
                if f"{change.path}/{other}" not in old:
                    raise BadInput(
                        f"{change.path!r} must become a file, but holds {other!r}, unknown to the run; move it away"
                    )
    return True


def _standing(top: int, path: str) -> Node | None:
    try:
        with beneath.parent(top, path) as (folder, name):
            found = beneath.lstat(folder, name)
            if found is None:
                return None
            if stat.S_ISDIR(found.st_mode):
                return trees.EMPTY
            if stat.S_ISLNK(found.st_mode):
                return Node(Kind.LINK, sha256(beneath.link(folder, name)).hexdigest())
            if not stat.S_ISREG(found.st_mode):
                return Node(Kind.FILE)
            data, executable = beneath.read(folder, name)
            return Node(Kind.FILE, sha256(data).hexdigest(), executable)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _take_away(top: int, change: Change) -> None:
    with beneath.parent(top, change.path) as (folder, name):
        if change.old is None or change.old.kind is not Kind.DIR:
            os.unlink(name, dir_fd=folder)
        else:
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as fault:
                # It still holds what is no part of a tree (caches): then it stays, and so do they.
                if fault.errno != errno.ENOTEMPTY:
                    raise
        os.fsync(folder)


def _put(top: int, path: str, node: Node, store: Store) -> None:
    with beneath.parent(top, path, create=True) as (folder, name):
        if node.kind is Kind.DIR:
            if beneath.lstat(folder, name) is None:
                os.mkdir(name, dir_fd=folder)
        else:
            temporary = beneath.passing()
            try:
                _make(folder, temporary, node, store.get(node.sha256), beneath.lstat(folder, name))
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                beneath.remove(folder, temporary)
                raise
        os.fsync(folder)


def _make(folder: int, name: str, node: Node, data: bytes, replaced: os.stat_result | None) -> None:
    if node.kind is Kind.LINK:
        os.symlink(data, os.fsencode(name), dir_fd=folder)
        return
    beneath.create(folder, name, data, executable=node.executable)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        if replaced is not None and stat.S_ISREG(replaced.st_mode):
            bits = stat.S_IMODE(replaced.st_mode)
            os.fchmod(fd, bits | (bits & 0o444) >> 2 if node.executable else bits & ~0o111)
        os.fsync(fd)
    finally:
        os.close(fd)
