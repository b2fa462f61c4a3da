"""The folder of a repository's hook sessions: its lock, and the removal of old runs in it."""

from __future__ import annotations

import fcntl
import shutil
import time
from pathlib import Path

from jumar.disk.store.shared import is_run
from jumar.errors import Infra

WAIT_SECONDS = 60.0
"""How long a hook waits for another one that is judging."""


def acquire(fd: int) -> None:
    """Take the lock on the open file *fd*.

    Raises:
        Infra: if another hook holds it for too long.
    """
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise Infra(f"another hook has been judging for more than {WAIT_SECONDS:g} seconds") from None
            time.sleep(0.02)
        else:
            return


def prune(folder: Path, kept: int) -> bool:
    """Remove all but the newest folders in *folder*; whether there were any."""
    old = sorted(path for path in folder.iterdir() if is_run(path))[:-kept]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return bool(old)
