"""Runs the asynchronous half from a command, and turns Ctrl-C and SIGTERM into a typed stop reason.

A signal is heard by a handler of Python's own, which runs between two instructions whatever the event loop does, so
that neither a model that always answers at once nor a long computation can starve it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

import anyio

from jumar.core.run.effects import Halt
from jumar.core.state.stop import StopReason
from jumar.errors import Stopped, is_stopped

if TYPE_CHECKING:
    from jumar.kernel import Kernel

Value = TypeVar("Value")

SIGNALS = (signal.SIGINT, signal.SIGTERM)

PATIENCE_SECONDS = 0.3
"""So long the event loop has to take a signal up by itself; then what keeps it busy is broken off, where it may be."""

FIRST = Halt(StopReason.INTERRUPTED, "stopped by a signal")
SECOND = Halt(StopReason.INTERRUPTED, "stopped by a second signal, without the last verification", unverifiable=True)

STOPPING = "stopping: the run ends with its best tree (press Ctrl-C again to end without a last verification)"
AT_ONCE = "stopping now: the best tree is kept, nothing more is verified"
LEAVING = "stopping: what was started is ended and removed"


class SignalWatcher:
    """Signal handler that halts the running kernels, if any."""

    def __init__(
        self, say: Callable[[str], None] = lambda _text: None, *, quiet: bool = False, patient: bool = False
    ) -> None:
        """Report signals by *say*; unless *quiet*, on standard error if that would come too late.

        Who is *patient* breaks nothing off, however long the event loop takes: with several kernels in the loop, nobody
        knows whose work that would be.
        """
        self._say, self._quiet, self._patient = say, quiet, patient
        self._kernels: list[Kernel] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._count = 0
        self._text = ""

    @property
    def interrupted(self) -> bool:
        """Return whether a signal came."""
        return self._count > 0

    def watch(self, kernel: Kernel) -> None:
        """Let a signal halt *kernel* from now on."""
        self._kernels.append(kernel)
        if self.interrupted:
            kernel.halt(FIRST)

    def run(self, work: Callable[[], Awaitable[Value]]) -> Value | None:
        """Return the value of *work*; None if a signal came before there was a kernel to halt."""
        if not gc.isenabled():  # `cli.main` has begun this process: what was loaded until now stays
            gc.freeze()
            gc.enable()
        with self._listen():
            try:
                return anyio.run(self._attend, work)
            except Stopped:
                return None
            except BaseExceptionGroup as group:
                if not is_stopped(group):
                    raise
                return None

    async def _attend(self, work: Callable[[], Awaitable[Value]]) -> Value | None:
        self._loop = asyncio.get_running_loop()
        with anyio.CancelScope() as self._scope:
            return await work()
        return None  # it was cancelled

    @contextmanager
    def _listen(self) -> Iterator[None]:
        try:
            before = {number: signal.signal(number, self._note_signal) for number in SIGNALS}
        except ValueError:  # signals belong to the main thread
            yield
            return
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._break_off)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        """Record a signal. It may come at any moment, so little is done here."""
        self._count += 1
        last = 2 if self._kernels else 1  # the second one may come while the end is written down
        if self._loop is None or self._count > last:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._text = LEAVING if not self._kernels else STOPPING if self._count == 1 else AT_ONCE
        for kernel in self._running:
            kernel.intend(self._why)
        with suppress(RuntimeError):  # the loop is closed: all is over
            self._loop.call_soon_threadsafe(self._cancel)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)

    def _cancel(self) -> None:
        """Cancel the effect in flight; called by the event loop."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._text:
            self._say(self._text)
        self._text = ""
        running = self._running
        for kernel in running:
            kernel.halt(self._why)
        if not running and self._scope is not None:
            self._scope.cancel()

    def _break_off(self, _number: int, _frame: FrameType | None) -> None:
        """Report a signal while the event loop is blocked, and interrupt what may be interrupted.

        Raises:
            Stopped: where nothing is half written: before there is a run, or within an effect that can be cancelled.
        """
        if self._text and not self._quiet:
            clear = "\r\x1b[K" if os.isatty(2) else ""  # a status line stands there
            os.write(2, f"{clear}{self._text}\n".encode())
        self._text = ""
        free = not self._kernels or self._kernels[-1].interruptible
        if free and not self._patient:
            raise Stopped

    @property
    def _running(self) -> list[Kernel]:
        """The kernels whose runs have not ended."""
        return [kernel for kernel in self._kernels if not kernel.ended]

    @property
    def _why(self) -> Halt:
        return FIRST if self._count == 1 else SECOND
