"""The handle of one zygote: starts it, waits for it, has it fork a supervisor, and ends it."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from jumar.child import programs, start
from jumar.child.warm import messages
from jumar.process.launch import Launch, hold

START_SECONDS = 30.0
"""A zygote that takes longer is given up."""

LOOK_SECONDS = 0.005
"""Interval at which who waits for a zygote looks whether it is ready."""

REPLY_SECONDS = 5.0
"""A zygote that takes longer to fork is given up."""

PAD = "x" * 4096
"""Room for the environment of a fork, which is written over the zygote's own."""

ARGUMENT = 64
"""Length of the last argument."""

LARGEST_TEST = 96 << 10
"""A larger test file is left to the forks: a request may have to wait until one is rewritten."""

ALL_TEST_BYTES = 4 << 20
"""Size of all that a zygote rewrites."""


class ZygoteReport(msgspec.Struct, frozen=True):
    """Answer of a zygote that is ready."""

    refused: str = ""
    """Reason that nothing may be forked from it; empty: there is none."""
    modules: int = 0
    names: tuple[str, ...] = ()
    """Top-level modules that it has beyond those that a cold process has before the first line of a room."""
    files: tuple[str, ...] = ()
    """Files and folders of installed packages: it is out of date when one of them changes."""


class Expected(msgspec.Struct, frozen=True):
    """A request before it comes: a spare process is made ready for it."""

    nonce: str
    memory_bytes: int
    processes: int
    view: bool = False
    """True if its sandbox has a view of its own, as bubblewrap makes it."""
    steps: tuple[tuple[str, list[str]], ...] = ()
    """Arguments that begin the view, and are the same for every room."""
    files: tuple[str, ...] = ()
    """Contents of the files that they name, as hexadecimal digits."""

    def is_like(self, other: Expected) -> bool:
        """Return whether they differ in nothing but their marks."""
        return msgspec.structs.replace(self, nonce=other.nonce) == other

    def renew(self) -> Expected:
        """Return the same for the request after it."""
        return msgspec.structs.replace(self, nonce=os.urandom(16).hex())


class ZygoteStart(NamedTuple):
    """The interpreter, environment and modules of a zygote."""

    python: tuple[str, ...]
    """The interpreter and its options."""
    env: Mapping[str, str]
    modules: tuple[str, ...]
    """Installed modules that it imports."""
    plugins: bool
    """True if it imports pytest and its plug-ins, too."""
    expected: Expected
    unhurried: bool = False
    """True if it makes a process ready for the next request when the last one is done, and not beside it."""


class ForkedSupervisor:
    """Handle of a supervisor that a zygote forked."""

    def __init__(self, pid: int, handle: int) -> None:
        self.pid, self._handle, self._lock = pid, handle, threading.Lock()
        self._close = weakref.finalize(self, os.close, handle)

    def wait(self) -> object:
        """Wait until it is gone."""
        with self._lock:  # two may wait, and one of them closes the handle
            if self._close.alive:
                select.select([self._handle], [], [])
                self._close()
        return None

    def kill(self) -> None:
        """Kill it; one that is gone already is no fault."""
        if self._close.alive:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)


