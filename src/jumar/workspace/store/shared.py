"""The store shared by all runs of one folder: `RUNS/.objects`, to which `objects` of each run links."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths
from jumar.workspace.store.lease import LOCK, SHARED, list_held_leases, open_locked

OBJECTS = "objects"
"""In a run: a link to the shared store; in a run of an earlier version, or one that has none, its own."""

RECORD = "objects.path"
"""In a run: where the shared store lay when the run began, should the run be moved."""


def share(run: Path) -> None:
    """Make the new run directory *run* share the store of its folder.

    Raises:
        OSError: if the disk refuses.
    """
    root = run.parent / SHARED
    (run / RECORD).write_bytes(os.fsencode(root.absolute()) + b"\n")
    with suppress(OSError):  # a disk without links: the record is enough
        (run / OBJECTS).symlink_to(Path("..", SHARED))


def find_objects_folder(run: Path) -> Path:
    """Return the folder of the objects of *run*, wherever that was moved to.

    Raises:
        BadInput: if the run was moved and its store is gone.
    """
    own = run / OBJECTS
    if own.is_dir():
        return own.resolve() if own.is_symlink() else own
    try:
        recorded = Path(os.fsdecode((run / RECORD).read_bytes().removesuffix(b"\n")))
    except OSError:
        return own
    neighbour = run.parent / SHARED
    if recorded.is_dir() or recorded.parent.resolve() == run.parent.resolve():
        return recorded
    raise BadInput(
        f"the files of the run in {run} are not here: they lie in {recorded}, which is gone; "
        f"move the run back beside it, or copy that folder to {neighbour}"
    )


def discard(runs: Path) -> None:
    """Remove the shared store of *runs* after a run that could not begin, unless another process uses it."""
    root = runs / SHARED
    if not root.is_dir():
        return
    fd = open_locked(root / LOCK, fcntl.LOCK_EX)
    try:
        if not list_held_leases(root):
            gone = runs / safe_paths.make_temporary_name()
            root.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    finally:
        os.close(fd)


def is_run(folder: Path) -> bool:
    """Return whether the entry *folder* of a folder of runs may be a run: not the store, a link, or being removed."""
    with suppress(OSError):
        return not folder.name.startswith(".") and folder.is_dir() and not folder.is_symlink()
    return False
