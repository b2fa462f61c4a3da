"""Reads from its journal how far a rollout got: a campaign keeps no record of its own that could differ from it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.journal.line_format import JournalEnd
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.setup.result import Result, build_result, read_head, replay_state


class Progress(StrEnum):
    """Progress of a rollout, as its journal tells."""

    NEW = "new"
    """No event was written down; files in its directory say nothing."""
    OPEN = "open"
    """It can go on: it was killed, or interrupted."""
    FAULT = "fault"
    """It ended for a fault of the machine or the provider: it can go on, and says nothing about the agent."""
    ENDED = "ended"


class Standing(NamedTuple):
    """Progress of a rollout, and its result."""

    progress: Progress
    result: Result | None = None
    """Of what was done so far; None: nothing was."""
    faults: int = 0
    """Number of times that it ended for a fault."""
    cached: int = 0
    """Verdicts that needed no test run, as another run, or itself, had had the same tree judged."""


def read_standing(folder: Path) -> Standing:
    """Return the standing of the rollout whose run directory is *folder*.

    Raises:
        BadInput: if its journal is damaged.
    """
    if not (folder / EVENTS).is_file():
        return Standing(Progress.NEW)
    entries = read_journal(folder)
    state = replay_state(entries)
    if state.start is None:
        return Standing(Progress.NEW)
    faults = sum(isinstance(e.event, ev.RunEnd) and e.event.stop is StopReason.INFRA for e in entries)
    cached = sum(isinstance(e.event, ev.Tests) and e.event.cached for e in entries)
    return Standing(_progress(state), build_result(state, folder, read_head(folder) or JournalEnd()), faults, cached)


def _progress(state: RunState) -> Progress:
    if state.phase is not Phase.ENDED or state.end is None or state.end.stop is StopReason.INTERRUPTED:
        return Progress.OPEN
    return Progress.FAULT if state.end.stop is StopReason.INFRA else Progress.ENDED
