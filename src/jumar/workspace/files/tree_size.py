"""Counts the files and bytes of a folder's tree, without reading a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from jumar.errors import BadInput
from jumar.workspace.files import trees


class TreeSize(msgspec.Struct, frozen=True):
    """Number of files and bytes of a tree."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: TreeSize) -> TreeSize:
        return TreeSize(self.files + other.files, self.bytes + other.bytes)


def weigh(folder: Path, skip: Callable[[str], bool], path: str = "") -> TreeSize:
    """Count what `Store.capture` would store of *folder*. Unreadable entries count as nothing: `capture` reports them.

    Raises:
        BadInput: if *folder* itself cannot be looked at.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as fault:
        if path:
            return TreeSize()
        raise BadInput(f"{str(folder)!r} cannot be opened as a folder: {fault.strerror}") from fault
    if path and any(entry.name == trees.VENV for entry in entries):
        return TreeSize()
    found = TreeSize()
    for entry in entries:
        inner, is_folder = path + entry.name, entry.is_dir(follow_symlinks=False)
        if trees.is_ignored(entry.name) or skip(inner + "/" if is_folder else inner):
            continue
        if is_folder:
            found += weigh(Path(entry.path), skip, inner + "/")
        elif entry.is_file(follow_symlinks=False):
            found += TreeSize(1, entry.stat(follow_symlinks=False).st_size)
    return found
