"""Shows a run while it works: a status line on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Self

from jumar.cli.console.notices import LONGEST, NoticePrinter
from jumar.cli.console.output import Console, strip_controls
from jumar.cli.console.status_line import StatusLine
from jumar.cli.parameters.environment import read_environment
from jumar.core.gate.turn_outcome import format_ids
from jumar.core.quoting import make_one_line
from jumar.core.run import effects
from jumar.core.state.run_state import Phase, RunState
from jumar.process.progress import ProgressPart, Work

TICK_SECONDS = 0.2
"""Interval at which the status line is checked; it is written where it changed."""

QUICK_SECONDS = 0.4
"""Shortest duration of work that is shown."""

SILENT_SECONDS = (1.0, 10.0)
"""Delays without a terminal: before work is first named, and before it is named again; each pause then doubles."""

USUAL_COLUMNS, PLAIN_COLUMNS = 80, 200
"""Of a terminal that does not know, and where there is none."""


class ProgressDisplay:
    """Shows the progress of one run, or of several in sequence, on standard error."""

    def __init__(self, voice: Console, title: str = "", status: StatusLine | None = None) -> None:
        self._voice, self._title = voice, title
        self._line = not voice.quiet and sys.stderr.isatty() and read_environment().get("TERM", "") not in ("", "dumb")
        self._status = status or StatusLine(title=title)
        self._last = ""
        self._shown = ""
        """Text of the status line."""
        self._due, self._pause = 0.0, 0.0
        """Without a terminal: when the current work is named next."""
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, name="jumar-progress", daemon=True)
        self._notices = NoticePrinter()

    def __enter__(self) -> Self:
        self._voice.aside = self._step_aside
        self.tell(Work.STARTING)
        if not self._voice.quiet:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._clear()
        self._voice.aside = nullcontext

    def line(self, text: str) -> None:
        """Print one line that stays above the status line."""
        with self._lock:
            self._voice.note(text)

    def tell(self, what: Work | ProgressPart, done: int = 0, total: int = 0) -> None:
        """Show progress; see `jumar.process.progress.Tell`."""
        with self._lock:
            if isinstance(what, ProgressPart):
                self._status.count(what, done, total, time.monotonic())
            else:
                self._begin(what, named=False)

    def watch(self, state: RunState, effect: effects.Effect) -> None:
        """Show the next effect of the kernel."""
        with self._lock:
            for notice in self._notices.heed(state, effect):
                self.line(f"{self._title or state.run.task}: {notice}")
            self._status.title = strip_controls(self._title or state.run.task)
            self._status.best = (
                (state.best.score.passed, len(state.expected)) if state.best and state.expected else None
            )
            text = _fact(state, effect)
            # A status line that goes on does not say what was refused for another reason than that it was worse.
            shown = not self._line or (isinstance(effect, effects.GoBack | effects.Rebuild) and _void(state))
            said = bool(shown and text and text != self._last)
            if said:
                self._last = text
                self.line(f"{self._title or state.run.task}: {text}")
            if doing := _doing(effect):
                self._begin(doing, named=said)

    def _begin(self, work: str, *, named: bool) -> None:
        """Another *work* begins; *named*: a line has just said so."""
        now = time.monotonic()
        if work != self._status.work or named:
            first, self._pause = SILENT_SECONDS
            self._due = now + (self._pause if named else first)
        self._status.begin(work, now)

    def _draw_on(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            with self._lock, suppress(OSError, ValueError):
                if self._line:
                    self._draw()
                else:
                    self._say()

    def _draw(self) -> None:
        """Write the status line anew, if it changed; what a longer one has left behind it is taken away."""
        now = time.monotonic()
        if not self._status.work or now - self._status.since < QUICK_SECONDS:
            return
        # A terminal that nobody has told its size says 0. The last column is left alone: some wrap there.
        wide = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
        text = self._status.text(now, wide - 1)
        if text != self._shown:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
            self._shown = text

    def _say(self) -> None:
        """Write a line now and then on work that takes long, where there is no terminal."""
        now = time.monotonic()
        if self._status.work and now >= self._due:
            self.line(self._status.text(now, PLAIN_COLUMNS))
            self._due, self._pause = now + self._pause, 2 * self._pause

    @contextmanager
    def _step_aside(self) -> Iterator[None]:
        """Take the status line away while something else is written; the thread that draws it waits."""
        with self._lock:
            self._clear()
            yield

    def _clear(self) -> None:
        """Take the status line away: something else is about to be written."""
        with self._lock, suppress(OSError, ValueError):
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._shown = ""


def _doing(effect: effects.Effect) -> str:
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


def _fact(state: RunState, effect: effects.Effect) -> str:  # noqa: PLR0911  one line per effect reads best
    """Return a plain line, only for what is worth one."""
    match effect:
        case effects.Keep(attempt):
            total = state.judged.tests.total if state.judged else len(state.expected)  # new tests join as they are kept
            if not total:
                return f"no tests: {'kept' if state.best else 'begun'}"
            return f"{attempt.score.passed} of {total} passed: kept{_wavering(state)}"
        case effects.GoBack(_, why):
            return f"went back: {_void(state) or make_one_line(why, LONGEST)}{_wavering(state)}"
        case effects.Rebuild(_, dropped, why) if why:
            became = "went back" if dropped else "taken apart, to be judged one by one"
            return f"{became}: {_void(state) or make_one_line(why, LONGEST)}{_wavering(state)}"
        case effects.Finish(halt):
            return f"{halt.stop}"
        case effects.Verify() | effects.Localise() | effects.Call():
            return _doing(effect)
        case _:
            return ""


def _void(state: RunState) -> str:
    """Return the reason why the current verdict is void, for people; empty: it is not. Prompts say less."""
    void = state.judged.tests.void if state.judged and state.phase is Phase.JUDGED else None
    return make_one_line(void.reason, LONGEST) if void else ""


def _wavering(state: RunState) -> str:
    """Return the tests that came out differently on one tree in the verdict that is acted on."""
    flaky = state.judged.tests.flaky if state.judged and state.phase is Phase.JUDGED else ()
    return f"; flaky: {make_one_line(format_ids(flaky), LONGEST)}" if flaky else ""
