"""Between jumar and a confined process: when that process ends, or jumar does, everything it started is killed.

A standalone script, standard library only. Its standard input is a lifeline: the end of it means that jumar is gone.
Its arguments are numbers of file descriptors: the order (JSON), and where the status (JSON) goes.
"""

from __future__ import annotations

# pathlib and typing would triple what this script imports, and it starts once per verification.
# ruff: noqa: PTH123, PTH208
import collections
import contextlib
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

KILL_SECONDS = 1.0
"""How long killing may take; what is left then is reported."""

LOOK_SECONDS = 0.5
"""How often the reaper looks whether jumar, its parent, still lives."""

FILE_BYTES = 4 << 30
"""No file may grow beyond this: what pytest captures of a test that prints without end lies in one."""

CHUNK = 1 << 18

THREADS = 14
"""Place of the number of threads in `/proc/PID/stat`, counted after the process group."""


class Output:
    """What the process printed, head and tail: the middle is counted and dropped, whatever its size."""

    def __init__(self, fd: int, cap: int) -> None:
        self._fd = fd
        self._cap = cap
        self._head = 0
        self._tail: collections.deque[bytes] = collections.deque()
        self._held = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take *data*: the head is written at once, the rest is held until it is pushed out."""
        room = self._cap - self._head
        if room > 0:
            self._write(data[:room])
            self._head += len(data[:room])
            data = data[room:]
        if data:
            self._tail.append(data)
            self._held += len(data)
        while self._tail and self._held - len(self._tail[0]) >= self._cap:
            gone = len(self._tail.popleft())
            self._held -= gone
            self.dropped += gone

    def close(self) -> None:
        """Write the tail, after a line that says how much is missing."""
        if self.dropped:
            self._write(b"\n[jumar: %d bytes of output dropped here]\n" % self.dropped)
        for data in self._tail:
            self._write(data)

    def _write(self, data: bytes) -> None:
        # A full disk must not cost the verdict: the output is for people, the records are the evidence.
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._fd, data) :]


def adopt_orphans() -> None:
    """Become the parent of every orphan below, and unreadable to other processes of the same user."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415  # absent in some builds; the sweep by nonce is the backstop

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def descendants(root: int) -> dict[int, int]:
    """The living processes below *root*, and the group of each."""
    children: dict[int, list[int]] = {}
    groups: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                state, parent, group, *rest = stat.read().rpartition(b")")[2].split()
                # Whose first thread is dead still lives while another one runs.
                if state not in b"ZX" or int(rest[THREADS]) > 1:
                    children.setdefault(int(parent), []).append(int(name))
                    groups[int(name)] = int(group)
    found: dict[int, int] = {}
    todo = [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found[pid] = groups[pid]
                todo.append(pid)
    return found


def bearers(nonce: str) -> set[int]:
    """The living processes that were started with *nonce* in their environment."""
    mark = b"JUMAR_ROOM=" + nonce.encode()
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
                if mark in environ.read().split(b"\0"):
                    found.add(int(name))
    return found


def destroy(nonce: str, root: int | None) -> int:
    """Kill all below *root* and all that bear *nonce*, and count those that would not die in time.

    Called by the reaper on itself, and by jumar on a reaper that does not answer (or with None where it is gone).
    """
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        frozen = freeze(nonce, root, deadline)
        for target in frozen:
            signal_to(target, signal.SIGKILL)
        if root == os.getpid():
            reap(-1)
        if not frozen:
            return 0
        if time.monotonic() > deadline:
            return sum(target > 0 for target in frozen)


def freeze(nonce: str, root: int | None, deadline: float) -> set[int]:
    """Stop all that shall be killed before one is: what lives on could start others. Groups are negative numbers."""
    frozen: set[int] = set()
    while True:
        below = descendants(root) if root else {}
        # A storm of processes leaves its killer little time, and one call reaches a whole group. The reaper's own
        # is not among them, as it leads another session; root stands for it all the same, to be sure.
        groups = {-group for group in below.values() if group not in (0, root, os.getpgrp())}
        fresh = (groups | below.keys() | bearers(nonce)) - frozen
        for target in sorted(fresh):
            signal_to(target, signal.SIGSTOP)
        frozen |= fresh
        if not fresh or time.monotonic() > deadline:
            return frozen


def signal_to(target: int, number: int) -> None:
    """Send signal *number*; a process (or group) that is gone or another user's is no fault."""
    with contextlib.suppress(OSError):
        os.kill(target, number)


def reap(child: int) -> int | None:
    """Collect the dead, orphans included; the return code of *child* if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        for _ in range(1000):  # a process that forks without end must not keep the reaper here
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return code


def spawn(order: dict[str, Any], output: int) -> int:
    """Start the process in a session of its own; raises OSError if it cannot be executed."""
    failed_r, failed_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.chdir(order["cwd"])
            os.dup2(order["config"], 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            for fd in order["keep"]:
                os.set_inheritable(fd, True)  # noqa: FBT003  # its only argument
            limit(resource.RLIMIT_CORE, 0)
            limit(resource.RLIMIT_FSIZE, FILE_BYTES)
            signal.set_wakeup_fd(-1)
            os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606  # the point of a reaper
        except OSError as error:
            os.write(failed_w, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(failed_w)
    with os.fdopen(failed_r, "rb") as stream:
        failure = stream.read()
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    for fd in (order["config"], output, *order["keep"]):
        os.close(fd)
    return pid


def limit(what: int, most: int) -> None:
    """Lower a limit to *most*, for good, if it is higher."""
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def watch(child: int, output: tuple[int, Output], woken: int, seconds: float) -> dict[str, object]:
    """Wait for the first of: the child's end, the deadline, jumar's end. Its output is drained meanwhile."""
    pipe, sink = output
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)  # where it may: what it kills must not starve it
    parent, deadline = os.getppid(), time.monotonic() + seconds
    sources = [0, pipe, woken]
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return {"how": "timeout"}
        ready = select.select(sources, [], [], min(left, LOOK_SECONDS))[0]
        if 0 in ready or os.getppid() != parent:
            return {"how": "lifeline"}
        if pipe in ready:
            data = os.read(pipe, CHUNK)
            sink.add(data)
            if not data:
                sources.remove(pipe)
        if woken in ready:
            os.read(woken, CHUNK)
        code = reap(child)
        if code is not None:
            return {"how": "exit", "code": code}


def drain(pipe: int, sink: Output) -> None:
    """Take what the dead left in the pipe. A survivor may still write, so this does not wait for the end."""
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(1 << 10):
            data = os.read(pipe, CHUNK)
            if not data:
                return
            sink.add(data)


def main(order_fd: int, status_fd: int) -> None:
    """Carry out one order."""
    with os.fdopen(order_fd, "rb") as stream:
        order = json.loads(stream.read())
    # They were made inheritable to get here; the process below gets those alone that it shall keep.
    for fd in (status_fd, order["config"], order["output"], *order["keep"]):
        os.set_inheritable(fd, False)  # noqa: FBT003  # its only argument
    adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # a handler, as SIG_IGN would be inherited by the tests
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    pipe, child_output = os.pipe()
    sink = Output(order["output"], order["cap"])
    try:
        child = spawn(order, child_output)
    except OSError as error:
        status: dict[str, object] = {"how": "unstarted", "error": error.strerror}
    else:
        status = watch(child, (pipe, sink), woken, order["seconds"])
        status["survivors"] = destroy(order["nonce"], os.getpid())
        drain(pipe, sink)
        sink.close()
    with contextlib.suppress(OSError):
        os.write(status_fd, json.dumps(status).encode())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
