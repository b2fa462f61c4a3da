"""Stores a ledger in one SQLite file, in short transactions, one at a time: its rows never exceed its caps."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from jumar.core.state.budget import MICRO, Budget, Cost, Spend, reserve, to_micro_usd
from jumar.errors import BadInput, Infra
from jumar.journal.ledger_file import Caps, build_foreign_error, refuse_unusable
from jumar.journal.spans import TABLE, begin_span, extend_span, sum_worked_seconds
from jumar.workspace.files.disk_faults import explain_disk_faults

MARK, LAYOUT = 0x6A756D72, 1
"""SQLite's application id (`jumr`) and user version of such a file: one without them is none of ours."""

PATIENCE_SECONDS = 10.0
"""Seconds to wait for others to let go of the file; they hold it for about a millisecond."""

MOST = 2**50
"""Micro-dollars or tokens in a row. A provider that claims more has passed every cap; what a row cannot hold would
close the ledger to everybody else."""

TABLES = (
    """CREATE TABLE purse (
        usd REAL, tokens INTEGER, seconds REAL, began REAL,
        drawn_micro_usd INTEGER DEFAULT 0, drawn_tokens INTEGER DEFAULT 0
    )""",
    """CREATE TABLE runs (run TEXT PRIMARY KEY, folder TEXT) WITHOUT ROWID""",
    """CREATE TABLE calls (
        run TEXT, seq INTEGER, micro_usd INTEGER, tokens INTEGER, settled INTEGER, PRIMARY KEY (run, seq)
    ) WITHOUT ROWID""",
    """CREATE INDEX held ON calls (run) WHERE NOT settled""",
    """CREATE TRIGGER added AFTER INSERT ON calls BEGIN UPDATE purse SET
        drawn_micro_usd = drawn_micro_usd + new.micro_usd, drawn_tokens = drawn_tokens + new.tokens;
    END""",
    """CREATE TRIGGER changed AFTER UPDATE ON calls BEGIN UPDATE purse SET
        drawn_micro_usd = drawn_micro_usd + new.micro_usd - old.micro_usd,
        drawn_tokens = drawn_tokens + new.tokens - old.tokens;
    END""",
    """CREATE TRIGGER released AFTER DELETE ON calls BEGIN UPDATE purse SET
        drawn_micro_usd = drawn_micro_usd - old.micro_usd, drawn_tokens = drawn_tokens - old.tokens;
    END""",
)
"""`drawn` is the sum over all calls, held and settled. The triggers keep it, so that no statement can forget to, and a
reservation takes as long with a million rows as with one."""

SETTLE = """INSERT INTO calls VALUES (?, ?, ?, ?, 1) ON CONFLICT (run, seq) DO UPDATE
    SET micro_usd = excluded.micro_usd, tokens = excluded.tokens, settled = 1 WHERE NOT settled"""

TOTAL = """SELECT coalesce(sum(micro_usd * settled), 0), coalesce(sum(tokens * settled), 0),
    coalesce(sum(micro_usd * (1 - settled)), 0), coalesce(sum(tokens * (1 - settled)), 0),
    (SELECT count(*) FROM runs) FROM calls"""


class LedgerTotals(msgspec.Struct, frozen=True):
    """Amounts drawn on a ledger so far. Money is in micro-dollars."""

    micro_usd: int
    tokens: int
    held_micro_usd: int
    """Set aside for calls in flight, and for those of dead runs that left no journal to tell what became of them."""
    held_tokens: int
    seconds: float
    """Seconds in which a run was at work."""
    runs: int

    @property
    def usd(self) -> float:
        """Dollars spent."""
        return self.micro_usd / MICRO


