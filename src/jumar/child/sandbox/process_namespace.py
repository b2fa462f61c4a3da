"""Gives a process a namespace of process numbers of its own: it sees no others, and all of it ends with it."""

from __future__ import annotations

import os
import signal

from jumar.child.sandbox.locks import LIBC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import NoReturn

SET_PARENT_DEATH_SIGNAL = 1

SIGNALLED = 128
"""A death by signal n is told as the status of this plus n, as by a shell."""

DESCRIPTORS = 1 << 16


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def enter_namespace(adopter: socket.socket | None = None) -> None:
    """Go on as the first process of the namespace that was unshared; this one waits for it, and ends as it does.

    If an *adopter* is at the other end of a socket, this one ends at once, and leaves the first process to it.
    """
    if pid := os.fork():
        if adopter is None:
            wait_for(pid)
        adopter.sendall(b"%d" % pid)
        os._exit(0)
    if adopter is not None:
        adopter.recv(1)  # adopted: the death of the parent is from here on that of the adopter
        os.setsid()


def start_second(lock: Callable[[], None] = lambda: None) -> None:
    """Go on as the second process: the first one hears no signal that it has no handler for, as programs expect to.

    The first one takes in orphans. It ends with the second, and the kernel ends all others with it. It is locked by
    *lock* if it is not by what this process did to itself already.
    """
    if pid := os.fork():
        lock()
        die_with_parent()
        wait_for(pid)


def wait_for(pid: int) -> NoReturn:
    """Wait until process *pid* has ended, and end as it did."""
    os.closerange(0, DESCRIPTORS)
    ended = status = 0
    while ended != pid:
        ended, status = os.wait()
    os._exit(SIGNALLED + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
