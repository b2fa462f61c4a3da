"""Removes pipes, sockets and devices from a folder: no tree can hold them, and reading one could block."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from jumar.workspace.files import safe_paths, scan, trees
from jumar.workspace.files.checkout import Skip

_KEPT = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)


def remove_special_files(folder: Path, skip: Skip) -> tuple[str, ...]:
    """Remove what is neither file, folder nor link below *folder*; return the paths.

    What no tree holds and what *skip* names is left alone.

    Raises:
        OSError: if the disk refuses, or a folder cannot be read.
    """
    with safe_paths.open_root(folder) as top:
        return tuple(_remove_below(top, "", skip))


def _remove_below(folder: int, path: str, skip: Skip) -> Iterator[str]:
    for name in safe_paths.list_names(folder):
        inner = path + name
        found = safe_paths.lstat(folder, name)
        if found is None or trees.is_ignored(name) or scan.is_skipped(skip, folder, name, inner):
            continue
        if not any(is_kept(found.st_mode) for is_kept in _KEPT):
            safe_paths.remove(folder, name)
            yield inner
        # Deeper than any tree nothing is looked at: it is refused as a whole.
        elif stat.S_ISDIR(found.st_mode) and inner.count("/") < scan.DEEPEST:
            with safe_paths.open_inside(folder, name) as below:
                yield from _remove_below(below, inner + "/", skip)
