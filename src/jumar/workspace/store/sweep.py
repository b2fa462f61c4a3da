"""Removes the objects of a shared store that no run needs any more, while other processes may store theirs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from jumar.workspace.store.deltas import HEAD, SUFFIX
from jumar.workspace.store.lease import Lease, list_held_leases, lock_for_sweep

JOURNALS = "events*.jsonl"
"""In a run: its journal, and what was moved aside from its end."""

CHUNK = 500
"""Objects that are removed while nothing can be stored."""

_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_FOLDER, _FILE = re.compile(r"[0-9a-f]{2}"), re.compile(rf"[0-9a-f]{{62}}(?:{re.escape(SUFFIX)})?")
_TREE = b'[{"path":'
_HEAD_BYTES = len(_TREE)


class SweptObjects(msgspec.Struct, frozen=True):
    """Number and bytes of the objects removed from a store."""

    objects: int = 0
    bytes: int = 0


def sweep(root: Path, runs: Iterable[Path], *, dry: bool = False) -> SweptObjects:
    """Remove the objects in the store *root* that *runs* do not need; with *dry* only count them.

    What was stored since the oldest living process began to store is kept, needed or not.

    Raises:
        OSError: if a journal cannot be read, or the disk refuses.
    """
    if root.is_symlink() or not root.is_dir():  # a link may lead to a folder that is no store
        return SweptObjects()
    mine = Lease(root)
    mine.take()
    try:
        begun = min(list_held_leases(root).values())
        kept = find_needed_objects(root, runs)
        due = [path for path in _list_objects(root) if _get_name(path) not in kept and path.lstat().st_ctime_ns < begun]
        if dry:
            return SweptObjects(len(due), sum(path.lstat().st_blocks * 512 for path in due))
        count = freed = 0
        for start in range(0, len(due), CHUNK):
            with lock_for_sweep(root):
                for path in due[start : start + CHUNK]:
                    found = path.lstat()
                    if found.st_ctime_ns < begun:  # nobody wanted it meanwhile
                        path.unlink()
                        count, freed = count + 1, freed + found.st_blocks * 512
        return SweptObjects(count, freed)
    finally:
        mine.end()


def find_needed_objects(root: Path, runs: Iterable[Path]) -> set[str]:
    """Return the objects of *root* that the journals of *runs* name, and those that these name.

    All that looks like a hash.
    """
    due: set[str] = set()
    for run in runs:
        for journal in run.glob(JOURNALS):
            due |= _find_named(journal.read_bytes())
    kept: set[str] = set()
    while due:
        digest = due.pop()
        if digest not in kept:
            kept.add(digest)
            due |= _find_needed_by(root / digest[:2] / digest[2:]) - kept
    return kept


def _find_needed_by(path: Path) -> set[str]:
    """Return the objects that *path* needs, where it is a manifest, whole or as a difference."""
    for manifest, head in ((path, _TREE), (path.with_name(path.name + SUFFIX), HEAD)):
        with suppress(FileNotFoundError), manifest.open("rb") as file:
            if file.read(_HEAD_BYTES).startswith(head):
                return _find_named(manifest.read_bytes())
    return set()


def _find_named(data: bytes) -> set[str]:
    return {found.decode() for found in _HASH.findall(data)}


def _list_objects(root: Path) -> Iterator[Path]:
    for folder in os.scandir(root):
        if _FOLDER.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
            for entry in os.scandir(folder):
                if _FILE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


def _get_name(path: Path) -> str:
    return path.parent.name + path.name.removesuffix(SUFFIX)
