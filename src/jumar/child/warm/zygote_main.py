"""Imports what verifications need, once, and then forks a supervisor for each request; see `jumar.child.warm`.

Its standard input holds its order (JSON), the descriptor named there is its end of a pair of sockets. It runs no code
of any room. The end of the socket means that jumar is gone, and so is the zygote then.
"""

from __future__ import annotations

import array
import gc
import json
import marshal
import os
import select
import shutil
import signal
import socket
from typing import TYPE_CHECKING, Any

from jumar.child.sandbox import locks
from jumar.child.warm import captured, preload, rewritten_tests
from jumar.child.warm.become import PR_SET_DUMPABLE, Zygote, reset_signals
from jumar.child.warm.messages import receive, send
from jumar.child.warm.spare import let_finish, stand_by

if TYPE_CHECKING:
    from collections.abc import Sequence

PRELOAD_SECONDS = 60
"""A module whose import takes longer ends the zygote."""


def main() -> None:
    """Import the modules of the order, report the result, and serve until jumar is gone."""
    gc.disable()  # while modules are loaded, which all stay
    began = captured.read_clocks()
    with os.fdopen(os.dup(0), "rb") as stream:
        order = json.loads(stream.read())
    control = socket.socket(fileno=order["socket"])
    control.set_inheritable(False)
    preload.open_null_devices()
    reset_signals()  # what jumar ignores (started by nohup, in the background) a started process does not ignore either
    signal.alarm(PRELOAD_SECONDS)
    report, unseeded = preload.preload(order["modules"], control.fileno(), plugins=order["plugins"])
    signal.alarm(0)
    folder = os.path.dirname(os.environ["HOME"])  # noqa: PTH120
    zygote = Zygote(unseeded, captured.find_captured(folder, began))
    began.clear()  # no fork shall know it
    shutil.rmtree(folder, ignore_errors=True)  # made for the imports; jumar may be killed any time
    locks.LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's; jumar decides
    signal.signal(signal.SIGCHLD, _collect)
    gc.freeze()
    gc.enable()
    control.sendall(json.dumps(report).encode() + b"\n")
    _serve(control, zygote, order["expected"], unhurried=order["unhurried"])


def _collect(*_: object) -> None:
    """Reap the children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _serve(control: socket.socket, zygote: Zygote, expected: dict[str, Any], *, unhurried: bool) -> None:
    """Hand each request to a spare process, and make the next one while it works.

    One that was not expected gets a process of its own, and the spare is kept for what is. Between requests, test files
    are rewritten: one that comes meanwhile waits for one file at most. *unhurried*: the next process is made ready once
    the last one is done, which it would slow down.
    """
    spare, after = Spare(control, zygote, expected), -1
    tests: list[bytes] = []
    while True:
        if tests and not select.select([control], [], [], 0)[0]:
            rewritten_tests.prepare(tests.pop())
            if not tests:
                gc.collect()
                gc.freeze()
                spare.end()
                spare = Spare(control, zygote, spare.expected)
            continue
        request, fds = receive(control)
        if not request:
            os._exit(0)
        if "expected" in request:
            known = spare.expected == request["expected"]
            one = spare if known else Spare(control, zygote, request["expected"], (*fds, spare.socket.fileno()))
            send(one.socket, {"numbers": request["numbers"]}, fds)  # the rest is long
            for fd in fds:
                os.close(fd)
            rights = array.array("i", [one.handle])
            control.sendmsg([b"%d\n" % one.pid], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            after = os.dup(one.handle) if known and unhurried else -1
            one.close()
        if "tests" in request:
            with os.fdopen(fds[0], "rb") as stream:
                tests += marshal.loads(stream.read())  # noqa: S302  from jumar
        following = _find_next(request, spare.expected)
        if spare.expected != following:
            spare.close()
            spare = Spare(control, zygote, following, after=after)
            after = -1


def _find_next(request: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return what is expected after *request*: one that is like it is told by its mark alone."""
    following = request.get("next", expected)
    return {**request["expected"], "nonce": following} if type(following) is str else following


class Spare:
    """A supervisor that waits for its order, made for an *expected* one. Without its socket it ends."""

    def __init__(
        self, control: socket.socket, zygote: Zygote, expected: dict[str, Any], fds: Sequence[int] = (), after: int = -1
    ) -> None:
        """*fds* came with a request, and are not for it yet. *after* is the handle of a process to let finish first."""
        self.expected = expected
        self.socket, theirs = socket.socketpair()
        # Until there is a handle of the new process, its number must not become another one's.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (control.detach(), self.socket.detach(), *fds):
                os.close(fd)
            let_finish(after, theirs)
            stand_by(theirs, expected, zygote)
        if after >= 0:
            os.close(after)
        self.handle = os.pidfd_open(self.pid)
        theirs.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))

    def close(self) -> None:
        """Release the spare: one without an order ends. Closing it twice changes nothing."""
        self.socket.close()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def end(self) -> None:
        """Release the spare, and wait for its end: it kills all that has its mark then, which the next one has too."""
        self.socket.close()
        select.select([self.handle], [], [])
        self.close()
