"""Order in which threads of one process speak to the other."""

from __future__ import annotations

import threading


class Turns:
    """Order in which the threads of the product's process speak.

    Each of them may ask while a thread does what was asked of it. Questions and what is done for them lie within each
    other, as if one thread had called it all: what began last ends first, and the other side sees one speaker.
    """

    def __init__(self) -> None:
        self._first = threading.get_ident()
        self.levels: list[bool] = []
        """The outermost first: True where something is done for the other side, False where it is asked."""
        self.changed = threading.Condition()

    def ask(self) -> Level:
        """Wait until this thread may ask; it asks in the body."""
        return Level(self, performs=False)

    def perform(self) -> Level:
        """Let any thread ask in the body; wait at its end for those that do."""
        return Level(self, performs=True)

    def is_open(self) -> bool:
        """Return whether this thread may ask now."""
        return self.levels[-1] if self.levels else threading.get_ident() == self._first


class Level:
    """One of the levels of `Turns`, as a context."""

    __slots__ = ("_level", "_performs", "_turns")

    def __init__(self, turns: Turns, *, performs: bool) -> None:
        self._turns, self._performs, self._level = turns, performs, 0

    def __enter__(self) -> None:
        turns = self._turns
        with turns.changed:
            while not (self._performs or turns.is_open()):
                turns.changed.wait()
            turns.levels.append(self._performs)
            self._level = len(turns.levels)
            turns.changed.notify_all()

    def __exit__(self, *_: object) -> None:
        turns = self._turns
        with turns.changed:
            while len(turns.levels) != self._level:
                turns.changed.wait()
            turns.levels.pop()
            turns.changed.notify_all()
