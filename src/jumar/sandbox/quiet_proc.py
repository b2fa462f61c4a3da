"""A /proc without counters of the whole machine, which one run could change and a later one read.

Everything in it is empty but processes, settings and what never changes. What programs are known to read has its usual
form, with every counter at zero.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SHOWN = frozenset({
    "acpi", "asound", "bus", "cmdline", "config.gz", "consoles", "cpuinfo", "crypto", "devices", "dma",
    "driver", "execdomains", "fb", "filesystems", "iomem", "ioports", "kallsyms", "kmsg",
    "mdstat", "meminfo", "misc", "modules", "mounts", "mtrr", "net", "partitions", "self", "swaps", "sys", "sysvipc",
    "thread-self", "tty", "version",
})  # fmt: skip
"""Shown as it is. `net` and `sysvipc` are of the process's own namespaces; `kmsg` is refused. Keys are hidden: the
kernel counts them for each user, and root is the same one in all processes. So are locks: those of open file
descriptions, as jumar's own that share out the processors, belong to no process, and are listed in every namespace."""

MIXED = ("/proc/sys/fs", "/proc/sys/fs/quota", "/proc/sys/kernel/pty")
"""Folders of settings with levels and counters of the whole machine (open files, inodes, names) among them: those that
nobody may write."""

EMPTY = Path(__file__).parent.parent / "py.typed"
"""A file without content."""

_NUMBER = re.compile(r"\d+")


def list_hidden() -> Iterator[tuple[str, bool]]:
    """Yield the path of all hidden files, and whether it is a folder."""
    with os.scandir("/proc") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if not entry.name.isdigit() and entry.name not in SHOWN:
                yield entry.path, entry.is_dir(follow_symlinks=False)
    yield from ((path, False) for path in _list_levels())


@cache  # the kernel makes them when it starts
def _list_levels() -> tuple[str, ...]:
    found = (entry for folder in MIXED if Path(folder).is_dir() for entry in os.scandir(folder))
    levels = (entry.path for entry in found if entry.is_file() and not entry.stat().st_mode & 0o222)
    return tuple(sorted(levels))


def write_constant_files() -> Mapping[str, bytes]:
    """Return the files that are not empty: path -> content.

    Programs count processors by the lines of `stat`, and take the time since the machine started from it.
    """
    lines = Path("/proc/stat").read_text("ascii").splitlines()
    still = [line if line.startswith("btime") else _set_to_zero(line) for line in lines]
    return {
        "/proc/stat": "".join(f"{line}\n" for line in still).encode(),
        "/proc/loadavg": b"0.00 0.00 0.00 1/1 1\n",
        "/proc/uptime": b"1.00 1.00\n",
        "/proc/vmstat": b"pswpin 0\npswpout 0\n",
    }


def _set_to_zero(line: str) -> str:
    name, _, numbers = line.partition(" ")
    return f"{name} {_NUMBER.sub('0', numbers)}"
