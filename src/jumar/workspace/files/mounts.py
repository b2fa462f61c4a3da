"""Finds the type of the file system of a file: they differ in what they promise."""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


def find_file_system(fd: int, mounts: Path = MOUNTS) -> str:
    """Return the type of the file system of the open file *fd*, as `ext4`; empty: it is not known for sure."""
    device = os.fstat(fd).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    # Number, parent, device, root, place, options, tags, a dash, type: see proc(5).
    found = {line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2:3] == [name]}
    return found.pop() if len(found) == 1 else ""
