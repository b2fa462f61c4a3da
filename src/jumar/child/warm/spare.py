"""A spare: a supervisor and its process that wait for an order, with all done already that no order decides.

The cgroup is made and entered, the processes of a sandbox of its own are there, and the pages of the zygote that a run
of pytest writes to are copied. What the order says is then done as in a supervisor that was started.
"""

from __future__ import annotations

# ruff: noqa: B905  zip has no `strict` before Python 3.10
import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from jumar.child.pytest import loaded_code
from jumar.child.sandbox import bubble, locks
from jumar.child.supervisor import process_tree, supervise
from jumar.child.warm.become import Zygote, become, move_descriptors
from jumar.child.warm.messages import receive, send

if TYPE_CHECKING:
    from jumar.child.supervisor.cgroup import Cgroup

POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE, since Linux 5.14."""

POPULATED_BYTES = 96 << 20
"""Most memory whose pages are copied ahead."""


def stand_by(orders: socket.socket, expected: dict[str, Any], zygote: Zygote) -> None:
    """Prepare for the *expected* order, wait for it, and carry it out. It never returns."""
    try:
        os.setsid()
        offer = supervise.open_oom_score()
        supervise.adopt_orphans()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        group = supervise.make_group(expected)
        ours, theirs = socket.socketpair()
        offer("1000")
        child = os.fork()
        if child == 0:
            ours.close()
            orders.close()
            _stand_by_below(theirs, expected, zygote)
        offer("0")
        theirs.close()
        group.enter(child)
        ours.sendall(b"1")
        child = _adopt(child, ours) if expected["view"] else child
        request, given = receive(orders)
        if not request:
            process_tree.send_signal(child, signal.SIGKILL)
            process_tree.destroy(expected["nonce"], os.getpid())
            group.leave()
            os._exit(0)
        orders.close()
        numbers = request["numbers"]
        (below,) = move_descriptors(dict(zip(numbers, given)), (ours.detach(),))
        start = partial(_hand_over, socket.socket(fileno=below), child, group)
        os.dup2(numbers[0], 0)  # the lifeline
        os.close(numbers[0])
        supervise.supervise(numbers[1], numbers[2], supervise.Supervision(start, started=False))
    except BaseException:  # noqa: BLE001  nobody else would tell
        traceback.print_exc()
    finally:
        os._exit(70)


def let_finish(handle: int, orders: socket.socket) -> None:
    """Wait until the process of *handle*, if there is one, is gone, or something comes from *orders*."""
    if handle >= 0:
        select.select([handle, orders.fileno()], [], [])
        os.close(handle)


def _adopt(child: int, ours: socket.socket) -> int:
    """Take over from *child* the first process of its namespace: at the end there is one process less to wait for."""
    first = ours.recv(16)
    if not first:  # the kernel gives no namespace; what *child* ended with tells it
        return child
    with contextlib.suppress(ChildProcessError):  # the handler of the zygote was faster
        os.waitpid(child, 0)
    ours.sendall(b"1")
    return int(first)


def _hand_over(
    ours: socket.socket, child: int, group: Cgroup, order: dict[str, Any], output: int
) -> tuple[int, Cgroup]:
    """Hand the *order* over to the process *child* that waits below a supervisor."""
    fds = [output, order["config"], *order["keep"]]
    send(ours, {**order, "numbers": fds}, fds)
    ours.close()
    return child, group


def _stand_by_below(orders: socket.socket, expected: dict[str, Any], zygote: Zygote) -> None:
    """Wait for the order in the process that carries it out, and become what it says."""
    try:
        os.setsid()
        orders.recv(1)  # it is in its group now, and so is what it forks
        if expected["view"]:
            zygote.entrance = bubble.open_namespaces(orders)
            zygote.entrance.begin(expected["steps"], [bytes.fromhex(one) for one in expected["files"]])
        touch_pages()
        order, given = receive(orders)
        if not order:
            os._exit(0)
        numbers = order["numbers"]
        orders.close()
        if zygote.entrance is not None:
            kept = move_descriptors(dict(zip(numbers, given)), (zygote.entrance.proc, zygote.entrance.maximum))
            zygote.entrance.proc, zygote.entrance.maximum = kept
        else:
            move_descriptors(dict(zip(numbers, given)), ())
        supervise.settle(order, numbers[0])
        become(order, zygote)
    except BaseException:  # noqa: BLE001  as above
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)


def touch_pages() -> None:
    """Copy the pages that a run will write to ahead of it."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
        areas = [line.split() for line in maps]
    left = POPULATED_BYTES
    for words in areas:
        start, end = (int(number, 16) for number in words[0].split("-"))
        if words[1] == "rw-p" and end - start <= left and (len(words) < 6 or words[5] == "[heap]"):  # noqa: PLR2004
            locks.LIBC.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), POPULATE_WRITE)
            left -= end - start
    loaded_code.touch()
