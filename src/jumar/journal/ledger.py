"""Ledger of many runs in many processes: spent and reserved money never passes its caps, even after kill -9.

A call takes five steps: reserve here, write `model_request`, call, write `model_call`, settle here. After a crash the
journal tells how far it got: a row that no `model_request` names was never called and is released; one whose request
has its `model_call` is settled at that; one whose request is open counts as spent at what was reserved, as the
journal's own fold has it when the run goes on.

The rows of a run are touched by who writes its journal, or by who holds that journal still: never by both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from jumar.core.state import events as ev
from jumar.core.state.budget import Cost
from jumar.errors import BadInput
from jumar.journal.ledger_file import Caps
from jumar.journal.ledger_rows import LedgerRows, LedgerTotals
from jumar.journal.lock import hold_still
from jumar.journal.writer import EVENTS, read

__all__ = ["Caps", "LedgerAccount", "LedgerTotals", "SqliteLedger", "compute_bills"]


class SqliteLedger:
    """A ledger that runs draw on. Make it with `open`; close it, or use it in a `with`. It belongs to one thread."""

    def __init__(self, purse: LedgerRows) -> None:
        self._purse = purse
        self.caps = purse.caps

    @classmethod
    def open(cls, path: Path, caps: Caps | None = None, clock: Callable[[], float] = time.time) -> Self:
        """Return the ledger in *path*, created with *caps* if missing; rows that dead runs left are settled.

        Raises:
            BadInput: if it has other caps, is no ledger, or is not there and no *caps* are given.
            Infra: if it cannot be read or written.
        """
        purse = LedgerRows(path, caps, clock)
        try:
            ledger = cls(purse)
            ledger.recover()
        except BaseException:
            purse.close()
            raise
        return ledger

    def open_account(self, run: str, folder: Path) -> LedgerAccount:
        """Return the account of the run named *run*.

        The caller holds the lock of its journal, which lies in *folder*.

        Raises:
            BadInput: if a run of that name draws on this ledger from another folder, where its journal still is.
            Infra: if the ledger cannot be read or written.
        """
        folder = folder.resolve()
        known = self._purse.enter(run, folder)
        if known != folder:
            if (known / EVENTS).is_file() and not known.samefile(folder):
                raise BadInput(
                    f"the run {run} draws on the ledger {self._purse.path} from {known} already, and {folder} is a "
                    "copy of it; go on with the first"
                )
            self._purse.move(run, folder)
        return LedgerAccount(self, self._purse, run)

    def recover(self) -> None:
        """Release or settle the reservations of dead runs; a run that is being written is left alone.

        Raises:
            Infra: if the ledger cannot be read or written.
        """
        for run, folder in self._purse.list_holders():
            # Held still until the rows are right: else the run could go on meanwhile, and what it sets aside for a
            # request that comes after the lines read here would be released under its feet.
            with hold_still(folder) as dead:
                billed = _read_bills(folder) if dead else None
                if billed is not None:
                    self._purse.settle_all(run, billed)

    def read_total(self) -> LedgerTotals:
        """Return the amounts drawn so far.

        Raises:
            Infra: if the ledger cannot be read.
        """
        return self._purse.read_total()

    def close(self) -> None:
        """Close the database file."""
        self._purse.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LedgerAccount:
    """One run's view of a ledger: a `jumar.ports.Ledger`."""

    def __init__(self, ledger: SqliteLedger, purse: LedgerRows, run: str) -> None:
        self._ledger, self._purse, self._run = ledger, purse, run

    def reserve(self, seq: int, worst: Cost) -> str:
        """Set *worst* aside; return the cap that refuses it even after dead runs are settled, or empty.

        Raises:
            Infra: if the ledger cannot be written, or has that call as paid already.
        """
        if not self._purse.reserve(self._run, seq, worst):
            return ""
        self._ledger.recover()
        return self._purse.reserve(self._run, seq, worst)

    def settle(self, seq: int, cost: Cost) -> None:
        """Replace the reservation by the cost of the call. Settling twice changes nothing; no money is lost.

        Raises:
            Infra: if the ledger cannot be written; what was set aside stays so until `recover`.
        """
        self._purse.settle(self._run, {seq: cost})

    def seconds_left(self) -> float | None:
        """Return the seconds until the cap on time is reached; None: there is no cap.

        Raises:
            Infra: if the ledger cannot be read.
        """
        cap = self._ledger.caps.seconds
        return None if cap is None else max(0.0, cap - self._purse.sum_worked_seconds())

    def recover_own(self, entries: Iterable[ev.Entry]) -> None:
        """Settle the run's own rows on resume: *entries* is its journal, whose lock the caller holds.

        Others may have done so since the run died. What they did follows from the same lines, which nobody could
        change while they looked: doing it again changes nothing, and from here on they leave the run alone.

        Raises:
            Infra: if the ledger cannot be written.
        """
        self._purse.settle_all(self._run, compute_bills(entries))


def compute_bills(entries: Iterable[ev.Entry]) -> dict[int, Cost]:
    """Return the bills of a journal: seq of each `model_request` -> its cost, or its reservation while open."""
    billed: dict[int, Cost] = {}
    asked = -1
    for entry in entries:
        match entry.event:
            case ev.ModelRequest(reserved_usd=usd, reserved_tokens=tokens):
                asked = entry.seq
                billed[asked] = Cost(usd, tokens)
            case ev.ModelCall(usd=usd, input_tokens=sent, output_tokens=received):
                billed[asked] = Cost(usd, sent + received)
            case _:
                pass
    return billed


def _read_bills(folder: Path) -> dict[int, Cost] | None:
    # Without a journal nothing tells what became of the calls. They may have been made, so what was set aside for
    # them is not given to others. It is not settled either: the folder may be back tomorrow.
    try:
        return compute_bills(read(folder))
    except BadInput:
        return None
