"""Order in which threads of one process speak to the other."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


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

    def ask(self) -> contextlib.AbstractContextManager[None]:
        """Wait until this thread may ask; it asks in the body."""
        return self._hold(performs=False)

    def perform(self) -> contextlib.AbstractContextManager[None]:
        """Let any thread ask in the body; wait at its end for those that do."""
        return self._hold(performs=True)

    @contextlib.contextmanager
    def _hold(self, *, performs: bool) -> Iterator[None]:
        """Hold one more level in the body."""
        with self.changed:
            while not (performs or self.is_open()):
                self.changed.wait()
            self.levels.append(performs)
            level = len(self.levels)
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                while len(self.levels) != level:
                    self.changed.wait()
                self.levels.pop()
                self.changed.notify_all()

    def is_open(self) -> bool:
        """Return whether this thread may ask now."""
        return self.levels[-1] if self.levels else threading.get_ident() == self._first
