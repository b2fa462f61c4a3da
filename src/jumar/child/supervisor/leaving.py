"""Tells that a process has come to its end before it can be waited for.

A process that leaves gives its memory back first, and only then does its parent hear of it. For a fork of a process
that has imported much, that takes the kernel 5 to 20 ms, in which no line of it runs any more.
"""

from __future__ import annotations

# pathlib and typing would triple what the supervisor imports, and it starts once per verification.
# ruff: noqa: PTH115, PTH123
import contextlib
import os
import time

from jumar.child.supervisor import process_tree

LOOKS, LOOK_SECONDS = 20, 0.0001
"""Looks at whether a process that has closed its output leaves, and the pause before each other one."""

THREADS, BYTES, STATUS = 17, 20, 49
"""Places in `/proc/PID/stat`, counted after the name: threads, bytes of memory, the status for `waitpid`. Format:
proc_pid_stat(5)."""


class Family:
    """A process, and the mark in the environment of all that it starts."""

    __slots__ = ("child", "nonce")

    def __init__(self, child: int, nonce: str) -> None:
        self.child, self.nonce = child, nonce


def await_leaving(family: Family) -> int | None:
    """Look for a moment whether a process leaves; return its exit status, or None: it has to be waited for.

    It does not count where anything that it started is left: a child of this process, which adopts orphans, or of the
    one that leaves, or what bears their mark.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for _ in range(LOOKS):
            with open(f"/proc/{family.child}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
            if fields[0] in b"ZX":
                return None
            if int(fields[THREADS]) == 1 and int(fields[BYTES]) == 0:
                return os.waitstatus_to_exitcode(int(fields[STATUS])) if _is_alone(family) else None
            time.sleep(LOOK_SECONDS)
    return None


def _is_alone(family: Family) -> bool:
    """Return whether nothing is left but a process without memory, whose status this process may see.

    Without memory it cannot go on, nor start another one. The dead are in these lists, until they are waited for.
    """
    with contextlib.suppress(FileNotFoundError):  # it has none any more; PermissionError: the status is shown as 0
        os.readlink(f"/proc/{family.child}/cwd")
    return (
        not _list_children(f"{family.child}/task/{family.child}")
        and _list_children("thread-self") == [family.child]
        and process_tree.find_marked(family.nonce) <= {family.child}
    )


def _list_children(task: str) -> list[int]:
    with open(f"/proc/{task}/children", "rb") as children:
        return [int(number) for number in children.read().split()]
