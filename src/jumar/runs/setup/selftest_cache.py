"""Remembers the result of a sandbox's self-test in a file that only the user can write, for as long as nothing changes.

The file is no more than a shortcut: it lies in the user's cache folder, which no sandbox shows and no task may contain,
it is believed only if nobody else can have written it, and without it the self-test runs as if nothing were known.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from jumar.sandbox.probes.catalogue import PROBES

NAME = "selftest.json"

MOST = 32
"""Results that are kept: of as many users' namespaces, places and kinds of sandbox as one person has."""

MOST_BYTES = 1 << 20


class PassedSelftest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Result of the self-test of one sandbox, and how that sandbox is made again."""

    candidate: str
    """The tier it was made for; it reached that one or a stronger one."""
    possible: tuple[str, ...]
    """Names of `jumar.sandbox.probes.catalogue.PROBES`."""
    evidence: dict[str, str] = {}
    tried: int
    program: str = ""
    """The bubblewrap; empty for other sandboxes."""
    layered: bool = False
    at: float
    """Time of the self-test, in seconds since 1970."""


class SelftestCache:
    """Self-test results remembered for the user whose environment is *environ*.

    *apart* are folders that code under test may come from or be written back to: where the file would lie in one of
    them, nothing is read or written.
    """

    def __init__(self, environ: Mapping[str, str], apart: Iterable[Path] = ()) -> None:
        cache = environ.get("XDG_CACHE_HOME", "")
        home = environ.get("HOME", "")
        base = Path(cache) if os.path.isabs(cache) else Path(home, ".cache")  # noqa: PTH117  it may be empty
        real = Path(os.path.realpath(base / "jumar"))
        usable = base.is_absolute() and not any(real.is_relative_to(folder.resolve()) for folder in apart)
        self._folder = real if usable else None

    def recall(self, key: str) -> PassedSelftest | None:
        """Return the result kept under *key*; None if there is none, or if others may have written it."""
        found = self._read_all().get(key)
        if found is None or not PROBES.keys() >= set(found.possible) or found.tried != len(PROBES):
            return None
        return found

    def keep(self, key: str, passed: PassedSelftest) -> None:
        """Keep *passed* under *key*. If the disk refuses, the next start runs the self-test again."""
        if self._folder is None:
            return
        known = {k: v for k, v in self._read_all().items() if k != key}
        newest = dict(sorted(known.items(), key=lambda item: item[1].at)[-(MOST - 1) :]) | {key: passed}
        new = self._folder / f"{NAME}.{uuid4().hex}"
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_own(self._folder):
                return
            try:
                fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(fd, "wb") as file:
                    file.write(msgspec.json.encode(newest))
                new.replace(self._folder / NAME)
            finally:
                new.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all remembered results: something here has changed."""
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / NAME).unlink(missing_ok=True)

    def _read_all(self) -> dict[str, PassedSelftest]:
        if self._folder is None or not _is_own(self._folder):
            return {}
        try:
            fd = os.open(self._folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not (stat.S_ISREG(found.st_mode) and _is_private(found) and found.st_nlink == 1):
                return {}
            try:
                return msgspec.json.decode(file.read(MOST_BYTES), type=dict[str, PassedSelftest])
            except (OSError, msgspec.MsgspecError, UnicodeError):
                return {}


def _is_own(folder: Path) -> bool:
    """Return whether *folder* is the user's alone, and only the user and root could put another one in its place."""
    try:
        if not _is_private(folder.lstat()) or not folder.is_dir():
            return False
        return all(map(_is_protected, (above.lstat() for above in folder.parents)))
    except OSError:
        return False


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_protected(above: os.stat_result) -> bool:
    """Return whether no other user can rename the entries of a folder."""
    shared = above.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not above.st_mode & stat.S_ISVTX
    return above.st_uid in (0, os.geteuid()) and not shared
