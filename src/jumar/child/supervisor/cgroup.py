"""Creates a cgroup per process, if the kernel permits it: the kernel then counts, limits, kills and forgets by itself.

It sees what no sum over processes does: memory without a process, and what happens between two looks. And by it one
run leaves nothing for the next in the caches of the kernel: see `Cgroup.empty`. Formats: cgroups(7),
proc_pid_mountinfo(5), Documentation/admin-guide/cgroup-v2.rst of the kernel.
"""

from __future__ import annotations

# pathlib would triple what the reaper imports, and it starts once per verification.
# ruff: noqa: PTH102, PTH106, PTH110, PTH118, PTH120, PTH123
import contextlib
import os

MEMORY = ("memory.max", "memory.limit_in_bytes")
"""Files that bound the memory of a group, in the second and in the first version of control groups."""

_SETTINGS = (
    ("memory.max", "{memory_bytes}"), ("memory.swap.max", "0"), ("memory.oom.group", "1"),
    ("memory.limit_in_bytes", "{memory_bytes}"), ("memory.memsw.limit_in_bytes", "{memory_bytes}"),
    ("pids.max", "{tasks}"),
    ("cpu.weight", "100"), ("cpu.shares", "1024"),
)  # fmt: skip
"""Settings of both versions, in the order in which they are made. Those of the processor are the usual ones: a group
gets as much of it as one process outside, so that a thousand processes cannot starve the one that is to kill them."""

EMPTYING = (("memory.force_empty", "0"), ("memory.reclaim", "1T"), ("memory.max", "0"))
"""Files of both versions by which the kernel gives up all that it keeps for a group, and what is written to them; the
last one where the kernel is older than Linux 5.19."""


def find_group_folders() -> list[str]:
    """Return the control groups that this process is in."""
    with open("/proc/self/cgroup") as listing:
        groups = [line.rstrip("\n").split(":", 2)[1:] for line in listing]
    with open("/proc/self/mountinfo") as listing:
        mounts = [line.split() for line in listing if " - cgroup" in line]
    found = []
    for words in mounts:
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        for controllers, path in groups:
            bounding = {*controllers.split(",")} & {*options} & {"memory", "pids"}
            ours = not controllers if kind == "cgroup2" else bool(bounding)
            inner = os.path.relpath(path, words[3])
            if ours and not inner.startswith(".."):
                found.append(os.path.normpath(os.path.join(words[4], inner)))
    return found


def write(path: str, text: str) -> bool:
    """Write *text* to the file at *path*, if there is one; whether that succeeded."""
    with contextlib.suppress(OSError):
        if os.path.exists(path):
            with open(path, "w") as file:
                file.write(text)
            return True
    return False


class Cgroup:
    """The cgroups of one process and all that it starts; none where this machine does not let one be made."""

    def __init__(self, nonce: str) -> None:
        self._name = f"jumar-{nonce}"
        self.groups: list[str] = []
        """Folders of the groups."""

    def make(self, memory_bytes: int, tasks: int) -> None:
        """Make the cgroups, with bounds on memory and tasks: processes and threads are both tasks."""
        values = {name: value.format(memory_bytes=memory_bytes, tasks=tasks) for name, value in _SETTINGS}
        with contextlib.suppress(OSError, ValueError):
            for folder in find_group_folders():
                # A group of the second version that holds processes has no bounded groups in it: beside it, then.
                for place in (folder, os.path.dirname(folder)):
                    if self._make_bounded(os.path.join(place, self._name), values):
                        break

    def _make_bounded(self, group: str, values: dict[str, str]) -> bool:
        """Make *group*; return whether it bounds anything. If not, it is removed."""
        try:
            os.mkdir(group)
        except OSError:
            return False
        written = [name for name, value in values.items() if write(os.path.join(group, name), value)]
        if written:
            self.groups.append(group)
            return True
        with contextlib.suppress(OSError):
            os.rmdir(group)
        return False

    def enter(self, pid: int = 0) -> None:
        """Move process *pid* into the groups, or this one before it becomes another program."""
        for group in self.groups:
            write(os.path.join(group, "cgroup.procs"), str(pid))

    def find_exceeded(self) -> str:
        """Return which bound was met, `memory` or `processes`, or empty."""
        for group in self.groups:
            for name, word, how in (
                ("memory.events", "oom_kill", "memory"),
                ("memory.oom_control", "oom_kill", "memory"),
                ("pids.events", "max", "processes"),
            ):
                with contextlib.suppress(OSError, ValueError), open(os.path.join(group, name)) as events:
                    if any(key == word and int(count) for key, count in map(str.split, events)):
                        return how
        return ""

    def leave(self) -> None:
        """Remove the groups. That fails while a process is in one, and is tried once."""
        for group in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(group)

    def empty(self) -> None:
        """Make the kernel give up what it keeps because these processes asked for it.

        Pages of files that they were the first to read, and names that they were the first to look up, would be there
        faster for a later process: a word to it. What was there before them is counted to another group, and stays.
        """
        for group in self.groups:
            for name, all_of_it in EMPTYING:
                path = os.path.join(group, name)
                if os.path.exists(path):
                    write(path, all_of_it)  # it fails where a little is left
                    break

    def sweep(self) -> None:
        """Remove the groups of a supervisor that was killed."""
        with contextlib.suppress(OSError, ValueError):
            for folder in find_group_folders():
                self.groups += [os.path.join(place, self._name) for place in (folder, os.path.dirname(folder))]
        self.empty()
        self.leave()
