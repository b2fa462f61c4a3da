"""Enforces the time limit of one test from within the process that runs it.

A process has one alarm, and projects set it, too: fixtures, pytest-timeout. So the limit is one of two that share it.
The timer of the one that ends first runs, and the interval of a timer tells whose it is.
"""

from __future__ import annotations

import contextlib
import dis
import faulthandler
import os
import signal
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    Nodes = Iterable[pytest.Item | pytest.Collector]

STUCK_SECONDS, SLACK_SECONDS = 5, 1
"""A test that outlives its time limit by this much sits in C code or swallows everything: the process is given up.
The watch over that is a thread, so it is set anew once in a while and not for each test."""

_swap, _ALRM = getattr(signal.signal, "__wrapped__", signal.signal), int(signal.SIGALRM)
_get_handler = getattr(signal.getsignal, "__wrapped__", signal.getsignal)
"""Without the enumerations of `signal`, which take longer than all else that a limit does."""
_set_timer, _get_timer, _REAL = signal.setitimer, signal.getitimer, signal.ITIMER_REAL

AGAIN_SECONDS = 1.015625
"""Interval at which the alarm of a time limit is repeated. An alarm with another one was set by the tests."""

_AT_ONCE = 1e-6
"""Seconds of a timer that is over: one of 0 s never rings."""


class TestTimeLimit(BaseException):
    """Raised when a test runs longer than it may. Not an Exception, so that tests do not catch it by habit."""

    __test__ = False


class TimeLimit:
    """Time limit of one phase of one test. The alarm repeats every second until the phase ends.

    An alarm of the project rings at its time, as without a limit, and is left as it stands when the phase ends.
    """

    def __init__(self, seconds: float) -> None:
        self.rung = self._rang = False
        self._most = self._seconds = seconds
        self._armed = self._done = False
        self._before: Any = None
        """The handler that the project has, if any."""
        self._theirs = (0.0, 0.0)
        """The project's alarm that rings after the limit: the time of the next one, and the interval; 0: none."""
        self._ends, self._ring = 0.0, self._handle_alarm
        self._watched = -1.0 * SLACK_SECONDS
        # Tests move descriptor 2, where the last words of a stuck process go, and stop the clock.
        self._stderr, self._clock = os.dup(2), time.monotonic

    def start(self, seconds: float) -> None:
        """Begin a test, which may take *seconds*, and no more than any may."""
        self.rung = self._rang = False
        self._seconds = min(self._most, seconds)

    @contextlib.contextmanager
    def limit(self) -> Iterator[None]:
        """Raise TestTimeLimit in the main thread while the body runs too long."""
        self._begin()
        self._watch()
        try:
            yield
        finally:
            self._finish()

    def complete(self, error: BaseException) -> None:
        """Complete *error* so that pytest can print it, if it came after an alarm."""
        if self._rang:
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

    def _begin(self) -> None:
        """Set the alarm, unless one of the project rings first."""
        self._done, self._theirs = False, (0.0, 0.0)
        if _get_handler(_ALRM) is not self._ring:  # else the project has put back what stood for its handler
            self._before = _get_handler(_ALRM)
        _swap(_ALRM, self._ring)
        self._ends, self._armed = self._clock() + self._seconds, True
        left, every = _get_timer(_REAL)
        self._share(0.0 if is_limit(every) else left, every)

    def _finish(self) -> None:
        """Put back what was there before, less the time that passed, unless the project has set something else."""
        self._armed = False
        if is_limit(_get_timer(_REAL)[1]):
            self._done = True
            _set_timer(_REAL, 0)
        if _get_handler(_ALRM) is self._ring:
            _swap(_ALRM, self._before or 0)
        due, every = self._theirs
        if self._done and due:
            _set_timer(_REAL, max(due - self._clock(), _AT_ONCE), every)

    def _share(self, left: float, every: float) -> None:
        """Let the alarm ring next that ends first: the limit, or the project's with *left* and *every* seconds."""
        now = self._clock()
        if not left or now + left > self._ends:
            self._theirs = (now + left, every) if left else (0.0, 0.0)
            _set_timer(_REAL, max(self._ends - now, _AT_ONCE), AGAIN_SECONDS)

    def _handle_alarm(self, number: int, frame: types.FrameType | None) -> None:
        """Raise TestTimeLimit if the test has run for too long, else do what the project does at its alarm."""
        __tracebackhide__ = True
        left, every = _get_timer(_REAL)
        limits, self._rang = is_limit(every), True
        if self._armed:
            # A timer that has just rung has its interval before it. Else the project has sent the signal.
            if left <= AGAIN_SECONDS if limits else self._clock() >= self._ends:
                self._end_test(f"the test ran longer than {self._seconds:g} s")
            if not limits:
                self._share(left, every)
        elif limits or self._done:
            return
        if callable(self._before):
            self._before(number, frame)
        elif self._before == signal.SIG_DFL and self._armed:  # it would end the process
            self._end_test("an alarm rang that nobody handles")

    def _end_test(self, why: str) -> None:
        __tracebackhide__ = True
        self.rung, self._ends = True, self._clock() + AGAIN_SECONDS
        left, every = _get_timer(_REAL)
        if not is_limit(every):
            self._share(left, every)
        raise TestTimeLimit(why)


class NoTimeLimit(TimeLimit):
    """Leaves alarms, timers and the watch of `faulthandler` to the tests: who hangs is ended from without."""

    def __init__(self) -> None:
        self.rung = self._rang = False

    def start(self, seconds: float) -> None:
        """Do nothing, as all below."""

    @contextlib.contextmanager
    def limit(self) -> Iterator[None]:
        """Run the body."""
        yield

    def guard_collect(self, collect: Callable[[], Nodes]) -> Callable[[], Nodes]:
        """Return *collect*: no alarm of ours can interrupt it."""
        return collect

    def switch_off(self) -> None:
        """Leave the watch of `faulthandler` as it is."""


def is_limit(every: float) -> bool:
    """Return whether a timer with the interval *every* is that of a time limit. The system counts microseconds."""
    return round(every, 6) == AGAIN_SECONDS


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
