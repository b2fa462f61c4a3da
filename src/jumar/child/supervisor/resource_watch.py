"""Samples the memory, processes and disk use of a process tree, and kills the tree past a limit.

Limits of the kernel are per process or per user, and runtimes reserve far more than they use, so what is really
there is counted.
"""

from __future__ import annotations

# pathlib would triple what the reaper imports, and it starts once per verification.
# ruff: noqa: PTH116, PTH123, PTH208
import contextlib
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Members = Mapping[int, Any]

LOOK_SECONDS = 0.1
"""Interval between samples, if sampling is cheap."""

SHARE = 20
"""A look that took long is followed by a pause this many times as long: looking costs about 5 % of a processor."""

PAUSE_SECONDS = 0.4
"""No pause is longer: much can be taken in a second."""

THREADS = 4
"""Threads that may run for each process that may."""

WEIGH_SECONDS = 0.1
"""A look weighs no longer than this."""

SPARE_BYTES, SPARE_INODES = 256 << 20, 4096
"""Disk space that must be left, so that a journal can still be written; half of the free space, if that is less."""

SPARE_MEMORY = 256 << 20
"""Memory of the machine that must be left, as above: files in memory belong to no process."""

PAGE = os.sysconf("SC_PAGE_SIZE")


class ResourceWatch:
    """Resource use of one process tree, against its limits.

    *order* is the reaper's; *family* counts it, *burst* asks its cell.
    """

    def __init__(self, order: Mapping[str, Any], family: Callable[[], Members], burst: Callable[[], str]) -> None:
        self._memory, self._processes = int(order["memory_bytes"]), int(order["processes"])
        self._family, self._burst = family, burst
        self._weights: dict[int, int] = {}
        temporary = order["env"].get("TMPDIR", "")
        places = {order["cwd"], temporary, "/tmp", "/dev/shm"}  # noqa: S108  looked at, not used
        self._spare = {place: _halve(_measure_free(place)) for place in places}
        self._reserve = min(SPARE_MEMORY, (_read_available() or 0) // 2)
        self._next = time.monotonic() + LOOK_SECONDS

    @property
    def seconds(self) -> float:
        """Return the seconds until the next look is due."""
        return max(0.0, self._next - time.monotonic())

    def look(self) -> dict[str, object] | None:
        """Sample, if it is time; return how the process tree ends, if it took too much."""
        if time.monotonic() < self._next:
            return None
        started = time.process_time()
        found = self.find_exceeded() or self._check_processes() or self._check_machine()
        # What a look costs is our own time: that others leave us little of it is a reason to look more, not less.
        pause = SHARE * (time.process_time() - started)
        self._next = time.monotonic() + max(LOOK_SECONDS, min(pause, PAUSE_SECONDS))
        return found

    def find_exceeded(self) -> dict[str, object] | None:
        """Return how the process tree ends, if the kernel counted too much."""
        how = self._burst()
        return self._describe_excess(how) if how else None

    def _check_processes(self) -> dict[str, object] | None:
        """Return how the process tree ends if its processes are too many or hold too much memory, or None."""
        members = self._family()
        threads = sum(member.threads for member in members.values())
        if len(members) > self._processes or threads > THREADS * self._processes:
            return self._describe_excess("processes")
        plain = PAGE * sum(member.pages for member in members.values())
        if plain > self._memory and self._measure_memory(members) > self._memory:
            return self._describe_excess("memory")
        return None

    def _measure_memory(self, members: Members) -> int:
        """Return the bytes that *members* hold; what several share is counted once.

        That walks through all their pages, so it is asked only if a plain sum is too high. A fork bomb can fill the
        machine sooner: after WEIGH_SECONDS, the rest is measured at the next look.
        """
        if self._weights.keys() >= members.keys():
            self._weights.clear()
        until = time.monotonic() + WEIGH_SECONDS
        for pid, member in sorted(members.items(), key=lambda item: -item[1].pages):
            if pid not in self._weights:
                self._weights[pid] = _measure_held(pid, member)
                if time.monotonic() > until:
                    break
        return sum(self._weights[pid] for pid in self._weights.keys() & members.keys())

    def _check_machine(self) -> dict[str, object] | None:
        """Return how it ends if the machine's memory or the disks are nearly full, whoever filled them, or None."""
        left = _read_available()
        if left is not None and left < self._reserve:
            return _build_end("memory", f"less than {_format_size(self._reserve)} of the machine's memory was left")
        for place, (spare_bytes, spare_inodes) in self._spare.items():
            free, inodes = _measure_free(place)
            if free < spare_bytes:
                return _build_end("space", f"less than {_format_size(spare_bytes)} was left on its disk")
            if inodes < spare_inodes:
                return _build_end("space", f"less than {spare_inodes} files could still be made on its disk")
        return None

    def _describe_excess(self, how: str) -> dict[str, object]:
        if how == "memory":
            return _build_end(how, f"it took more than {_format_size(self._memory)} of memory")
        return _build_end(how, f"it ran more than {self._processes} processes, or {THREADS} threads for each")


def count_user_threads(user: int) -> int:
    """Return how many threads of *user* run on this machine: the limit on threads counts those, too."""
    threads = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user:
                threads += len(os.listdir(f"/proc/{name}/task"))
    return threads


def _build_end(how: str, why: str) -> dict[str, object]:
    return {"how": how, "why": why}


def _format_size(number: int) -> str:
    if number >= 1 << 30:
        return f"{number / (1 << 30):.3g} GiB"
    return f"{number >> 20} MiB" if number >= 1 << 20 else f"{number >> 10} KiB"


def _measure_held(pid: int, member: Any) -> int:
    """Return the bytes that process *pid* holds: its share of what several hold, and what was swapped out."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        lines = rollup.read().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith((b"Pss:", b"SwapPss:")))
    return int(member.pages) * PAGE


def _read_available() -> int | None:
    """Return the bytes of memory that are available on this machine without swapping; None: unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", "rb") as info:
        for line in info:
            if line.startswith(b"MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def _measure_free(place: str) -> tuple[float, float]:
    """Return the bytes and inodes that are left where *place* lies; infinity where that is not known."""
    try:
        found = os.statvfs(place)
    except OSError:
        return float("inf"), float("inf")
    # Some file systems make inodes as they need them, and say that they have none at all.
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else float("inf")


def _halve(left: tuple[float, float]) -> tuple[int, int]:
    return int(min(SPARE_BYTES, left[0] / 2)), int(min(SPARE_INODES, left[1] / 2))
