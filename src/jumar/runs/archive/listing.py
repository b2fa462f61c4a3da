"""Table of runs, read from their results, or from a journal if a run has not ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.core.state.run_state import Phase
from jumar.errors import BadInput, Infra
from jumar.journal.line_format import JournalEnd
from jumar.journal.lock import LOCK, hold_still
from jumar.journal.writer import EVENTS
from jumar.runs.archive.find import find_runs
from jumar.runs.setup.result import BestTree, build_no_event_fault, count_lost_lines, read_state
from jumar.workspace.store.lease import SHARED

OPEN, UNFINISHED, DAMAGED = "open", "unfinished", "damaged"
"""Instead of a reason to stop: a process writes it; it has no end; its journal or its result cannot be believed."""

TAIL_BYTES = 1 << 16
STAMP = "%Y%m%d-%H%M%S"
STAMP_LENGTH = 15
BLOCK_BYTES = 512


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: a run."""

    run: str
    task: str
    stop: str
    """Reason that it stopped, or `open`, `unfinished`, `damaged`."""
    passed: int | None
    """Number of passed tests; None if nothing was verified, or it is damaged."""
    total: int
    usd: float
    seconds: float
    bytes: int
    """Of its directory on the disk; the objects that it shares with others are not counted."""
    started: float
    """Start time, in seconds since 1970."""
    folder: str
    why: str = ""
    """Description of what is wrong with it."""


class _Ended(msgspec.Struct, frozen=True):
    """Fields of `result.json` that a table needs."""

    task: str
    stop: str
    best: BestTree
    usd: float
    seconds: float
    head: JournalEnd
    test_runs: int = 0
    baseline_runs: int = 0
    passed: int | None = 0


def list_runs(runs: Path) -> Iterator[RunRow]:
    """Yield the runs in *runs*, the newest first."""
    for run in find_runs(runs):
        with suppress(FileNotFoundError):  # it was removed meanwhile
            yield build_row(run)


def build_row(run: Path) -> RunRow:
    """Return the row of the run in *run*."""
    with hold_still(run) as closed:
        is_open = not closed and (run / LOCK).exists()
        ended = None if is_open else _read_end(run)
        if ended is not None:
            verified = ended.test_runs + ended.baseline_runs and ended.passed is not None
            return _make_row(run, ended.stop, ended, passed=ended.best.passed if verified else None)
        return _build_row_from_journal(run, is_open=is_open)


def _build_row_from_journal(run: Path, *, is_open: bool) -> RunRow:
    """Return the row of a run that has no result, or one that is older than its journal."""
    unknown = _Ended(run.name[STAMP_LENGTH + 1 :], "", BestTree(0, 0), 0.0, 0.0, JournalEnd())
    try:
        state = read_state(run)
    except (BadInput, Infra) as fault:
        return _make_row(run, OPEN if is_open else DAMAGED, unknown, passed=None, why=str(fault))
    if state.start is None:
        lost = count_lost_lines(run)
        why = str(build_no_event_fault(run)) if lost else ""
        return _make_row(run, OPEN if is_open else DAMAGED if lost else UNFINISHED, unknown, passed=None, why=why)
    stop = str(state.end.stop) if state.phase is Phase.ENDED and state.end else UNFINISHED
    score = state.best.score if state.best else None
    best = BestTree(score.passed if score else 0, len(state.expected))
    found = _Ended(state.run.task, "", best, state.spend.usd, round(state.spend.seconds, 3), JournalEnd())
    return _make_row(run, OPEN if is_open else stop, found, passed=best.passed if score else None)


def _make_row(run: Path, stop: str, found: _Ended, *, passed: int | None, why: str = "") -> RunRow:
    return RunRow(
        run=run.name, task=found.task, stop=stop, passed=passed, total=found.best.total, usd=found.usd,
        seconds=found.seconds, bytes=count_used_bytes(run), started=find_start_time(run), folder=str(run), why=why,
    )  # fmt: skip


def _read_end(run: Path) -> _Ended | None:
    """Return the content of `result.json`, if it belongs to the end of the journal."""
    try:
        found = msgspec.json.decode((run / "result.json").read_bytes(), type=_Ended)
        with (run / EVENTS).open("rb") as journal:
            journal.seek(max(0, journal.seek(0, os.SEEK_END) - TAIL_BYTES))
            last = journal.read().rstrip(b"\n").rpartition(b"\n")[2]
    except (OSError, msgspec.MsgspecError):
        return None
    return found if sha256(last).hexdigest() == found.head.hash else None


def find_start_time(run: Path) -> float:
    """Return the start time of the run in *run*: by its name, else by its files."""
    try:
        return time.mktime(time.strptime(run.name[:STAMP_LENGTH], STAMP))
    except (ValueError, OverflowError):
        return (run / EVENTS).stat().st_mtime


def count_used_bytes(folder: Path) -> int:
    """Return the bytes that *folder* takes on the disk; links are not followed."""
    total, due = 0, [str(folder)]
    while due:
        with suppress(OSError), os.scandir(due.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    due.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return total


def count_shared_bytes(runs: Path) -> int:
    """Return the bytes on the disk of the objects that the runs in *runs* share."""
    return count_used_bytes(runs / SHARED)
