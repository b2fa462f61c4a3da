"""Gives each attempt at a rollout a folder of its own on the machine it runs on, and removes those of dead attempts."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from jumar.errors import Infra
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.store.lease import open_locked

LOCK_SUFFIX = ".lock"
"""Ends the name of the file, beside the folder of an attempt, that its process holds locked."""


def make_campaign_scratch(campaign: str) -> Path:
    """Return the folder on this machine for attempts of the *campaign*, below the temporary files.

    Raises:
        Infra: if it cannot be made, or is somebody else's.
    """
    top = Path(tempfile.gettempdir(), f"jumar-ray-{os.geteuid()}")
    with explain_disk_faults(f"cannot make {top}"):
        top.mkdir(mode=0o700, exist_ok=True)
        found = top.lstat()
        if top.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Infra(f"{top} may be written by others; remove it, or let TMPDIR name another folder")
        folder = top / sha256(campaign.encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def enter_attempt(scratch: Path, attempt: str) -> Iterator[Path]:
    """Yield a new folder in *scratch* for *attempt*, removed at the end; remove those of dead attempts.

    Raises:
        Infra: if it cannot be made.
    """
    _remove_dead(scratch)
    folder = scratch / attempt
    with explain_disk_faults(f"cannot make {folder}"):
        lock = folder.with_name(attempt + LOCK_SUFFIX)
        fd = open_locked(lock, fcntl.LOCK_EX)
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)
        os.close(fd)


def _remove_dead(scratch: Path) -> None:
    for lock in scratch.glob(f"*{LOCK_SUFFIX}"):
        with suppress(OSError):  # it is at work, or another one removes it
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)
            finally:
                os.close(fd)
