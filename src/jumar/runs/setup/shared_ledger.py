"""Ledger that several runs draw on, as a run uses it: a file on this machine, or a substitute for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jumar import ports
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.errors import BadInput

if TYPE_CHECKING:
    from jumar.journal.ledger import Caps, SqliteLedger


class RunAccount(ports.Ledger, Protocol):
    """Account of one run on a ledger."""

    def recover_own(self, entries: Iterable[ev.Entry]) -> None:
        """Restore the run's rows when it is resumed; *entries* is its journal, which the caller alone writes."""
        ...


class SharedLedger(Protocol):
    """Ledger that runs draw on."""

    def open_account(self, run: str, folder: Path) -> RunAccount:
        """Return the account of the run named *run*, whose journal the caller holds in *folder*."""
        ...


OpenLedger = Callable[[Path, Budget | None], AbstractContextManager[SharedLedger]]
"""Opens the ledger of a path, which is made with the given caps if it is not there."""


def refuse_ledger_place(path: Path | None, caps: Budget | None) -> None:
    """Refuse a ledger *path* that is no ledger, or at which none with *caps* can be made, before anything runs.

    Raises:
        BadInput: naming the file, or the folder that cannot be written.
    """
    from jumar.journal.ledger_file import refuse_unusable  # noqa: PLC0415  most runs have no ledger

    if path is None:
        return
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not path.exists() and not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise BadInput(f"cannot make the ledger {path}: {above} cannot be written; name another place with --ledger")
    refuse_unusable(path, _read_caps(caps))


def open_ledger(path: Path, caps: Budget | None = None) -> SqliteLedger:
    """Return the ledger in *path*, created with *caps* if it is missing.

    Raises:
        BadInput: as `SqliteLedger.open`.
    """
    from jumar.journal.ledger import SqliteLedger  # noqa: PLC0415  a score has no ledger

    return SqliteLedger.open(path, _read_caps(caps))


def _read_caps(caps: Budget | None) -> Caps | None:
    from jumar.journal.ledger import Caps  # noqa: PLC0415  a score has no ledger

    return Caps(usd=caps.usd, tokens=caps.tokens, seconds=caps.seconds) if caps else None
