"""Stores verdicts in one SQLite file for many processes: the same question is put to the tests once.

A verdict that says nothing for sure is not kept: void, flaky, or of a process that ended badly. Killing any process at
any moment loses at most the verdict it was writing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Self

import msgspec

from jumar.core.state.verdict import Ended
from jumar.errors import Infra
from jumar.ports import Verification
from jumar.runs.judging.byte_locks import hold_byte

MARK, LAYOUT = 0x6A756D76, 1
"""SQLite's application id (`jumv`) and user version of such a file."""

PATIENCE_SECONDS = 30.0
"""Seconds to wait for others to let go of the file; they hold it for about a millisecond."""

TABLE = "CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict BLOB, run TEXT) WITHOUT ROWID"

STRIPES = 4096
"""Bytes of the lock file, one for each group of questions that wait for each other."""


class StoredVerdict(msgspec.Struct, frozen=True):
    """A verdict and the run it was made in."""

    done: Verification
    run: str
    """Its directory."""


class VerdictStore:
    """Verdicts by question. It belongs to one thread; make it with `open`, and close it."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path, self._db = path, db

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store in *path*, which is created if missing.

        Raises:
            Infra: if it cannot be read or written, or is none.
        """
        try:
            db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
            db.execute("BEGIN IMMEDIATE")
            known = db.execute("PRAGMA application_id").fetchone()[0]
            if known not in (0, MARK):
                raise Infra(f"{path} is no store of verdicts; name another file")
            db.execute(f"PRAGMA application_id = {MARK}")
            db.execute(f"PRAGMA user_version = {LAYOUT}")
            db.execute(TABLE)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            raise Infra(f"cannot use the store of verdicts {path}: {error}") from None
        return cls(path, db)

    def close(self) -> None:
        """Close the database file."""
        self._db.close()

    @asynccontextmanager
    async def ask(self, key: bytes) -> AsyncIterator[StoredVerdict | None]:
        """Yield the verdict on the question *key*, or None. Within the block nobody else works on that question.

        Who waits gets the answer that another one finds meanwhile. The kernel lets go of the lock of a dead process.
        """
        if (found := self.get(key)) is not None:
            yield found
            return
        async with hold_byte(self._path.with_suffix(".lock"), (int.from_bytes(key[:4], "big") % STRIPES,)):
            yield self.get(key)

    def keep(self, key: bytes, done: Verification, run: Path) -> None:
        """Keep the verdict *done*, made in the run directory *run*, if it says something for sure."""
        verdict = done.verdict
        if verdict.void is not None or verdict.flaky_ids or done.ended is not Ended.NORMAL or not verdict.results:
            return
        with suppress(sqlite3.Error):  # the verdict holds; the next one who asks runs the tests
            self._db.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, msgspec.json.encode(done), str(run))
            )

    def get(self, key: bytes) -> StoredVerdict | None:
        """Return the verdict on the question *key*, or None if there is none."""
        try:
            row = self._db.execute("SELECT verdict, run FROM verdicts WHERE key = ?", (key,)).fetchone()
            return StoredVerdict(msgspec.json.decode(row[0], type=Verification), row[1]) if row else None
        except (sqlite3.Error, msgspec.MsgspecError):
            return None


def hash_question(*facts: object) -> bytes:
    """Return the key of the question that *facts* make up; facts are anything that msgspec encodes."""
    return sha256(msgspec.json.encode(facts, order="sorted")).digest()
