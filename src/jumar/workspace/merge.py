"""Merges texts three-way, by git: changes of both sides are taken if they are in different lines."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from jumar.errors import Infra
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.git import NO_SETTINGS, explain_failure, run_git

_FAILED = 128
"""Git ends with the number of conflicts, at most 127, or with this and more if it failed."""


def merge(base: bytes, mine: bytes, theirs: bytes) -> bytes | None:
    """Return *mine* with the changes from *base* to *theirs*; None: both changed the same lines, or one is not text.

    Raises:
        Infra: if git fails, or the disk refuses.
    """
    if theirs in (mine, base):
        return mine
    if mine == base:
        return theirs
    git = shutil.which("git")
    if git is None or any(b"\0" in side for side in (base, mine, theirs)):
        return None
    with (
        explain_disk_faults("texts cannot be merged"),
        tempfile.TemporaryDirectory(prefix="jumar-merge-") as room,
    ):
        sides = {"mine": mine, "base": base, "theirs": theirs}
        for name, data in sides.items():
            Path(room, name).write_bytes(data)
        places = {"HOME": room, "GIT_CEILING_DIRECTORIES": str(Path(room).parent)}
        done = run_git(git, ["merge-file", "-p", "-q", *sides], Path(room), {**NO_SETTINGS, **places})
    if done.returncode >= _FAILED or done.returncode < 0:
        raise Infra(f"git merge-file failed: {explain_failure(done)}")
    return done.stdout if done.returncode == 0 else None
