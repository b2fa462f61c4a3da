"""Makes a fork of the zygote what the program of an order would be: the same sandbox, environment and descriptors.

In place of `execve`, which would lose all that is imported. What the kernel does there is done here by hand: close
descriptors, reset signals, let the process be looked into again. What the interpreter does at its start is done as
well: environment, arguments, random state.
"""

from __future__ import annotations

# ruff: noqa: PTH208
import ctypes
import fcntl
import marshal
import os
import random
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

from jumar.child import programs
from jumar.child.analysis import warnings_main
from jumar.child.plain import plain_main
from jumar.child.pytest import pytest_main
from jumar.child.sandbox import bubble, enter_main, locks, probe_main
from jumar.child.two_process.product_process import main as product_main
from jumar.child.two_process.test_process import plugin as tests_plugin
from jumar.child.warm import captured, ready_pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PR_SET_DUMPABLE = 4

PROGRAMS: dict[str, Callable[[], None]] = {
    programs.PYTEST: pytest_main.main,
    programs.PLAIN: plain_main.main,
    programs.TESTS: tests_plugin.main,
    programs.PRODUCT: product_main.main,
    programs.PROBE: probe_main.main,
    programs.WARNINGS: warnings_main.main,
}
"""Programs that a fork can become, by the name that `start.py` is given."""

RESET = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)


def become(order: dict[str, Any], zygote: Zygote) -> None:
    """Become the process that *order* describes. It never returns."""
    try:
        entrance = zygote.entrance
        close_as_exec_does(() if entrance is None else (entrance.proc, entrance.maximum))
        reset_signals()
        locks.LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        argv, env = enter_sandbox(list(order["argv"]), dict(order["env"]), entrance)
        locks.LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        zygote.show_block(argv, env)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[:], sys.orig_argv[:] = argv[-1:], argv
        places = {"room": os.getcwd(), "home": os.environ["HOME"], "tmpdir": os.environ["TMPDIR"]}  # noqa: PTH109
        captured.correct(zygote.captured, places)
        for one in zygote.unseeded:
            one.seed()
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            numpy.seed()
        locks.lose_ctypes()
        ready_pytest.install()
        PROGRAMS[argv[-1]]()
    except BaseException:  # noqa: BLE001  as an interpreter does with what nobody caught
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


class Zygote:
    """Facts about the process that is forked: where its command line lies, and which generators chance has seeded."""

    def __init__(self, unseeded: Sequence[random.Random], taken: captured.Captured) -> None:
        self.unseeded, self.captured = unseeded, taken
        self.entrance: bubble.Entrance | None = None
        """Namespaces that were unshared ahead."""
        with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123
            fields = stat.read().rpartition(b")")[2].split()
        # Format: proc_pid_stat(5); counted after the name.
        self._arguments, self._environment = (int(fields[45]), int(fields[46])), (int(fields[47]), int(fields[48]))

    def show_block(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Write *argv* and *env* where `/proc` reads them: the mark of this process, too, by which it is found."""
        for (start, end), words in ((self._arguments, argv), (self._environment, [f"{k}={v}" for k, v in env.items()])):
            block = b"".join(os.fsencode(word) + b"\0" for word in words)
            if 0 < len(block) <= end - start:
                ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


def move_descriptors(given: dict[int, int], others: Sequence[int]) -> list[int]:
    """Give descriptors the numbers that they have in jumar: wanted number -> the one it came under.

    *others*, which are in use, are moved out of the way; their new numbers.
    """
    above = max((*given, *given.values(), *others)) + 1
    kept = [_move(fd, above) for fd in others]
    moved = {wanted: _move(fd, above) for wanted, fd in given.items()}
    for wanted, fd in moved.items():
        os.dup2(fd, wanted, inheritable=False)
        os.close(fd)
    return kept


def _move(fd: int, above: int) -> int:
    """Return *fd* under a number from *above* on."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(fd)
    return moved


def close_as_exec_does(kept: Sequence[int]) -> None:
    """Close every descriptor that a program started from here would not get, but for those *kept* for a while."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) not in kept and not os.get_inheritable(int(name)):
                os.close(int(name))
        except OSError:  # the listing's own
            continue


def reset_signals() -> None:
    """Give signals the dispositions that a new interpreter has."""
    for number in RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def enter_sandbox(
    argv: list[str], env: dict[str, str], entrance: bubble.Entrance | None
) -> tuple[list[str], dict[str, str]]:
    """Enter the sandbox that *argv* begins with; what is left of it, and the environment in there."""
    if programs.ENTER in argv:
        place = argv.index(programs.ENTER) + 1
        with os.fdopen(int(argv[place]), "rb") as stream:
            order = marshal.loads(stream.read())  # noqa: S302  from jumar
        mask = os.umask(0o022)
        try:
            enter_main.enter(order)
            os.umask(mask)
            os.chdir(order["room"])
        except OSError as fault:
            enter_main.refuse(f"{argv[place + 1]} cannot be started in the sandbox: {fault}")
        return argv[place + 1 :], env
    if "--" in argv:
        try:
            return bubble.enter(argv, env, entrance or bubble.open_namespaces())
        except OSError as fault:
            enter_main.refuse(f"the sandbox cannot be entered: {fault}")
    if entrance is not None:
        enter_main.refuse("a process that was made for a sandbox of its own is to run without one")
    return argv, env
