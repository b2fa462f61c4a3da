"""Stops a run for reasons from outside the core, and cancels the effect in flight."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio
from msgspec.structs import replace

from jumar.core.run.effects import Effect, Halt, Verify
from jumar.core.state.stop import StopReason
from jumar.errors import Infra, JumarError, Stopped, is_stopped

Value = TypeVar("Value")


class Stoppable:
    """A run that can be stopped, at any moment and more than once."""

    def __init__(self) -> None:
        self._halt: Halt | None = None
        self._flight: anyio.CancelScope | None = None
        self.interruptible = False
        """True while an effect is under way that leaves nothing half done when it is cancelled."""

    def intend(self, why: Halt) -> None:
        """Stop before the next effect; may be called at any moment, as by a signal handler.

        The first reason counts. One that forbids the last verification is added to it.
        """
        before = self._halt
        if before is None:
            self._halt = why
        elif why.unverifiable and not before.unverifiable:
            self._halt = replace(before, why=why.why if before.stop is why.stop else before.why, unverifiable=True)

    def halt(self, why: Halt) -> None:
        """Stop as soon as possible: the effect in flight is cancelled, the best tree kept, the end written."""
        self.intend(why)
        if self._flight is not None:
            self._flight.cancel()

    def _fail(self, broken: JumarError, effect: Effect) -> None:
        """Record a fault of the machine; at a second one give up: not even the end can be written."""
        before = self._halt if self._halt is not None and self._halt.stop is StopReason.INFRA else None
        verifying = isinstance(effect, Verify) and not effect.asked
        if before is not None and (before.unverifiable or not verifying):
            raise Infra(str(broken)) from broken
        self._halt = Halt(StopReason.INFRA, before.why if before else str(broken), unverifiable=verifying)

    async def conclude(self, work: Awaitable[Value]) -> Value | None:
        """Return the value of *work* that follows the end; None if it was halted."""
        try:
            with anyio.CancelScope() as self._flight:
                return await work
        finally:
            self._flight = None
        return None

    async def _limit(self, seconds: float | None, work: Awaitable[Value], *, breakable: bool) -> Value | None:
        """Return the value of *work*; None if its *seconds* or a reason to stop ended it."""
        self.interruptible = breakable
        try:
            with anyio.move_on_after(seconds) as self._flight:
                return await work
        except Stopped:
            pass
        except BaseExceptionGroup as group:
            if not is_stopped(group):
                raise
        finally:
            self.interruptible, self._flight = False, None
        return None
