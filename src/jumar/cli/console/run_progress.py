"""Progress of one run, for people: its current work, and a line for each notable event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jumar.cli.console.notices import LONGEST, NoticePrinter
from jumar.cli.console.output import strip_controls
from jumar.cli.console.status_line import StatusLine
from jumar.core.gate.excused_tests import format_passed
from jumar.core.gate.turn_outcome import format_ids
from jumar.core.quoting import make_one_line
from jumar.core.run import effects
from jumar.core.state.run_state import Phase, RunState
from jumar.process.progress import ProgressPart, Work

SILENT_SECONDS = (1.0, 10.0)
"""Delays without a terminal: before work is first named, and before it is named again; each pause then doubles."""

PLAIN_COLUMNS = 200
"""Columns where there is no terminal."""


class RunProgress:
    """Current work of one run, and its lines, which *line* prints."""

    def __init__(
        self, line: Callable[[str], None], lock: threading.RLock, title: str, status: StatusLine, *, terminal: bool
    ) -> None:
        self.status = status
        self._print, self._lock, self._title, self._terminal = line, lock, title, terminal
        self._last = ""
        self._due, self._pause = 0.0, 0.0
        """Without a terminal: when the current work is named next."""
        self._notices = NoticePrinter()

    def tell(self, what: Work | ProgressPart, done: int = 0, total: int = 0) -> None:
        """Show progress; see `jumar.process.progress.Tell`."""
        with self._lock:
            if isinstance(what, ProgressPart):
                self.status.count(what, done, total, time.monotonic())
            else:
                self._begin(what, named=False)

    def watch(self, state: RunState, effect: effects.Effect) -> None:
        """Show the next effect of the kernel."""
        with self._lock:
            for notice in self._notices.find_notices(state, effect):
                self._print(f"{self._title or state.run.task}: {notice}")
            self.status.title = strip_controls(self._title or state.run.task)
            self.status.best = (state.best.score.passed, len(state.expected)) if state.best and state.expected else None
            text = _describe_fact(state, effect)
            # A status line that goes on does not say what was refused for another reason than that it was worse.
            shown = not self._terminal or (
                isinstance(effect, effects.GoBack | effects.Rebuild) and _explain_void(state)
            )
            said = bool(shown and text and text != self._last)
            if said:
                self._last = text
                self._print(f"{self._title or state.run.task}: {text}")
            if doing := _describe_work(effect):
                self._begin(doing, named=said)

    def _begin(self, work: str, *, named: bool) -> None:
        """Begin another *work*; *named*: a line has just named it."""
        now = time.monotonic()
        if work != self.status.work or named:
            first, self._pause = SILENT_SECONDS
            self._due = now + (self._pause if named else first)
        self.status.begin(work, now)

    def say_now_and_then(self, now: float) -> None:
        """Print a line now and then on slow work, if there is no terminal."""
        if self.status.work and now >= self._due:
            self._print(self.status.text(now, PLAIN_COLUMNS))
            self._due, self._pause = now + self._pause, 2 * self._pause


def _describe_work(effect: effects.Effect) -> str:
    match effect:
        case effects.Verify(trigger):
            return f"running the tests ({trigger})"
        case effects.Localise():
            return "finding the suspicious lines"
        case effects.Call(request, pause):
            return f"waiting {pause:.0f} s to ask again" if pause > 1 else f"asking for a candidate ({request.stage})"
        case effects.Execute():
            return "running a command of the model's"
        case effects.Await():
            return "waiting for the agent"
        case _:
            return ""


def _describe_fact(state: RunState, effect: effects.Effect) -> str:  # noqa: PLR0911  one line per effect reads best
    """Return a plain line for a notable event."""
    match effect:
        case effects.Keep(attempt):
            tests = state.judged.tests if state.judged else None
            total = tests.total if tests else len(state.expected)  # new tests join as they are kept
            if not total:
                return f"no tests: {'kept' if state.best else 'begun'}"
            passed = format_passed(attempt.score.passed, total, tests.excused if tests else {})
            return f"{passed}: kept{_describe_wavering(state)}"
        case effects.GoBack(_, why):
            return f"went back: {_explain_void(state) or make_one_line(why, LONGEST)}{_describe_wavering(state)}"
        case effects.Rebuild(_, dropped, why) if why:
            became = "went back" if dropped else "taken apart, to be judged one by one"
            return f"{became}: {_explain_void(state) or make_one_line(why, LONGEST)}{_describe_wavering(state)}"
        case effects.Finish(halt):
            return f"{halt.stop}"
        case effects.Verify() | effects.Localise() | effects.Call():
            return _describe_work(effect)
        case _:
            return ""


def _explain_void(state: RunState) -> str:
    """Return the reason why the current verdict is void, for people; empty: it is not. Prompts say less."""
    void = state.judged.tests.void if state.judged and state.phase is Phase.JUDGED else None
    return make_one_line(void.reason, LONGEST) if void else ""


def _describe_wavering(state: RunState) -> str:
    """Return the tests whose outcomes varied on one tree in the current verdict."""
    flaky = state.judged.tests.flaky if state.judged and state.phase is Phase.JUDGED else ()
    return f"; flaky: {make_one_line(format_ids(flaky), LONGEST)}" if flaky else ""
