"""Reads the progress of a rollout from its journal: a campaign keeps no other record, which could differ."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.journal.line_format import JournalEnd
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.setup.result import Result, build_result, read_head, replay_state

RATE_LIMIT = "rate_limit"
"""Error of a call that came when the provider had had enough of them."""


class Progress(StrEnum):
    """Progress of a rollout, by its journal."""

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
    """Number of times that it ended for a fault; a provider's limit is none."""
    cached: int = 0
    """Verdicts that needed no test run, as another run, or itself, had had the same tree judged."""
    limit_seconds: float | None = None
    """Seconds to wait as the provider asked, where the rollout ended at one of its limits; None: it did not."""


def read_standing(folder: Path) -> Standing:
    """Return the standing of the rollout whose run directory is *folder*.

    Raises:
        BadInput: if its journal is damaged.
    """
    if not (folder / EVENTS).is_file():
        return Standing(Progress.NEW)
    entries = read_journal(folder)
    state = replay_state(entries, f" of {folder}")
    if state.start is None:
        return Standing(Progress.NEW)
    faults, limit_seconds = _count_faults(entries)
    cached = sum(isinstance(e.event, ev.Tests) and e.event.cached for e in entries)
    result = build_result(state, folder, read_head(folder) or JournalEnd())
    return Standing(_get_progress(state), result, faults, cached, limit_seconds)


def _count_faults(entries: Iterable[ev.Entry]) -> tuple[int, float | None]:
    """Return the number of ends for a fault, and the wait that the provider asked for at the last one."""
    faults = 0
    wait: float | None = None
    call: ev.ModelCall | None = None
    for entry in entries:
        match entry.event:
            case ev.ModelCall() as call:
                pass
            case ev.RunEnd(stop=StopReason.INFRA):
                limited = call is not None and call.error == RATE_LIMIT
                wait = (call.retry_after or 0.0) if call is not None and limited else None
                faults += not limited
            case ev.RunEnd():
                wait = None
            case _:
                pass
    return faults, wait


def _get_progress(state: RunState) -> Progress:
    if state.phase is not Phase.ENDED or state.end is None or state.end.stop is StopReason.INTERRUPTED:
        return Progress.OPEN
    return Progress.FAULT if state.end.stop is StopReason.INFRA else Progress.ENDED
