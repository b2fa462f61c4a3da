"""Supervises a confined process: when that process or jumar ends, everything it started is killed.

Its standard input is a lifeline: the end of it means that jumar is gone. Its arguments are numbers of file descriptors:
the order (marshalled), and where the status (JSON) goes.
"""

from __future__ import annotations

# pathlib and typing would triple what this script imports, and it starts once per verification.
import contextlib
import marshal
import os
import resource
import select
import signal
import sys
import time

from jumar.child.supervisor import cgroup, leaving, process_tree, resource_watch
from jumar.child.supervisor.output_sink import CHUNK, OutputSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Start = Callable[[dict[str, Any], int], tuple[int, cgroup.Cgroup]]
    """Starts the process of an order, given where its output goes; its number and its cgroup. Raises OSError."""

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

PARENT_SECONDS = 0.5
"""Interval at which the supervisor checks that jumar, its parent, still lives."""

FILE_BYTES = 4 << 30
"""No file may grow beyond this: what pytest captures of a test that prints without end lies in one."""


def adopt_orphans() -> None:
    """Become the parent of every orphan below, and unreadable to other processes of the same user."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415  # absent in some builds; the sweep by nonce is the backstop

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def spawn(order: dict[str, Any], output: int, group: cgroup.Cgroup) -> int:
    """Start the process in a session of its own, in *group*; raises OSError if it cannot be executed."""
    failed_r, failed_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            group.enter()
            settle(order, output)
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
    return pid


def settle(order: dict[str, Any], output: int) -> None:
    """Give this process the folder, descriptors and limits of the program that it is about to become."""
    os.chdir(order["cwd"])
    os.dup2(order["config"], 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in order["keep"]:
        os.set_inheritable(fd, True)  # noqa: FBT003  # its only argument
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    if os.getuid():  # root has no such limit
        threads = resource_watch.THREADS * order["processes"] + resource_watch.count_user_threads(os.getuid())
        limit(resource.RLIMIT_NPROC, threads)
    signal.set_wakeup_fd(-1)


def open_oom_score() -> Callable[[str], None]:
    """Set which process the kernel kills first if memory runs out; children inherit it.

    Opened early, as the file is not ours any more once nobody may look into us.
    """
    try:
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return lambda _: None

    def write_score(points: str) -> None:
        with contextlib.suppress(OSError):
            os.write(score, points.encode())

    return write_score


def limit(what: int, most: int) -> None:
    """Lower a limit to *most*, for good, if it is higher."""
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def raise_priority() -> None:
    """Raise the priority of this process, where allowed: a fork bomb leaves no time."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def watch(
    family: leaving.Family,
    output: tuple[int, OutputSink],
    means: Supervision,
    tolls: resource_watch.ResourceWatch,
    deadline: float,
) -> dict[str, object]:
    """Wait for the first of: the process's end, too high a toll, the deadline, jumar's end. Its output is drained.

    The status has the number of the process as `leaving` where it cannot be waited for yet.
    """
    woken = means.woken
    pipe, sink = output
    raise_priority()
    # The parent of a fork is the zygote, which may be replaced while this runs: then the lifeline alone counts.
    parent = os.getppid() if means.started else 0
    sources = [0, pipe, woken]
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return {"how": "timeout"}
        ready = select.select(sources, [], [], min(left, PARENT_SECONDS, tolls.seconds))[0]
        if 0 in ready or (means.started and os.getppid() != parent):
            return {"how": "lifeline"}
        if pipe in ready:
            data = os.read(pipe, CHUNK)
            sink.add(data)
            if not data:
                sources.remove(pipe)
                if (code := leaving.await_leaving(family)) is not None and not tolls.find_exceeded():
                    return {"how": "exit", "code": code, "leaving": family.child}
        if woken in ready:
            os.read(woken, CHUNK)
        code, _ = process_tree.reap(family.child)
        # A family that the kernel ended for its toll looks as if its child had crashed.
        high: dict[str, object] | None = tolls.look() if code is None else tolls.find_exceeded() if code else None
        if high is not None:
            return high
        if code is not None:
            return {"how": "exit", "code": code}