class Zygote:
    """A process that has imported what a `ZygoteStart` names."""

    def __init__(self, given: ZygoteStart) -> None:
        self.report = ZygoteReport()
        self.forks = 0
        self.was_first = False
        """True if a first run was forked from it."""
        self._stamp: tuple[object, ...] = ()
        self._ready = self._dead = False
        self._lock = threading.Lock()
        self._said = b""
        self._plugins, self._size = given.plugins, 0
        self.modules = given.modules
        self.rewritten: set[str] = set()
        """Hashes of the test files that it has rewritten."""
        self._folder = tempfile.mkdtemp(prefix="jumar-zygote-")
        self._until = time.monotonic() + START_SECONDS
        ours, theirs = socket.socketpair()
        self._expected, self._other = given.expected, given.expected
        order = {
            "modules": given.modules,
            "plugins": given.plugins,
            "socket": theirs.fileno(),
            "expected": msgspec.to_builtins(given.expected),
            "unhurried": given.unhurried,
        }
        places = {name: str(Path(self._folder, name.lower())) for name in ("HOME", "TMPDIR")}
        for place in places.values():
            Path(place).mkdir()
        with theirs, hold(json.dumps(order).encode()) as config:
            self._process = subprocess.Popen(  # noqa: S603  the interpreter of the task, our script
                [*given.python, start.__file__, programs.ZYGOTE, PAD[:ARGUMENT]],
                stdin=config.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**given.env, **places, "JUMAR_ROOM": "0" * 32, "JUMAR_PAD": PAD},
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(0)
        self._control = ours

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Return whether it can fork."""
        self._hear()
        return self._ready and not self._dead

    @property
    def has_failed(self) -> bool:
        """Return whether it never became ready, and will not."""
        return not (self._ready or self.is_starting)

    @property
    def is_starting(self) -> bool:
        """Return whether it may become ready."""
        self._hear()
        return not (self._ready or self._dead) and time.monotonic() < self._until

    @property
    def is_dead(self) -> bool:
        """Return whether it is gone, or has not become ready in time."""
        return not (self.is_ready or self.is_starting)

    @property
    def is_current(self) -> bool:
        """Return whether nothing that it imported has changed since."""
        return self._stamp == _read_stamp(self.report.files)

    async def settle(self) -> None:
        """Wait until it is ready, or is not going to be."""
        while self.is_starting:  # noqa: ASYNC110  who waits for the socket waits in vain once another run has read it
            await anyio.sleep(LOOK_SECONDS)

    def fork(self, expected: Expected, launch: Launch) -> ForkedSupervisor | None:
        """Have a supervisor forked for what `claim` returned; None: the zygote is gone, or does not answer."""
        numbers = list(dict.fromkeys((launch.lifeline, launch.order, launch.status, *launch.passed)))
        after = self._expected
        # What is alike is told by its mark alone: with the arguments of a sandbox it is long.
        parts = {"expected": expected, "next": after.nonce if after.is_like(expected) else after}
        try:
            with self._lock:  # runs may have threads of their own
                return self._ask(parts, numbers)
        except (OSError, ValueError):
            self.close()
            return None

    def _ask(self, parts: Mapping[str, object], numbers: Sequence[int]) -> ForkedSupervisor:
        """Send a request, and wait for the answer."""
        self._control.settimeout(REPLY_SECONDS)
        messages.send(self._control, {"numbers": numbers, **msgspec.to_builtins(parts)}, numbers)
        said, handles, _, _ = socket.recv_fds(self._control, 64, 1)
        if not handles:
            raise OSError("the zygote is gone")
        return ForkedSupervisor(int(said), handles[0])

    def claim(self, wanted: Expected) -> Expected:
        """Return *wanted* as the request that a process is ready for, or as another one.

        The one after it is expected to be the same. A single one that differs (a probe) changes nothing of that.
        """
        self.forks += 1
        if wanted.is_like(self._expected):
            claimed = self._expected
        else:
            claimed = wanted.renew()
            if not wanted.is_like(self._other):
                self._other = claimed
                return claimed
        self._expected = self._other = claimed.renew()  # nobody else gets that one
        return claimed

    def expect(self, wanted: Expected) -> None:
        """Have a process made ready for *wanted*."""
        if not (self._dead or wanted.is_like(self._expected)):
            self._expected = self._other = wanted.renew()
            with contextlib.suppress(OSError), self._lock:  # it is gone, which is seen when it is asked
                messages.send(self._control, {"next": msgspec.to_builtins(self._expected)}, ())

    def rewrite(self, tests: Mapping[str, bytes]) -> None:
        """Have the test files (hash -> source) rewritten that it has not got yet, for all that is forked later."""
        new: dict[str, bytes] = {}
        for name in tests.keys() - self.rewritten if self._plugins and not self._dead else ():
            if len(tests[name]) <= LARGEST_TEST and self._size + len(tests[name]) <= ALL_TEST_BYTES:
                new[name] = tests[name]
                self._size += len(tests[name])
        self.rewritten.update(new)
        if new:
            # It is gone if that fails, which is seen when it is asked.
            with contextlib.suppress(OSError), hold(marshal.dumps(list(new.values()))) as content, self._lock:
                messages.send(self._control, {"tests": len(new)}, [content.fileno()])

    def close(self) -> None:
        """End it. What it forked goes on, and ends with its own lifeline."""
        self._dead = True
        self._control.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _hear(self) -> None:
        """Read the report, if it is there."""
        while not (self._ready or self._dead):
            try:
                piece = self._control.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            self._said += piece
            if self._said.endswith(b"\n"):
                self.report = msgspec.json.decode(self._said, type=ZygoteReport)
                self._ready, self._said = True, b""
                self._stamp = _read_stamp(self.report.files)
            elif not piece:
                self.close()


def _read_stamp(files: Sequence[str]) -> tuple[object, ...]:
    """Return a stamp that changes when one of *files* does."""
    return tuple(_read_times(file) for file in files)


def _read_times(file: str) -> Any:
    try:
        found = os.stat(file)  # noqa: PTH116  hundreds of them, before each fork
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
