"""Enforces the time limit of one test from within the process that runs it.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STUCK_SECONDS, SLACK_SECONDS = 5, 1
"""A test that outlives its time limit by this much sits in C code or swallows everything: the process is given up.
The watch over that is a thread, so it is set anew once in a while and not for each test."""

_swap, _ALRM = getattr(signal.signal, "__wrapped__", signal.signal), int(signal.SIGALRM)
"""Without the enumerations of `signal`, which take longer than all else that a limit does."""


class TestTimeLimit(BaseException):
    """Raised when a test runs longer than it may. Not an Exception, so that tests do not catch it by habit."""

    __test__ = False


class TimeLimit:
    """Time limit of one phase of one test. The alarm repeats every second until the phase ends."""

    def __init__(self, seconds: float) -> None:
        self.rung = False
        self._seconds = seconds
        self._armed = False
        self._watched = -1.0 * SLACK_SECONDS
        # Tests move descriptor 2, where the last words of a stuck process go, and stop the clock.
        self._stderr, self._clock = os.dup(2), time.monotonic

    def shorten(self, seconds: float) -> None:
        """Allow no more than *seconds* from here on."""
        self._seconds = min(self._seconds, seconds)

    @contextlib.contextmanager
    def limit(self) -> Iterator[None]:
        """Raise TestTimeLimit in the main thread while the body runs too long."""
        before = _swap(_ALRM, self._ring)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 1.0)
        self._watch()
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            _swap(_ALRM, before or 0)

    def rest(self) -> None:
        """Switch the time limit off until the next test."""
        self._watched = -1.0 * SLACK_SECONDS
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        """Give the process up in a while from now, or up to `SLACK_SECONDS` later."""
        if self._clock() > self._watched + SLACK_SECONDS:
            late, self._watched = self._seconds + STUCK_SECONDS + SLACK_SECONDS, self._clock()
            faulthandler.dump_traceback_later(late, exit=True, file=self._stderr)

    def _ring(self, *_: object) -> None:
        if self._armed:
            self.rung = True
            raise TestTimeLimit(f"the test ran longer than {self._seconds:g} s")
