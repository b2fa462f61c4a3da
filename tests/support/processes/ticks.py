"""Waits for the clock of a file system, which counts in ticks of some milliseconds."""

from __future__ import annotations

import tempfile
from pathlib import Path


def wait_for_a_tick(folder: Path) -> None:
    """Wait until what is written in *folder* is newer than what is there: a sweep keeps what has its own age."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        probe = Path(file.name)
        first = probe.stat().st_ctime_ns
        while probe.stat().st_ctime_ns == first:
            probe.touch()
