"""Shows a run while it works: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from jumar.core import effects
from jumar.core.quoting import one_line
from jumar.core.run import Phase, RunState
from jumar.core.turn import named
from jumar.surfaces.notices import LONGEST, Notices
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
        self._notices = Notices()

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
        for notice in self._notices.heed(state, effect):
            self.line(f"{self._title or state.run.task}: {notice}")
        best = state.best.score.passed if state.best else 0
        total = len(state.expected)
        if self._bar:
            if self._row is None:
                self._row = self._progress.add_task("", total=total, title=printable(self._title or state.run.task))
            self._progress.update(self._row, completed=best, total=total, description=_doing(effect))
        # A bar that goes on does not say what was refused for another reason than that it was worse.
        shown = not self._bar or (isinstance(effect, effects.GoBack | effects.Rebuild) and _void(state))
        if shown and (text := _fact(state, effect)) and text != self._last:
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
            return f"{attempt.score.passed} of {total} passed: kept{_wavering(state)}"
        case effects.GoBack(_, why):
            return f"went back: {_void(state) or one_line(why, LONGEST)}{_wavering(state)}"
        case effects.Rebuild(_, dropped, why) if why:
            became = "went back" if dropped else "taken apart, to be judged one by one"
            return f"{became}: {_void(state) or one_line(why, LONGEST)}{_wavering(state)}"
        case effects.Finish(halt):
            return f"{halt.stop}"
        case _:
            return _doing(effect)


def _void(state: RunState) -> str:
    """Why the verdict that is acted on is none; empty: it is one. Prompts say less of it: this is for people."""
    void = state.judged.tests.void if state.judged and state.phase is Phase.JUDGED else None
    return one_line(void.reason, LONGEST) if void else ""


def _wavering(state: RunState) -> str:
    """The tests that came out differently on one tree in the verdict that is acted on."""
    flaky = state.judged.tests.flaky if state.judged and state.phase is Phase.JUDGED else ()
    return f"; flaky: {one_line(named(flaky), LONGEST)}" if flaky else ""
