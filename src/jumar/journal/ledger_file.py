"""The caps of a ledger, and what its file must be: checks that open no database."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import msgspec

from jumar.errors import BadInput

_MAGIC = b"SQLite format 3\0"
"""First bytes of a database."""


class Caps(msgspec.Struct, frozen=True):
    """Caps on the spending of all runs on a ledger together; None is no cap."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    """Seconds in which a run on the ledger was at work, each moment once: no call is begun later."""

    def __str__(self) -> str:
        said = [f"{name} {value:,}" for name in self.__struct_fields__ if (value := getattr(self, name)) is not None]
        return ", ".join(said) or "none"


def refuse_unusable(path: Path, caps: Caps | None) -> None:
    """Refuse a *path* that can be no ledger with *caps*, as far as can be told without opening it.

    Raises:
        BadInput: if it is no ledger, is not there and no *caps* are given, or these are none.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file for the ledger")
    if caps is None and not path.exists():
        raise BadInput(f"there is no ledger {path}; give its caps (--ledger-usd, --profile), or name one")
    if _has_foreign_content(path):
        raise build_foreign_error(path)
    for name, value in (msgspec.structs.asdict(caps) if caps else {}).items():
        if value is not None and not (isfinite(value) and value >= 0):
            raise BadInput(
                f"the ledger's cap on {name} must be a number from 0, not {value:g}; leave it out for no cap"
            )


def build_foreign_error(path: Path) -> BadInput:
    """Build the error about a file *path* that is no ledger."""
    return BadInput(f"{path} is no ledger that this jumar knows; name another file, or one that is not there yet")


def _has_foreign_content(path: Path) -> bool:
    """Return whether the file *path* begins as no database does."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError:  # told when it is opened
        return False
    return bool(start) and start != _MAGIC
