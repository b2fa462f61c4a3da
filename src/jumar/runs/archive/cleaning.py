"""Removes runs, and the shared objects that no run needs any more. Open runs stay."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.journal.lock import LOCK
from jumar.journal.writer import EVENTS
from jumar.process.room import discard
from jumar.runs.archive.find import find_runs
from jumar.runs.archive.listing import DAMAGED, OPEN, UNFINISHED, RunRow, count_shared_bytes, list_runs
from jumar.runs.setup.believed import find_change
from jumar.workspace.files import safe_paths
from jumar.workspace.store.lease import SHARED, list_held_leases
from jumar.workspace.store.shared import RECORD, is_run
from jumar.workspace.store.sweep import SweptObjects, sweep

KEPT_STATES = (UNFINISHED, StopReason.INTERRUPTED, DAMAGED)
"""Not removed unless they are asked for by name."""


STALE_SECONDS = 86_400
"""After a day nobody is still making a run."""

BEGINNING_SECONDS = 600
"""Longest time from the making of a folder to the lease of its run."""


class CleaningRule(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions for the runs to remove: a run must meet all that are given."""

    older_than: float | None = None
    """Seconds since it began."""
    stops: tuple[str, ...] = ()
    """Reasons to stop, or states, of which it has one; empty: any but those that are kept."""
    interrupted: bool = False
    """True if runs that `jumar resume` would continue are removed, too."""
    keep_bytes: int | None = None
    """The oldest are removed until the runs and their objects take no more."""


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """Report of the removed runs and objects, or of those that would be removed."""

    removed: tuple[RunRow, ...]
    kept: int
    runs_bytes: int
    objects: int
    objects_bytes: int
    busy: tuple[str, ...] = ()
    """Runs that another process took meanwhile."""
    damaged: tuple[RunRow, ...] = ()
    """Runs that would go by how they ended, and stay as their journal is not as it was written."""
    dry: bool = False

    @property
    def bytes(self) -> int:
        """Return the bytes that were freed."""
        return self.runs_bytes + self.objects_bytes


def clean(runs: Path, wanted: CleaningRule, *, dry: bool = False, now: float | None = None) -> Cleaned:
    """Remove the runs in *runs* that are *wanted*, and the objects that no other needs; with *dry* only count.

    Raises:
        OSError: if the disk refuses.
    """
    rows = list(list_runs(runs))
    by_end = _select_runs(rows, wanted, time.time() if now is None else now)
    checked = {row.folder: _check_chain(row) for row in (rows if DAMAGED in wanted.stops else by_end)}
    rows = [checked.get(row.folder, row) for row in rows]
    due = _select_runs(rows, wanted, time.time() if now is None else now)
    left = {row.folder for row in by_end}.difference(row.folder for row in due)
    if wanted.keep_bytes is not None:
        due = _select_fewest(runs, rows, due, wanted.keep_bytes)
    removed = due if dry else [row for row in due if remove(Path(row.folder))]
    gone = {row.folder for row in removed}
    freed = _sweep(runs, [run for run in find_runs(runs) if str(run) not in gone], dry=dry)
    return Cleaned(
        removed=tuple(removed),
        kept=len(rows) - len(removed),
        runs_bytes=sum(row.bytes for row in removed),
        objects=freed.objects,
        objects_bytes=freed.bytes,
        busy=tuple(row.run for row in due if row.folder not in gone),
        damaged=tuple(row for row in rows if row.folder in left),
        dry=dry,
    )


def _check_chain(row: RunRow) -> RunRow:
    """Return *row*, as damaged if a line of the run's journal is not as it was written: its result hides that.

    Of a run that has no end the journal was read, and its last line may be half written.
    """
    if row.stop in (OPEN, UNFINISHED, DAMAGED):
        return row
    try:
        why = find_change(Path(row.folder))
    except BadInput as fault:
        why = str(fault)
    return msgspec.structs.replace(row, stop=DAMAGED, why=why) if why else row


def _select_runs(rows: Sequence[RunRow], wanted: CleaningRule, now: float) -> list[RunRow]:
    """Return the runs that meet all conditions but the one on bytes, the oldest first."""
    return [
        row
        for row in reversed(rows)
        if row.stop != OPEN
        and (wanted.older_than is None or now - row.started > wanted.older_than)
        and (not wanted.stops or row.stop in wanted.stops)
        and (row.stop not in KEPT_STATES or row.stop in wanted.stops or (wanted.interrupted and row.stop != DAMAGED))
    ]


def _select_fewest(runs: Path, rows: Sequence[RunRow], due: list[RunRow], most: int) -> list[RunRow]:
    """Return the fewest of the oldest of *due* without which the rest takes at most *most* bytes.

    All, if that is too few.
    """
    shared = count_shared_bytes(runs)

    def fits(count: int) -> bool:
        gone = {row.folder for row in due[:count]}
        left = [row for row in rows if row.folder not in gone]
        freed = _sweep(runs, [Path(row.folder) for row in left], dry=True).bytes
        return sum(row.bytes for row in left) + shared - freed <= most

    low, high = 0, len(due)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return due[:low]


def _sweep(runs: Path, left: Sequence[Path], *, dry: bool) -> SweptObjects:
    return sweep(runs / SHARED, left, dry=dry)


def remove(run: Path) -> bool:
    """Remove the run in *run*; return False if it is being written, or is removed already.

    Raises:
        OSError: if the disk refuses.
    """
    try:
        fd = os.open(run / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = run.with_name(safe_paths.make_temporary_name())
        run.rename(gone)  # at once: nobody meets half of a run
        discard(gone)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(fd)
    return True


def remove_leftovers(runs: Path) -> tuple[str, ...]:
    """Remove the remains of killed `clean` calls, and runs that were killed before their first event.

    Return the names of those that may be beginning just now. They stay: for a while, or as long as somebody stores
    files in *runs*.
    """
    for rest in runs.glob(".jumar-*.tmp"):
        discard(rest)
    begun = [r for r in runs.glob(f"*/{RECORD}") if is_run(r.parent) and not (r.parent / EVENTS).exists()]
    busy = bool(begun and list_held_leases(runs / SHARED))
    left = []
    for record in begun:
        age = time.time() - record.stat().st_mtime
        if age > (STALE_SECONDS if busy else BEGINNING_SECONDS):
            discard(record.parent)
        else:
            left.append(record.parent.name)
    return tuple(sorted(left))
