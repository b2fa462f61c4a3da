"""Shows runs while they work: a status line on a terminal, plain lines elsewhere, nothing if quiet."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Self

from jumar.cli.console.output import Console
from jumar.cli.console.run_progress import RunProgress
from jumar.cli.console.status_line import StatusLine
from jumar.cli.parameters.environment import read_environment
from jumar.core.run import effects
from jumar.core.state.run_state import RunState
from jumar.process.progress import ProgressPart, Work

TICK_SECONDS = 0.2
"""Interval at which the status line is checked; it is written where it changed."""

QUICK_SECONDS = 0.4
"""Shortest duration of work that is shown."""

USUAL_COLUMNS = 80
"""Of a terminal that does not know."""

BETWEEN = " | "
"""Stands between runs that share the status line."""


class ProgressDisplay:
    """Shows the progress of one run, of several in sequence, or of several at once, on standard error."""

    def __init__(self, voice: Console, title: str = "", status: StatusLine | None = None) -> None:
        self._voice = voice
        self._line = not voice.quiet and sys.stderr.isatty() and read_environment().get("TERM", "") not in ("", "dumb")
        self._shown = ""
        """Text of the status line."""
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw_until_stopped, name="jumar-progress", daemon=True)
        self._first = self._make(title, status or StatusLine(title=title))
        self._several: list[RunProgress] = []
        """Runs that are shown in the place of the first one."""

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

    def print_line(self, text: str) -> None:
        """Print one line above the status line."""
        with self._lock:
            self._voice.note(text)

    def tell(self, what: Work | ProgressPart, done: int = 0, total: int = 0) -> None:
        """Show progress; see `jumar.process.progress.Tell`."""
        self._first.tell(what, done, total)

    def watch(self, state: RunState, effect: effects.Effect) -> None:
        """Show the next effect of the kernel."""
        self._first.watch(state, effect)

    @contextmanager
    def follow(self, title: str) -> Iterator[RunProgress]:
        """Yield the progress display of one of several concurrent runs."""
        run = self._make(title, StatusLine(title=title))
        run.tell(Work.STARTING)
        with self._lock:
            self._several.append(run)
        try:
            yield run
        finally:
            with self._lock:
                self._several.remove(run)

    def _make(self, title: str, status: StatusLine) -> RunProgress:
        return RunProgress(self.print_line, self._lock, title, status, terminal=self._line)

    def _draw_until_stopped(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            with self._lock, suppress(OSError, ValueError):
                if self._line:
                    self._draw()
                else:
                    for run in self._several or [self._first]:
                        run.say_now_and_then(time.monotonic())

    def _draw(self) -> None:
        """Write the status line again if it changed, over the remains of a longer one."""
        now = time.monotonic()
        runs = [run.status for run in self._several or [self._first]]
        busy = [status for status in runs if status.work and now - status.since >= QUICK_SECONDS]
        if not busy:
            return
        # A terminal that nobody has told its size says 0. The last column is left alone: some wrap there.
        wide = (os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS) - 1
        share = (wide + len(BETWEEN)) // len(busy) - len(BETWEEN)
        text = BETWEEN.join(status.text(now, share) for status in busy)
        if text != self._shown:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
            self._shown = text

    @contextmanager
    def _step_aside(self) -> Iterator[None]:
        """Remove the status line while something else is written; its thread waits."""
        with self._lock:
            self._clear()
            yield

    def _clear(self) -> None:
        """Remove the status line before something else is written."""
        with self._lock, suppress(OSError, ValueError):
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._shown = ""
