"""Enforces the time limit of one test from within the process that runs it."""

from __future__ import annotations

import contextlib
import dis
import faulthandler
import os
import signal
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    Nodes = Iterable[pytest.Item | pytest.Collector]

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
        self._most = self._seconds = seconds
        self._armed = False
        self._watched = -1.0 * SLACK_SECONDS
        # Tests move descriptor 2, where the last words of a stuck process go, and stop the clock.
        self._stderr, self._clock = os.dup(2), time.monotonic

    def start(self, seconds: float) -> None:
        """Begin a test, which may take *seconds*, and no more than any may."""
        self.rung, self._seconds = False, min(self._most, seconds)

    @contextlib.contextmanager
    def limit(self) -> Iterator[None]:
        """Raise TestTimeLimit in the main thread while the body runs too long."""
        before = _swap(_ALRM, self._raise_time_limit)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 1.0)
        self._watch()
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            _swap(_ALRM, before or 0)

    def complete(self, error: BaseException) -> None:
        """Complete *error* so that pytest can print it, if it came after an alarm."""
        if self.rung:
            add_missing_lines(error)

    def guard_collect(self, collect: Callable[[], Nodes]) -> Callable[[], Nodes]:
        """Return *collect*, whose errors pytest is able to print: it does so before any plug-in sees them."""

        def collect_all() -> Nodes:
            try:
                return list(collect())
            except BaseException as error:
                self.complete(error)
                raise

        return collect_all

    def switch_off(self) -> None:
        """Switch the time limit off until the next test."""
        self._watched = -1.0 * SLACK_SECONDS
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        """Give the process up in a while from now, or up to `SLACK_SECONDS` later."""
        if self._clock() > self._watched + SLACK_SECONDS:
            late, self._watched = self._seconds + STUCK_SECONDS + SLACK_SECONDS, self._clock()
            faulthandler.dump_traceback_later(late, exit=True, file=self._stderr)

    def _raise_time_limit(self, *_: object) -> None:
        if self._armed:
            self.rung = True
            raise TestTimeLimit(f"the test ran longer than {self._seconds:g} s")


def add_missing_lines(error: BaseException) -> None:
    """Give each frame of the tracebacks of *error* a line.

    Some instructions are of no line, as the jump at the end of a loop, and an alarm interrupts an endless loop at no
    other. Pytest counts from the line of each frame, and would break off the session.
    """
    known: set[int] = set()
    errors: list[BaseException | None] = [error]
    while errors:
        one = errors.pop()
        if one is None or id(one) in known:
            continue
        known.add(id(one))
        one.__traceback__ = entry = _add_line(one.__traceback__)
        while entry is not None:
            entry.tb_next = _add_line(entry.tb_next)
            entry = entry.tb_next
        errors += [one.__cause__, one.__context__]


def _add_line(entry: types.TracebackType | None) -> types.TracebackType | None:
    """Return *entry*, or another one with the line before it."""
    line: int | None = 0 if entry is None else entry.tb_lineno
    if entry is None or line is not None:
        return entry
    code = entry.tb_frame.f_code
    before = [line for place, line in dis.findlinestarts(code) if line is not None and place <= entry.tb_lasti]
    line = before[-1] if before else code.co_firstlineno
    return types.TracebackType(entry.tb_next, entry.tb_frame, entry.tb_lasti, line)
