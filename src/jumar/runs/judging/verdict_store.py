"""Stores verdicts in one SQLite file for many processes: the same question is put to the tests once.

A verdict that says nothing for sure is not kept: void, flaky, or of a process that ended badly. Killing any process at
any moment loses at most the verdict it was writing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Self

import anyio
import msgspec

from jumar.core.state.verdict import Ended
from jumar.errors import Infra
from jumar.ports import Verification

MARK, LAYOUT = 0x6A756D76, 1
"""SQLite's application id (`jumv`) and user version of such a file."""

PATIENCE_SECONDS = 30.0
"""Seconds to wait for others to let go of the file; they hold it for about a millisecond."""

TABLE = "CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict BLOB, run TEXT) WITHOUT ROWID"

POLL_SECONDS = 0.02
"""Interval at which it is looked whether another one has the answer."""

_FLOCK = struct.Struct("hhqqi")
"""Type, whence, start, length and process of a lock. Format: `struct flock`, fcntl_locking(2)."""

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
        """Return the store in *path*, which is made if it is not there.

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
        if (found := self._get(key)) is not None:
            yield found
            return
        fd = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(fd, int.from_bytes(key[:4], "big") % STRIPES):  # noqa: ASYNC110  as it says
                await anyio.sleep(POLL_SECONDS)  # another process may hold it, which tells nobody
            yield self._get(key)
        finally:
            os.close(fd)

    def keep(self, key: bytes, done: Verification, run: Path) -> None:
        """Keep the verdict *done*, made in the run directory *run*, if it says something for sure."""
        verdict = done.verdict
        if verdict.void is not None or verdict.flaky_ids or done.ended is not Ended.NORMAL or not verdict.results:
            return
        with suppress(sqlite3.Error):  # the verdict holds; the next one who asks runs the tests
            self._db.execute(
                "INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?)", (key, msgspec.json.encode(done), str(run))
            )

    def _get(self, key: bytes) -> StoredVerdict | None:
        try:
            row = self._db.execute("SELECT verdict, run FROM verdicts WHERE key = ?", (key,)).fetchone()
            return StoredVerdict(msgspec.json.decode(row[0], type=Verification), row[1]) if row else None
        except (sqlite3.Error, msgspec.MsgspecError):
            return None


def _try_lock(fd: int, stripe: int) -> bool:
    """Lock byte *stripe* of the open file *fd* for its description; False: another one has it."""
    # An open file description lock: unlike those of POSIX, two tasks of one process exclude each other, too.
    lock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, stripe, 1, 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock)
    except (BlockingIOError, PermissionError):
        return False
    return True


def hash_question(*facts: object) -> bytes:
    """Return the key of the question that *facts* make up; facts are anything that msgspec encodes."""
    return sha256(msgspec.json.encode(facts, order="sorted")).digest()
