"""Working time of the runs on a ledger: spans in its file; overlapping spans count once.

A span begins when a process enters a run, and grows with whatever that run reads or writes in the ledger. So the time
between a stop and a resume lies in none, and of a run that was killed only what was seen of it counts.
"""

from __future__ import annotations

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS spans (id INTEGER PRIMARY KEY, began REAL, ended REAL)"


def begin_span(db: sqlite3.Connection, now: float) -> int:
    """Begin a span *now*, and return its id."""
    return int(db.execute("INSERT INTO spans (began, ended) VALUES (?, ?)", (now, now)).lastrowid or 0)


def extend_span(db: sqlite3.Connection, span: int, now: float) -> None:
    """Extend *span* to *now*, if it ended before."""
    db.execute("UPDATE spans SET ended = max(ended, ?) WHERE id = ?", (now, span))


def sum_worked_seconds(db: sqlite3.Connection, span: int | None, now: float) -> float:
    """Sum the seconds in which some run was at work; *span*, if given, lasts until *now*."""
    rows = db.execute(
        "SELECT began, CASE id WHEN ? THEN max(ended, ?) ELSE ended END FROM spans ORDER BY 1", (span, now)
    )
    seconds, reached = 0.0, float("-inf")
    for began, ended in rows:
        seconds += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return seconds