class LedgerRows:
    """Rows of a ledger, without access to journals. It belongs to one thread."""

    def __init__(self, path: Path, caps: Caps | None = None, clock: Callable[[], float] = time.time) -> None:
        """Open the file *path*, or create it with *caps*.

        Raises:
            BadInput: if it has other caps, is no ledger, or is not there and no *caps* are given.
            Infra: if it cannot be read or written; so do all methods.
        """
        self.path, self._clock = path.absolute(), clock
        self._within = False
        """True within `transact`."""
        self._span: int | None = None
        """The time since this process entered a run, see `jumar.journal.spans`; None: it entered none."""
        refuse_unusable(self.path, caps)
        with explain_disk_faults(f"cannot make {self.path.parent}"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._explain_faults():
            self._db = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
        try:
            self.caps = self._open_tables(caps)
        except BaseException:
            self._db.close()
            raise

    def enter(self, run: str, folder: Path) -> Path:
        """Enter *run*, and return the folder of its journal: *folder*, or the one recorded before."""
        with self._lock_for_writing() as db:
            db.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run, str(folder)))
            self._span = begin_span(db, self._clock()) if self._span is None else self._span
            return Path(*db.execute("SELECT folder FROM runs WHERE run = ?", (run,)).fetchone())

    def move(self, run: str, folder: Path) -> None:
        """Record that *folder* holds the journal of *run* now."""
        with self._lock_for_writing() as db:
            db.execute("UPDATE runs SET folder = ? WHERE run = ?", (str(folder), run))

    def write_off(self, run: str, kept: Container[int]) -> None:
        """Count the reservations of *run* as spent whose calls are in no journal any more: all but *kept*.

        Their numbers are free again, for a journal that does not know them; the money stays under another name.
        """
        with self._lock_for_writing() as db:
            calls = db.execute("SELECT seq FROM calls WHERE run = ?", (run,)).fetchall()
            lost = [seq for (seq,) in calls if seq not in kept]
            if lost:
                taken = "SELECT count(DISTINCT run) FROM calls WHERE substr(run, 1, ?) = ?"
                (number,) = db.execute(taken, (len(run) + 1, f"{run}~")).fetchone()
                rows = [(f"{run}~{number + 1}", run, seq) for seq in lost]
                db.executemany("UPDATE calls SET run = ?, settled = 1 WHERE run = ? AND seq = ?", rows)

    def list_folders(self) -> dict[str, Path]:
        """Return the folders of the journals of all runs."""
        with self._explain_faults():
            return {run: Path(folder) for run, folder in self._db.execute("SELECT run, folder FROM runs")}

    def list_holders(self) -> list[tuple[str, Path]]:
        """Return the runs that have money set aside, and the folders of their journals."""
        with self._explain_faults():
            held = "SELECT run, folder FROM runs WHERE run IN (SELECT run FROM calls WHERE NOT settled)"
            return [(run, Path(folder)) for run, folder in self._db.execute(held)]

    def reserve(self, run: str, seq: int, worst: Cost) -> str:
        """Set *worst* aside for a call if it fits; else return the name of the cap it could pass.

        Raises:
            Infra: also if that call is paid already.
        """
        with self._lock_for_writing() as db:
            # What this run set aside under the same number was for a request that did not get into its journal.
            db.execute("DELETE FROM calls WHERE run = ? AND seq = ? AND NOT settled", (run, seq))
            if db.execute("SELECT 1 FROM calls WHERE run = ? AND seq = ?", (run, seq)).fetchone():
                raise Infra(f"the journal of {run} has lost its call {seq}, which the ledger {self.path} has as paid")
            micro_usd, tokens = db.execute("SELECT drawn_micro_usd, drawn_tokens FROM purse").fetchone()
            if self.caps.seconds is not None and self._sum_worked(db) >= self.caps.seconds:
                return "seconds"
            budget = Budget(usd=self.caps.usd, tokens=self.caps.tokens)
            if cap := reserve(budget, Spend(micro_usd, tokens), worst):
                return cap
            db.execute("INSERT INTO calls VALUES (?, ?, ?, ?, 0)", (run, seq, *_get_amounts(worst)))
        return ""

    def settle(self, run: str, costs: Mapping[int, Cost]) -> None:
        """Replace the reservations of calls, by seq, by their costs; unknown calls are paid too."""
        with self._lock_for_writing() as db:
            self._settle(db, run, costs)

    def settle_all(self, run: str, costs: Mapping[int, Cost]) -> None:
        """Settle *costs*, and release the reservations of all other calls of *run*."""
        with self._lock_for_writing() as db:
            self._settle(db, run, costs)
            db.execute("DELETE FROM calls WHERE run = ? AND NOT settled", (run,))

    @contextmanager
    def transact(self) -> Iterator[None]:
        """Make one transaction of all calls within the block; a call that raises has changed nothing."""
        with self._lock_for_writing():
            self._within = True
            try:
                yield
            finally:
                self._within = False

    def read_total(self) -> LedgerTotals:
        """Return the amounts drawn so far."""
        with self._explain_faults():
            paid, paid_tokens, held, held_tokens, runs = self._db.execute(TOTAL).fetchone()
            return LedgerTotals(paid, paid_tokens, held, held_tokens, self._sum_worked(self._db), runs)

    def sum_worked_seconds(self) -> float:
        """Return the seconds in which some run was at work."""
        with self._explain_faults():
            return self._sum_worked(self._db)

    def close(self) -> None:
        """Close the database file."""
        with suppress(Infra):  # what cannot be written now was written with the last call
            if self._span is not None:
                with self._lock_for_writing():
                    pass
        self._db.close()

    def _sum_worked(self, db: sqlite3.Connection) -> float:
        return sum_worked_seconds(db, self._span, self._clock())

    def _settle(self, db: sqlite3.Connection, run: str, costs: Mapping[int, Cost]) -> None:
        db.executemany(SETTLE, [(run, seq, *_get_amounts(cost)) for seq, cost in costs.items()])

    def _open_tables(self, caps: Caps | None) -> Caps:
        with self._lock_for_writing() as db:
            mark, layout = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version"))
            if not mark and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                if caps is None:
                    raise BadInput(f"{self.path} is empty and no ledger yet; give its caps (--ledger-usd, --profile)")
                for statement in (*TABLES, f"PRAGMA application_id = {MARK}", f"PRAGMA user_version = {LAYOUT}"):
                    db.execute(statement)
                began = (caps.usd, caps.tokens, caps.seconds, self._clock())
                db.execute("INSERT INTO purse (usd, tokens, seconds, began) VALUES (?, ?, ?, ?)", began)
            elif (mark, layout) != (MARK, LAYOUT):
                raise build_foreign_error(self.path)
            db.execute(TABLE)
            known = Caps(*db.execute("SELECT usd, tokens, seconds FROM purse").fetchone())
        if caps is not None and caps != known:
            raise BadInput(f"the ledger {self.path} has the caps {known}, not {caps}; ask for those, or name another")
        with self._explain_faults():
            # No write-ahead log: up to 3.51.2, SQLite can lose pages of one that several processes write and empty.
            # And the rollback journal is cut, not removed: only the cut is synced. One that came back after a power
            # cut would undo what was set aside for a call that was made.
            self._db.execute("PRAGMA journal_mode = TRUNCATE")
            self._db.execute("PRAGMA synchronous = FULL")
        return known

    @contextmanager
    def _lock_for_writing(self) -> Iterator[sqlite3.Connection]:
        """Yield an exclusive transaction: it is on the disk when the block is left, or nothing of it is."""
        within = self._within
        with self._explain_faults():
            self._db.execute("SAVEPOINT part" if within else "BEGIN IMMEDIATE")
            try:
                if self._span is not None and not within:
                    extend_span(self._db, self._span, self._clock())
                yield self._db
                self._db.execute("RELEASE part" if within else "COMMIT")
            except BaseException:
                if self._db.in_transaction:  # some faults of the disk have rolled it back already
                    for statement in ("ROLLBACK TO part", "RELEASE part") if within else ("ROLLBACK",):
                        self._db.execute(statement)
                raise

    @contextmanager
    def _explain_faults(self) -> Iterator[None]:
        """Turn SQLite's faults into one sentence; wrong use of it stays a bug."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as fault:
            if fault.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise build_foreign_error(self.path) from None
            raise Infra(f"the ledger {self.path} cannot be used: {fault}") from fault


def _get_amounts(cost: Cost) -> tuple[int, int]:
    return min(to_micro_usd(cost.usd), MOST), max(0, min(cost.tokens, MOST))
