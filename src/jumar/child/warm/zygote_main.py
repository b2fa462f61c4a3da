"""Imports what verifications need, once, and then forks a supervisor for each request; see `jumar.child.warm`.

Its standard input holds its order (JSON), the descriptor named there is its end of a pair of sockets. It runs no code
of any room. The end of the socket means that jumar is gone, and so is the zygote then.
"""

from __future__ import annotations

import array
import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from jumar.child.sandbox import locks
from jumar.child.supervisor import supervise
from jumar.child.warm import preload
from jumar.child.warm.become import Zygote, become

MESSAGE_BYTES = 4096
DESCRIPTORS = 200
"""Most that come with one request; the kernel passes 253."""

PR_SET_DUMPABLE = 4


def main() -> None:
    """Import what the order names, say what came of it, and serve until jumar is gone."""
    with os.fdopen(os.dup(0), "rb") as stream:
        order = json.loads(stream.read())
    control = socket.socket(fileno=order["socket"])
    control.set_inheritable(False)
    preload.open_null_devices()
    report, unseeded = preload.preload(order["modules"], order["plugins"], control.fileno())
    zygote = Zygote(unseeded)
    locks.LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's; jumar decides
    signal.signal(signal.SIGCHLD, _collect)
    gc.collect()
    gc.freeze()
    control.sendall(json.dumps(report).encode() + b"\n")
    while _serve(control, zygote):
        pass
    os._exit(0)


def _collect(*_: object) -> None:
    """Take the dead away."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _serve(control: socket.socket, zygote: Zygote) -> bool:
    """Fork for one request; whether there was one."""
    data, ancillary, _, _ = control.recvmsg(MESSAGE_BYTES, socket.CMSG_LEN(4 * DESCRIPTORS))
    if not data:
        return False
    given = array.array("i")
    for _, _, content in ancillary:
        given.frombytes(content)
    numbers: list[int] = json.loads(data)
    # Until jumar holds a handle of the new process, its number must not become another one's.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    pid = os.fork()
    if pid == 0:
        _supervise(control, numbers, list(given), zygote)
    for fd in given:
        os.close(fd)
    handle = os.pidfd_open(pid)
    control.sendmsg([b"%d\n" % pid], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))])
    os.close(handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
    return True


def _supervise(control: socket.socket, numbers: list[int], given: list[int], zygote: Zygote) -> None:
    """Become the supervisor of one request: the first of *numbers* is the lifeline's, then order and status."""
    try:
        os.setsid()
        control.close()
        lifeline, order, status = numbers[:3]
        install_descriptors(dict(zip(numbers, given, strict=True)))
        os.dup2(lifeline, 0)
        os.close(lifeline)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

        def joined(described: dict[str, Any]) -> None:
            become(described, zygote)

        supervise.supervise(order, status, joined)
    finally:
        os._exit(70)


def install_descriptors(given: dict[int, int]) -> None:
    """Give each descriptor the number that it has in jumar: wanted number -> number it came under."""
    above = max((*given, *given.values())) + 1
    moved = {}
    for wanted, fd in given.items():
        moved[wanted] = preload.move(fd, above)
    for wanted, fd in moved.items():
        os.dup2(fd, wanted, inheritable=False)
        os.close(fd)


if __name__ == "__main__":
    sys.exit("started by jumar")
