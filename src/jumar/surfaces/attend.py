"""Runs the asynchronous half from a command, and turns the first Ctrl-C or SIGTERM into a typed end."""

from __future__ import annotations

import gc
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.abc import TaskStatus

from jumar.core.effects import Halt
from jumar.core.stop import StopReason

if TYPE_CHECKING:
    from jumar.kernel import Kernel

Value = TypeVar("Value")


class Attendant:
    """Knows the kernel that is running, if any, and halts it on a signal."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self.interrupted = False

    def begun(self, kernel: Kernel) -> None:
        """From now on a signal halts *kernel*."""
        self._kernel = kernel
        if self.interrupted:
            kernel.halt(Halt(StopReason.INTERRUPTED, "stopped by a signal"))

    def run(self, work: Callable[[], Awaitable[Value]]) -> Value | None:
        """The value of *work*; None if a signal came before there was a kernel to halt."""
        if not gc.isenabled():  # `cli.main` has begun this process: what was loaded until now stays
            gc.freeze()
            gc.enable()
        return anyio.run(self._attend, work)

    async def _attend(self, work: Callable[[], Awaitable[Value]]) -> Value | None:
        value: Value | None = None
        failed: Exception | None = None
        async with anyio.create_task_group() as group:
            await group.start(self._listen, group.cancel_scope)
            try:
                value = await work()
            except Exception as error:  # noqa: BLE001  raised below: a task group would wrap it, and nobody would know it
                failed = error
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return value

    async def _listen(self, scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        # Only the first signal is ours: leaving the receiver lets a second one end the process at once.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                break
        self.interrupted = True
        if self._kernel is None:
            scope.cancel()
        else:
            self._kernel.halt(Halt(StopReason.INTERRUPTED, "stopped by a signal"))
