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

    The first process of a namespace leaves when the second one does. It does not count where anything that they
    started is left: a child of this process, which adopts orphans, or of theirs, or what bears their mark.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = _find_line(family.child)
        for _ in range(LOOKS):
            fields = _read_stat(line[-1])
            if fields[0] in b"ZX":
                return None
            if int(fields[THREADS]) == 1 and int(fields[BYTES]) == 0:
                return _judge(line) if _is_alone(line, family.nonce) else None
            time.sleep(LOOK_SECONDS)
    return None


def _find_line(child: int) -> list[int]:
    """Return the process, and, where it is the first one of a namespace, the second one, for which it waits.

    Raises:
        ValueError: if a first process has another child, or the second one is gone: an orphan has another status.
    """
    if _find_inner_number(child) != 1:
        return [child]
    (second,) = _list_children(f"{child}/task/{child}")
    if _find_inner_number(second) != 2:  # noqa: PLR2004  never given twice
        raise ValueError
    return [child, second]


def _is_alone(line: list[int], nonce: str) -> bool:
    """Return whether nothing is left but a process without memory, and the one that waits for it.

    Without memory it cannot go on, nor start another one. The dead are in these lists, until they are waited for.
    """
    below: list[int] = []
    for number in reversed(line):  # upwards, as orphans move
        if _list_children(f"{number}/task/{number}") != below:
            return False
        below = [number]
    # Nobody can leave a namespace, and to look for the mark takes a millisecond.
    return _list_children("thread-self") == below and (len(line) > 1 or process_tree.find_marked(nonce) <= {*line})


def _judge(line: list[int]) -> int | None:
    """Return the exit status of the last in *line*; None: a first process tells this end in words of its own.

    Raises:
        OSError: if the status is hidden, or the last one was waited for by the first, so that lists may lack somebody.
    """
    with contextlib.suppress(FileNotFoundError):  # it has none any more; PermissionError: the status is shown as 0
        os.readlink(f"/proc/{line[-1]}/cwd")
    code = os.waitstatus_to_exitcode(int(_read_stat(line[-1])[STATUS]))
    return None if code < 0 and len(line) > 1 else code


def _read_stat(number: int) -> list[bytes]:
    with open(f"/proc/{number}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()


def _find_inner_number(number: int) -> int:
    """Return the number of a process in its own namespace; 0: this kernel does not tell."""
    with open(f"/proc/{number}/status", "rb") as status:
        return int((b"0" + status.read().partition(b"\nNSpid:")[2].partition(b"\n")[0]).split()[-1])


def _list_children(task: str) -> list[int]:
    with open(f"/proc/{task}/children", "rb") as children:
        return [int(number) for number in children.read().split()]
