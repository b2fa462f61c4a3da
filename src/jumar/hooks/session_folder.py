"""The folder of a repository's hook sessions: its lock, and the removal of old runs in it."""

from __future__ import annotations

import fcntl
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from jumar.child.hook.published_state import take_lock
from jumar.errors import Infra
from jumar.journal.writer import EVENTS
from jumar.workspace.store.shared import RECORD, is_run

WAIT_SECONDS = 60.0
"""Longest time that a hook waits for another one that is judging."""

STAMP = re.compile(r"\d{8}-\d{6}-\d{9}")
"""The name of a folder of files that were put back."""


def acquire(fd: int) -> None:
    """Take the lock on the open file *fd*.

    Raises:
        Infra: if another hook holds it for too long.
    """
    if not take_lock(fd, fcntl.LOCK_EX, WAIT_SECONDS):
        raise Infra(f"another hook has been judging for more than {WAIT_SECONDS:g} seconds")


def write_stamped(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write *files* into a new folder in *folder*, which is named by the time of day."""
    now = time.time_ns()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now // 10**9))
    for path, data in files:
        target = folder / f"{stamp}-{now % 10**9:09}" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def prune(folder: Path, kept: int) -> bool:
    """Remove all but the newest runs and saved files in *folder*; return whether there were any. Follows no link."""
    if folder.is_symlink():
        return False
    old = sorted(path for path in folder.iterdir() if is_run(path) and _is_written_by_hook(path))[:-kept]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return bool(old)


def _is_written_by_hook(path: Path) -> bool:
    return STAMP.fullmatch(path.name) is not None or any((path / name).is_file() for name in (EVENTS, RECORD))
