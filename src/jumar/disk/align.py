"""A folder becomes equal to a tree: what is right stays, the rest is removed and made anew, never written through."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from hashlib import sha256

from jumar.disk import beneath, trees
from jumar.disk.trees import Folder, Kind, Node

Get = Callable[[str], bytes]
"""From a hash to the bytes."""


def align(folder: int, wanted: Folder, get: Get) -> None:
    """Make the open *folder* hold exactly *wanted*, and what is never part of a tree.

    Raises:
        OSError: if the disk refuses.
    """
    standing = {name for name in beneath.names(folder) if _stands(folder, name, wanted.get(name))}
    for name, want in wanted.items():
        if isinstance(want, dict):
            if name not in standing:
                os.mkdir(name, dir_fd=folder)
            with beneath.inside(folder, name, unlock=True) as inner:
                align(inner, want, get)
        elif name not in standing:
            _make(folder, name, want, get(want.sha256))


def _make(folder: int, name: str, node: Node, data: bytes) -> None:
    if node.kind is Kind.LINK:
        os.symlink(data, os.fsencode(name), dir_fd=folder)
    else:
        beneath.create(folder, name, data, executable=node.executable)


def _stands(folder: int, name: str, want: Node | Folder | None) -> bool:
    """Whether *name* is as wanted already (of a folder: is one). What is not goes, unless no tree would hold it."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if want is None and _outside(folder, name, mode):
        return False
    right = stat.S_ISDIR(mode) if isinstance(want, dict) else want is not None and _equals(folder, name, mode, want)
    if not right:
        beneath.remove(folder, name)
    return right


def _outside(folder: int, name: str, mode: int) -> bool:
    """Whether *name* is something that is never part of a tree, and not our own rubbish."""
    if trees.ignored(name) or not stat.S_ISDIR(mode):
        return trees.ignored(name) and not trees.leftover(name)
    with beneath.inside(folder, name, unlock=True) as inner:
        return beneath.lstat(inner, trees.VENV) is not None


def _equals(folder: int, name: str, mode: int, want: Node) -> bool:
    if want.kind is Kind.LINK:
        return stat.S_ISLNK(mode) and sha256(beneath.link(folder, name)).hexdigest() == want.sha256
    if not stat.S_ISREG(mode):
        return False
    try:
        data, executable = beneath.read(folder, name)
    except OSError:
        # Unreadable is not equal; it is made anew, and if the disk is at fault that will say so.
        return False
    return executable == want.executable and sha256(data).hexdigest() == want.sha256
