"""Sentences that a person reads while a run works, because something did not go as it should."""

from __future__ import annotations

from collections.abc import Iterator

from jumar.core import effects
from jumar.core.agent import PIPELINE
from jumar.core.quoting import one_line
from jumar.core.run import RunState

LONGEST = 300
"""Characters of a reason that one line shows; `jumar log show` has all of it."""

BLIND = "localisation failed, so every line is searched alike"
"""What it means that no line is suspicious."""


class Notices:
    """Finds them in what the kernel is about to do; each is said once."""

    def __init__(self) -> None:
        self._acting: tuple[str, int] | None = None
        """The fault of the action of a reply that is being performed, and how many attempts were used up before it."""
        self._located = ""
        """The tree whose localisation was spoken of."""

    def heed(self, state: RunState, effect: effects.Effect) -> Iterator[str]:
        """The sentences for *state*, in which *effect* comes next."""
        yield from self._rejected(state)
        self._acting = None
        if isinstance(effect, effects.Act) and state.run.agent == PIPELINE:
            self._acting = (effect.action.fault, state.spend.attempts)
        found = state.localisation
        if found is not None and found.problem and found.tree != self._located:
            self._located = found.tree
            yield f"{'incomplete localisation' if found.suspects else BLIND}: {one_line(found.problem, LONGEST)}"

    def _rejected(self, state: RunState) -> Iterator[str]:
        """The reason why the reply that was just read is not verified: its fault, or a refusal that cost an attempt."""
        if self._acting is None:
            return
        fault, attempts = self._acting
        if why := fault or (state.told if state.spend.attempts > attempts else ""):
            yield f"the reply was rejected: {one_line(why, LONGEST)}"