def main() -> None:
    """Start and supervise the process that an order describes."""
    order_fd, status_fd = map(int, sys.argv[1:])
    write_score = open_oom_score()
    adopt_orphans()

    def start(order: dict[str, Any], output: int) -> tuple[int, cgroup.Cgroup]:
        group = make_group(order)
        write_score("1000")
        try:
            return spawn(order, output, group), group
        except OSError:
            group.leave()
            raise
        finally:
            write_score("0")

    supervise(order_fd, status_fd, Supervision(start, started=True))


def hear_signals() -> int:
    """Hear signals without dying of them; return the descriptor that tells of one."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # a handler, as SIG_IGN would be inherited by the tests
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    return woken


def make_group(order: dict[str, Any]) -> cgroup.Cgroup:
    """Make the cgroup of a process."""
    group = cgroup.Cgroup(order["nonce"])
    group.make(order["memory_bytes"], resource_watch.THREADS * order["processes"])
    return group


class Supervision:
    """Way of a supervisor to its process; *started* if jumar itself is its parent."""

    def __init__(self, start: Start, *, started: bool) -> None:
        self.start, self.started, self.woken = start, started, hear_signals()


def supervise(order_fd: int, status_fd: int, means: Supervision) -> None:
    """Carry out the order that lies in one descriptor, tell the other one how it went, and exit."""
    with os.fdopen(order_fd, "rb") as stream:
        order = marshal.loads(stream.read())  # noqa: S302  from jumar
    # They were made inheritable to get here; the process below gets those alone that it shall keep.
    for fd in (status_fd, order["config"], order["output"], *order["keep"]):
        os.set_inheritable(fd, False)  # noqa: FBT003  # its only argument
    status, bury = run_order(order, means)
    with contextlib.suppress(OSError):
        os.write(status_fd, encode_status(status))
        os.close(status_fd)  # jumar goes on at once; to take the memory of a fork away takes the kernel a while
    if "leaving" in status:
        os.waitid(os.P_PID, status["leaving"], os.WEXITED | os.WNOWAIT)  # asleep: jumar needs this processor now
        bury()
    os._exit(0)


def run_order(order: dict[str, Any], means: Supervision) -> tuple[dict[str, Any], Callable[[], int]]:
    """Start the process, watch it, and end all that is left of it; how it went.

    Where the process is `leaving`, nothing of it runs any more; what ends it for good is returned, to be called later.
    """
    deadline = time.monotonic() + order["seconds"]
    pipe, child_output = os.pipe()
    sink = OutputSink(order["output"], order["cap"])
    try:
        child, group = means.start(order, child_output)
    except OSError as error:
        return {"how": "unstarted", "error": error.strerror}, int
    for fd in (order["config"], child_output, *order["keep"]):
        os.close(fd)
    encode_status({})  # while the process starts, so that nothing has to be loaded when it is over
    tolls = resource_watch.ResourceWatch(order, lambda: process_tree.find_descendants(os.getpid()), group.find_exceeded)

    def bury() -> int:
        # Most of a storm is over with one call, and then there is time for the rest of it.
        process_tree.send_signal(-child, signal.SIGKILL)
        survivors = process_tree.destroy(order["nonce"], os.getpid())
        if order["forgets"]:
            group.empty()
        group.leave()
        return survivors

    status = watch(leaving.Family(child, order["nonce"]), (pipe, sink), means, tolls, deadline)
    status["survivors"] = 0 if "leaving" in status else bury()
    sink.drain(pipe)
    sink.close()
    return status, bury


def encode_status(status: dict[str, object]) -> bytes:
    """Return *status*, of texts and integers, in JSON. To load the whole of `json` takes as long as all the rest."""
    try:
        from _json import encode_basestring_ascii as quote  # noqa: PLC0415  the part of `json` that is in C
    except ImportError:  # an interpreter without it
        from json import dumps as quote  # noqa: PLC0415
    pairs = (f"{quote(name)}: {quote(value) if type(value) is str else value}" for name, value in status.items())
    return f"{{{', '.join(pairs)}}}".encode()
