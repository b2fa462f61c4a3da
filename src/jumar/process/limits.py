"""Resource limits of a confined process and all that it starts: generous, and never the whole machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jumar.child.supervisor import cgroup

MEMORY_BYTES = 8 << 30
"""Suites that need more are rare, and one that means harm must not have what the others of a campaign need."""

PROCESSES = 512
"""Builds and browsers start a hundred; many more cannot be ended within a second."""

PROCESSES_EACH = 16
"""For each processor: what builds in parallel starts that many times the usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """Resource limits of one process and all it starts, at a time; exceeding one kills them all."""

    memory_bytes: int
    """Memory that is resident or swapped out, with shared pages counted once."""
    processes: int
    """Four threads may run for each of them."""


def compute_default_ceiling() -> ResourceLimits:
    """Return half of the memory of this machine, or of its container; at most `MEMORY_BYTES`."""
    here = min(_list_memory_bounds(), default=2 * MEMORY_BYTES)
    return ResourceLimits(
        memory_bytes=min(MEMORY_BYTES, here // 2),
        processes=max(PROCESSES, PROCESSES_EACH * (os.cpu_count() or 1)),
    )


@cache
def _find_group_folders() -> list[str]:
    """Return the control groups of this process, found once: their bounds are read each time."""
    return cgroup.find_group_folders()


def _list_memory_bounds() -> Iterator[int]:
    """Yield every bound on the memory: the machine's, and those of the control groups of this process."""
    with suppress(OSError, ValueError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError):
        for folder in map(Path, _find_group_folders()):
            for group in (folder, *folder.parents):
                for name in cgroup.MEMORY:
                    # An unbounded one says "max", or a number beyond all memory.
                    with suppress(OSError, ValueError):
                        yield int((group / name).read_text("ascii"))
