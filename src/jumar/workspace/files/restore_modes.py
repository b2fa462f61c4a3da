"""Restores owner read permission, so that an agent cannot hide a change from the gate with chmod."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jumar.workspace.files import safe_paths, scan, trees
from jumar.workspace.files.checkout import Skip

_FOLDER, _FILE = 0o700, 0o600


def unlock(folder: Path, skip: Skip) -> bool:
    """Restore the owner's rights to every file and folder below *folder*; return whether a mode was changed.

    What no tree holds, what *skip* names and what belongs to somebody else is left alone.
    """
    with safe_paths.open_root(folder) as top:
        return _unlock_below(top, "", skip)


def _unlock_below(folder: int, path: str, skip: Skip) -> bool:
    changed = False
    for name in safe_paths.list_names(folder):
        inner = path + name
        found = safe_paths.lstat(folder, name)
        if found is None or trees.is_ignored(name) or scan.is_skipped(skip, folder, name, inner):
            continue
        if stat.S_ISREG(found.st_mode):
            changed |= _add_bits(folder, name, _FILE)
        elif stat.S_ISDIR(found.st_mode):
            changed |= _add_bits(folder, name, _FOLDER)
            if inner.count("/") >= scan.DEEPEST:  # deeper than any tree: it is refused as a whole
                continue
            with safe_paths.open_inside(folder, name) as below:
                changed |= _unlock_below(below, inner + "/", skip)
    return changed


def _add_bits(folder: int, name: str, bits: int) -> bool:
    # O_PATH needs no permission on the thing itself, and chmod through /proc cannot be led astray by a swapped name.
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    try:
        found = os.fstat(handle)
        mode = stat.S_IMODE(found.st_mode)
        if mode & bits == bits or found.st_uid != os.geteuid():
            return False
        Path(f"/proc/self/fd/{handle}").chmod(mode | bits)
    finally:
        os.close(handle)
    return True
