"""Shows a run while it works: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from jumar.core import effects
from jumar.core.run import RunState
from jumar.surfaces.output import Voice, printable


class Live:
    """Follows one run, or several after each other, on standard error."""

    def __init__(self, voice: Voice, title: str = "") -> None:
        self._console = voice.progress()
        self._title = title
        self._bar = self._console.is_terminal and not voice.quiet
        self._progress = Progress(
            TextColumn("{task.fields[title]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total} passed"),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._bar,
        )
        self._row: TaskID | None = None
        self._last = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def line(self, text: str) -> None:
        """One line that stays."""
        self._console.print(printable(text), markup=False)

    def watch(self, state: RunState, effect: effects.Effect) -> None:
        """What the kernel is about to do."""
        best = state.best.score.passed if state.best else 0
        total = len(state.expected)
        if self._bar:
            if self._row is None:
                self._row = self._progress.add_task("", total=total, title=printable(self._title or state.run.task))
            self._progress.update(self._row, completed=best, total=total, description=_doing(effect))
        elif (text := _fact(state, effect)) and text != self._last:
            self._last = text
            self.line(f"{self._title or state.run.task}: {text}")


def _doing(effect: effects.Effect) -> str:
    match effect:
        case effects.Verify(trigger):
            return f"running the tests ({trigger})"
        case effects.Localise():
            return "finding the suspicious lines"
        case effects.Call(request):
            return f"asking for a candidate ({request.stage})"
        case _:
            return ""


def _fact(state: RunState, effect: effects.Effect) -> str:
    """A plain line, only for what is worth one."""
    match effect:
        case effects.Keep(attempt):
            total = state.judged.tests.total if state.judged else len(state.expected)  # new tests join as they are kept
            return f"{attempt.score.passed} of {total} passed: kept"
        case effects.GoBack(_, why):
            return f"went back: {why}"
        case effects.Finish(halt):
            return f"{halt.stop}"
        case _:
            return _doing(effect)
