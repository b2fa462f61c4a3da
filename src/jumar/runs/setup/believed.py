"""Reads journals of runs that are to be believed: one of which a line was changed since it was written is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.verdict import Cause
from jumar.errors import BadInput
from jumar.journal.audit import verify
from jumar.journal.writer import read_journal
from jumar.runs.setup.result import read_head, replay_state


def read_believed(folder: Path) -> tuple[tuple[ev.Entry, ...], RunState]:
    """Return the entries of the journal in *folder*, and the state after them.

    Raises:
        BadInput: if it is damaged, tells what cannot have happened, or was changed; naming the folder.
    """
    try:
        entries = read_journal(folder)
        state = replay_state(entries)
    except BadInput as fault:
        raise BadInput(f"{folder}: {fault}; leave this run out, or mend it") from None
    if why := find_change(folder):
        raise BadInput(f"{folder} cannot be believed: {why}; leave this run out")
    return entries, state


def read_unless_changed(folder: Path) -> tuple[tuple[ev.Entry, ...], RunState]:
    """Return the entries of the journal in *folder*, and the state after them; of a run that goes on, too.

    Raises:
        BadInput: if it is damaged, tells what cannot have happened, or was changed after the run had ended.
    """
    entries = read_journal(folder)
    state = replay_state(entries)
    # Of a run that goes on, or was killed, a line may be half written.
    if state.phase is Phase.ENDED and (why := find_change(folder)):
        raise BadInput(f"it cannot be believed: {why}")
    return entries, state


def find_change(folder: Path) -> str:
    """Return which line of the journal in *folder* is not as it was written, in words; empty: all are.

    The last line is known by the anchor beside the journal, and by `result.json`.

    Raises:
        BadInput: if the journal cannot be read.
    """
    head = read_head(folder)
    findings = verify(folder) or (verify(folder, head) if head else ())
    return f"line {findings[0].line} of its journal {findings[0].what}" if findings else ""


def find_other_verdict(folder: Path, state: RunState) -> str:
    """Return what a later verdict says of the run in *folder*, which ended in *state*; empty: none says otherwise.

    `jumar rescore` and `jumar score` write it, to `score.json`. Where the harness failed, it says nothing.
    """
    try:
        score = msgspec.json.decode((folder / "score.json").read_bytes(), type=_Score)
    except FileNotFoundError:
        return ""
    except (OSError, msgspec.MsgspecError):
        return "a score that cannot be read"
    green = state.end is not None and state.end.stop is StopReason.GREEN
    if score.ok is green or score.void.startswith(Cause.HARNESS):
        return ""
    return (
        score.void
        or score.untested
        or f"{'green' if score.ok else 'not green'}, {score.passed} of {score.total} tests passed"
    )


class _Score(msgspec.Struct, frozen=True):
    """Fields of a later verdict that are asked for here."""

    ok: bool
    passed: int | None = None
    total: int = 0
    void: str = ""
    untested: str = ""
