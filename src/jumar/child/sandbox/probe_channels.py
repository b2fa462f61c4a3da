"""Probes of channels between runs: what a process can leave that a later one, in a room of its own, can read.

Two probers call each of them, one after the other. The first writes a word and reports nothing; the second, for which
`later` is true among the aims, reports what it can read. A word is a difference between halves: of pages of a file, of
names, of numbers.
"""

from __future__ import annotations

# ruff: noqa: PTH113, PTH115, PTH116, PTH118, PTH123, PTH208
import contextlib
import ctypes
import mmap
import os
import random
import resource
import socket
import time

from jumar.child.sandbox.locks import LIBC
from jumar.child.sandbox.probe_files import Aims, Probe, name_probes

NAMES, FOLDER = 400, "/usr/lib"
"""Names that do not exist, of which the first process looks up every second one, and where."""

SURELY = 0.75
"""Share of pairs in which the name that was looked up has to be the faster one: it is a half where nothing is left."""

PAGEOUT, COLD = 21, 20
MQ_OPEN, MQ_UNLINK = {"x86_64": 240, "aarch64": 180}, {"x86_64": 241, "aarch64": 181}
SO_COOKIE = 57
CREATE = 0o1000 | 0o666
"""IPC_CREAT, for everybody."""

SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock", "/var/crash", "/run")  # noqa: S108
UNREAD = ("meminfo", "cpuinfo", "kmsg", "kcore", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo")
"""Files of /proc that are not counters, or that take long to read."""

BYTES = 1 << 16

PIPES = 100
"""Held open while counters are read again, more than the kernel's own noise of a moment."""


def leave_pages(aims: Aims) -> str:
    """Read every second page of a file that was in no memory, and see which are there later."""
    held = _map(aims["cold"])
    if not aims["later"]:
        for number in range(0, len(held) // mmap.PAGESIZE, 2):
            _ = held[number * mmap.PAGESIZE]
        return ""
    read, others = (_count_reads(held, first) for first in (0, 1))
    return f"{others - read} pages of {others}" if others - read > others / 2 else ""


def evict_pages(aims: Aims) -> str:
    """Advise the kernel to drop every second page of a file that is in memory, and see which are there later."""
    held = _map(aims["warm"])
    if aims["later"]:
        dropped, others = (_count_reads(held, first) for first in (0, 1))
        return f"{dropped - others} pages" if dropped - others > len(held) // mmap.PAGESIZE / 4 else ""
    with open(aims["warm"], "rb") as file:
        place = ctypes.addressof(ctypes.c_char.from_buffer(held))
        for start in range(0, len(held), 2 * mmap.PAGESIZE):
            _ = held[start]
            for advice in (PAGEOUT, COLD, mmap.MADV_DONTNEED):
                LIBC.madvise(ctypes.c_void_p(place + start), ctypes.c_size_t(mmap.PAGESIZE), advice)
            with contextlib.suppress(OSError):
                os.posix_fadvise(file.fileno(), start, mmap.PAGESIZE, os.POSIX_FADV_DONTNEED)
    return ""


def leave_names(aims: Aims) -> str:
    """Look up every second of some names that do not exist, and see by the time it takes which were known later."""
    drawn = random.Random(aims["token"])  # noqa: S311  # both processes draw the same
    names = [f"{FOLDER}/{drawn.getrandbits(64):x}" for _ in range(NAMES)]
    times = [_time_lookup(name) for name in (names if aims["later"] else names[::2])]
    if not aims["later"]:
        return ""
    faster = sum(known < unknown for known, unknown in zip(times[::2], times[1::2], strict=True))
    return f"{faster} of {NAMES // 2} pairs" if faster > SURELY * NAMES / 2 else ""


def leave_access_time(aims: Aims) -> str:
    """Read a file whose time of access is old, and see later whether it is new."""
    if aims["later"]:
        return str(aims["dated"]) if os.stat(aims["dated"]).st_atime > 0 else ""
    with open(aims["dated"], "rb") as file:
        file.read()
    return ""


def leave_files(aims: Aims) -> str:
    """Write a file in each folder that everybody may write to, and see which is there later."""
    folders = [*SHARED, aims["home"], *(os.environ.get(name, "/") for name in ("HOME", "TMPDIR")), os.getcwd()]  # noqa: PTH109
    found = ""
    for path in (os.path.join(folder, aims["name"] + "-left") for folder in folders):
        with contextlib.suppress(OSError):
            if aims["later"]:
                found = found or (path if os.path.lexists(path) else "")
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return found


def leave_objects(aims: Aims) -> str:
    """Make shared memory, semaphores and queues that are no files, and see which are there later; they are removed."""
    key, size, machine = int(aims["token"][:7], 16), ctypes.c_size_t(4096), os.uname().machine
    name = b"jumar-" + aims["token"][:16].encode()
    if not aims["later"]:
        LIBC.shmget(key, size, CREATE)
        LIBC.semget(key, 1, CREATE)
        LIBC.msgget(key, CREATE)
        LIBC.syscall(MQ_OPEN[machine], name, os.O_CREAT | os.O_RDWR, 0o666, None)
        return ""
    memory, semaphore, queue = LIBC.shmget(key, size, 0), LIBC.semget(key, 1, 0), LIBC.msgget(key, 0)
    left = {
        "memory": memory >= 0 and LIBC.shmctl(memory, 0, None) == 0,
        "a semaphore": semaphore >= 0 and LIBC.semctl(semaphore, 0, 0) == 0,
        "a queue": queue >= 0 and LIBC.msgctl(queue, 0, None) == 0,
        "a named queue": LIBC.syscall(MQ_UNLINK[machine], name) == 0,
    }
    return ", ".join(what for what, there in left.items() if there)


def read_counters(aims: Aims) -> str:
    """Read all of /proc that is no process's, before and after some work: what counts for all, a later one can read."""
    if not aims["later"]:
        return ""
    before = {path: _read(path) for path in _list_counters()}
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    pipes = [end for _ in range(PIPES) for end in os.pipe()]
    moved = next((path for path, text in before.items() if _read(path) != text), "")
    for end in pipes:
        os.close(end)
    return moved


def read_numbers(aims: Aims) -> str:
    """See numbers that the kernel gives in turn to all: to processes and their descriptors, and to sockets."""
    if not aims["later"]:
        return ""
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        return "descriptors of processes"
    with contextlib.suppress(OSError), socket.socketpair()[0] as speaker:
        return f"socket {speaker.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8).hex()}"
    with contextlib.suppress(OSError):
        if os.readlink("/proc/self/ns/pid") == aims["processes"]:
            return f"process {os.getpid()}"
    return ""


def _map(path: str) -> mmap.mmap:
    """Map a file, of which the kernel is not to read what nobody asks for."""
    with open(path, "rb") as file:
        held = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
    held.madvise(mmap.MADV_RANDOM)
    return held


def _count_reads(held: mmap.mmap, first: int) -> int:
    """Return for how many of every second page, from *first*, the disk has to be asked."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for number in range(first, len(held) // mmap.PAGESIZE, 2):
        _ = held[number * mmap.PAGESIZE]
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before


def _time_lookup(name: str) -> int:
    before = time.perf_counter_ns()
    with contextlib.suppress(OSError):
        os.stat(name)
    return time.perf_counter_ns() - before


def _list_counters() -> list[str]:
    """Return the files of /proc that are no process's, settings among them; the quickest to change come first."""
    found = ["/proc/stat", "/proc/vmstat", "/proc/interrupts"]
    for folder in ("/proc", "/proc/pressure", "/proc/sys/fs", "/proc/sys/fs/quota", "/proc/sys/kernel/pty"):
        with contextlib.suppress(OSError):
            found += [os.path.join(folder, name) for name in os.listdir(folder) if name not in UNREAD]
    return [path for path in found if os.path.isfile(path)]


def _read(path: str) -> bytes:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.read(handle, BYTES)
        finally:
            os.close(handle)
    return b""


PROBES: dict[str, Probe] = name_probes(
    leave_pages, evict_pages, leave_names, leave_access_time, leave_files, leave_objects, read_counters, read_numbers,
)  # fmt: skip
