"""The loop: ask the core what to do, do it, write down what happened. It decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from jumar.core.agent import Strategy
from jumar.core.effects import Await, Effect, Halt, Verify
from jumar.core.events import Entry, Event
from jumar.core.run import Phase, RunState
from jumar.core.state import reduce
from jumar.core.step import next_effect
from jumar.core.stop import StopReason
from jumar.errors import Infra, JumarError, Stopped, is_stopped
from jumar.journal import Journal
from jumar.shell import Shell, Slow

Value = TypeVar("Value")

Watch = Callable[[RunState, Effect], None]
"""Is told what is about to be done; may not change it."""


Heard = Callable[[Sequence[Entry]], None]
"""Is told what has happened, once it is on disk."""


class Kernel:
    """One run. Its state is nothing but the fold of its journal."""

    def __init__(self, journal: Journal, shell: Shell, agent: Strategy, state: RunState) -> None:
        self.journal, self.shell, self.agent, self.state = journal, shell, agent, state
        self.watch: Watch = lambda _state, _effect: None
        self.heard: Heard = lambda _entries: None
        self._halt: Halt | None = None
        self._flight: anyio.CancelScope | None = None
        self.interruptible = False
        """Whether an effect is under way that leaves nothing half done when it is broken off."""

    async def run(self) -> RunState:
        """Work until the run has ended, or the host of its agent leaves it open.

        Raises:
            Infra: if not even the end could be written down; the journal and the best tree are intact.
        """
        while not self.ended:
            await checkpoint()  # effects may come one after the other without a pause, and others want to be heard
            effect = next_effect(self.state, self.agent, self._halt)
            self.watch(self.state, effect)
            try:
                self.record(events := await self._perform(effect))
                if isinstance(effect, Await) and not events and self._halt is None:
                    break  # the host has left; the run stays open
            except JumarError as broken:
                self._fail(broken, effect)
        return self.state

    async def conclude(self, work: Awaitable[Value]) -> Value | None:
        """The value of *work* that comes after the end; None if it was halted."""
        try:
            with anyio.CancelScope() as self._flight:
                return await work
        finally:
            self._flight = None
        return None

    @property
    def ended(self) -> bool:
        """Whether the run has ended, and what comes after the end."""
        return self.state.phase is Phase.ENDED and self._flight is None

    def record(self, events: Sequence[Event]) -> None:
        """Put the events of one effect on disk, then believe them."""
        entries = self.journal.append(events, self.shell.clock()) if events else ()
        for entry in entries:
            self.state = reduce(self.state, entry)
        self.shell.recorded(entries, self.state)
        self.heard(entries)

    def intend(self, why: Halt) -> None:
        """Stop before the next effect; may be called in the middle of one, as by a handler of signals.

        The first reason counts. One that forbids the last verification is added to it.
        """
        before = self._halt
        if before is None:
            self._halt = why
        elif why.unverifiable and not before.unverifiable:
            self._halt = replace(before, why=why.why if before.stop is why.stop else before.why, unverifiable=True)

    def halt(self, why: Halt) -> None:
        """Stop as soon as possible: what is in flight is cancelled, the best tree is kept, the end is written."""
        self.intend(why)
        if self._flight is not None:
            self._flight.cancel()

    def _fail(self, broken: JumarError, effect: Effect) -> None:
        """The machine failed: once more than that, and not even the end can be written down."""
        before = self._halt if self._halt is not None and self._halt.stop is StopReason.INFRA else None
        verifying = isinstance(effect, Verify) and not effect.asked
        if before is not None and (before.unverifiable or not verifying):
            raise Infra(str(broken)) from broken
        self._halt = Halt(StopReason.INFRA, before.why if before else str(broken), unverifiable=verifying)

    async def _perform(self, effect: Effect) -> Sequence[Event]:
        if not isinstance(effect, Slow):
            return self._heed(self.shell.do(effect, self.state))
        self.interruptible = not isinstance(effect, Await)  # a host's action may have written already
        try:
            with anyio.move_on_after(self.shell.seconds_left(effect, self.state)) as self._flight:
                return await self.shell.perform(effect, self.state)
        except Stopped:
            pass
        except BaseExceptionGroup as group:
            if not is_stopped(group):
                raise
        finally:
            self.interruptible, self._flight = False, None
        self._halt = self._halt or Halt(StopReason.BUDGET, "the cap on seconds is used up")
        return self.shell.cancelled(effect, self.state)

    def _heed(self, done: Sequence[Event] | Halt) -> Sequence[Event]:
        """An effect may answer that the run must stop instead (a call that could pass a cap is not made)."""
        if not isinstance(done, Halt):
            return done
        self._halt = done
        return ()
