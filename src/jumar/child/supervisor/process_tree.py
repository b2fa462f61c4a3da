"""Finds and kills a process tree: a process and all its descendants, whatever they call themselves.

Used by the supervisor, and by jumar for what a supervisor cannot do any more.
"""

from __future__ import annotations

# pathlib would triple what the reaper imports, and it starts once per verification.
# ruff: noqa: PTH123, PTH208
import contextlib
import os
import signal
import time

KILL_SECONDS = 5.0
"""Time limit for killing; what is left then is reported. A thousand processes take a second to go, and several where
the machine is busy."""

DYING_SECONDS = 0.005
"""A pause for the dying, who need a processor, too, before it is looked who is left; twice as long as looking took."""

HUNT_SECONDS = 0.25
"""Time limit for killing children one by one, before it is looked again for whole groups to stop."""

GROUP, THREADS, PAGES = 2, 17, 21
"""Places in `/proc/PID/stat`, counted after the name: its process group, how many threads it has, and its resident
pages. Format: proc_pid_stat(5)."""


class TreeProcess:
    """A living process of a process tree."""

    __slots__ = ("group", "pages", "threads")

    def __init__(self, fields: list[bytes]) -> None:
        self.group, self.threads, self.pages = int(fields[GROUP]), int(fields[THREADS]), int(fields[PAGES])


def find_descendants(root: int) -> dict[int, TreeProcess]:
    """Return the living processes below *root*, by number."""
    children: dict[int, list[int]] = {}
    members: dict[int, TreeProcess] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
            member = TreeProcess(fields)
            # Whose first thread is dead still lives while another one runs.
            if fields[0] not in b"ZX" or member.threads > 1:
                children.setdefault(int(fields[1]), []).append(int(name))
                members[int(name)] = member
    found: dict[int, TreeProcess] = {}
    todo = [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found[pid] = members[pid]
                todo.append(pid)
    return found


def find_marked(nonce: str) -> set[int]:
    """Return the living processes that were started with *nonce* in their environment."""
    mark = b"JUMAR_ROOM=" + nonce.encode()
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
            if mark in environ.read().split(b"\0"):
                found.add(int(name))
    return found - {os.getpid()}


def destroy(nonce: str, root: int | None) -> int:
    """Kill all below *root* and all that bear *nonce*, and count those that would not die in time.

    Called by the reaper on itself, and by jumar on a reaper that does not answer (or with None where it is gone).
    """
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        began = time.monotonic()
        frozen = freeze(nonce, root, deadline)
        for target in frozen:
            send_signal(target, signal.SIGKILL)
        left = kill_children() if root == os.getpid() else 0
        if not frozen and not left:
            return 0
        if time.monotonic() > deadline:
            return max(left, sum(target > 0 for target in frozen))
        time.sleep(max(DYING_SECONDS, min(0.1, 2 * (time.monotonic() - began))))


def kill_children() -> int:
    """Kill each child of this process as soon as it has one, and return how many are left.

    Below a process that adopts orphans somebody lives if, and only if, it has a child: the kernel says so, while a
    look through `/proc` misses whoever starts another one and ends while it lasts.
    """
    deadline = time.monotonic() + HUNT_SECONDS
    before: list[bytes] = []
    try:
        listing = os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a kernel without it: the looks through /proc are all there is
        reap()
        return 0
    try:
        while has_children():
            children = os.pread(listing, 1 << 20, 0).split()
            for child in children:
                send_signal(int(child), signal.SIGKILL)
            if time.monotonic() > deadline:
                return len(children)
            if children == before:  # they are dying, for which they need a processor
                time.sleep(DYING_SECONDS / 10)
            before = children
    finally:
        os.close(listing)
    return 0


def freeze(nonce: str, root: int | None, deadline: float) -> set[int]:
    """Stop all that shall be killed before one is: what lives on could start others. Groups are negative numbers."""
    frozen: set[int] = set()
    while True:
        # Without a child there is nobody below a process that adopts orphans: the kernel says so faster than /proc.
        below = find_descendants(root) if root and (root != os.getpid() or has_children()) else {}
        # A storm of processes leaves its killer little time, and one call reaches a whole group. The reaper's own
        # is not among them, as it leads another session; root stands for it all the same, to be sure.
        groups = {-member.group for member in below.values() if member.group not in (0, root, os.getpgrp())}
        fresh = (groups | below.keys()) - frozen or find_marked(nonce) - frozen
        for target in sorted(fresh):
            send_signal(target, signal.SIGSTOP)
        frozen |= fresh
        if not fresh or time.monotonic() > deadline:
            return frozen


def send_signal(target: int, number: int) -> None:
    """Send signal *number*; a process (or group) that is gone or another user's is no fault."""
    with contextlib.suppress(OSError):
        os.kill(target, number)


def is_stopped(pid: int) -> bool:
    """Return whether *pid* was stopped, or traced: it will not do anything until it is continued."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in b"Tt"
    except OSError:
        return False


def reap(child: int = 0) -> tuple[int | None, bool]:
    """Collect the dead, orphans included; the return code of *child* if it was among them, and whether any are left."""
    code = None
    try:
        for _ in range(1000):  # a process that forks without end must not keep the supervisor here
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        return code, False
    return code, True


def has_children() -> bool:
    """Collect the dead, and return whether this process has a child that lives, or one more that is dead."""
    return reap()[1]
