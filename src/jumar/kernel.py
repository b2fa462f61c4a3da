"""Runs the loop: asks the core for the next effect, performs it, records the events. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anyio.lowlevel import checkpoint

from jumar.core.run.effects import Await, Effect, Halt
from jumar.core.run.next_effect import next_effect
from jumar.core.run.reducers.transitions import replay
from jumar.core.run.strategy import Strategy
from jumar.core.state.events import Entry, Event
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.errors import JumarError
from jumar.journal.writer import Journal
from jumar.runtime.effect_runner import EffectRunner, Slow
from jumar.runtime.stopping import Stoppable

Watch = Callable[[RunState, Effect], None]
"""Is told what is about to be done; may not change it."""


Heard = Callable[[Sequence[Entry]], None]
"""Is told what has happened, once it is on disk."""


class Kernel(Stoppable):
    """Loop of one run. Its state is only the fold of its journal."""

    def __init__(self, journal: Journal, shell: EffectRunner, agent: Strategy, state: RunState) -> None:
        super().__init__()
        self.journal, self.shell, self.agent, self.state = journal, shell, agent, state
        self.watch: Watch = lambda _state, _effect: None
        self.heard: Heard = lambda _entries: None

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
                events = await self._perform(effect)
                self._believe(await self.journal.commit(events, self.shell.clock()) if events else ())
                if isinstance(effect, Await) and not events and self._halt is None:
                    break  # the host has left; the run stays open
            except JumarError as broken:
                self._fail(broken, effect)
        return self.state

    @property
    def ended(self) -> bool:
        """Return whether the run, and the work after its end, is over."""
        return self.state.phase is Phase.ENDED and self._flight is None

    def record(self, events: Sequence[Event]) -> None:
        """Write the events of one effect to disk, then fold them into the state."""
        self._believe(self.journal.append(events, self.shell.clock()) if events else ())

    def _believe(self, entries: Sequence[Entry]) -> None:
        self.state = replay(entries, self.state)
        self.shell.settle_recorded(entries, self.state)
        self.heard(entries)

    async def _perform(self, effect: Effect) -> Sequence[Event]:
        if not isinstance(effect, Slow):
            return self._do(self.shell.do(effect, self.state))
        left = self.shell.seconds_left(effect, self.state)
        # A host's action may have written already when it is broken off.
        done = await self._limit(left, self.shell.perform(effect, self.state), breakable=not isinstance(effect, Await))
        if done is not None:
            return done
        self._halt = self._halt or Halt(StopReason.BUDGET, "the cap on seconds is used up")
        return self.shell.cancel(effect, self.state)

    def _do(self, done: Sequence[Event] | Halt) -> Sequence[Event]:
        """Perform an effect, which may answer that the run must stop instead: a call that could pass a cap."""
        if not isinstance(done, Halt):
            return done
        self._halt = done
        return ()
