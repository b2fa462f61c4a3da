"""Mark of a run: an HMAC of its first line that only this user on this machine can make. Others' runs need trust.

The first line of a journal says where a run is applied to, and which commands run in which sandbox. A run directory
that came with a repository has no mark, so nothing acts on it unless a person says so.
"""

from __future__ import annotations

import hmac
import os
import secrets
import shlex
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from jumar.core.quoting import make_one_line
from jumar.core.state.events import Event, RunStart
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS, read
from jumar.languages.gitignore_globs import escape_path

MARK = "mark"
"""In a run's directory: the code, in hexadecimal digits."""

KEY = "key"
KEY_BYTES = 32


class TrustedRun(NamedTuple):
    """A run directory whose journal may be acted on. Made by `Trust.run`, or by a process for a run that it began."""

    folder: Path


class Trust(msgspec.Struct, frozen=True):
    """Rule on which runs are acted on: this user's own, or anyone's."""

    environ: Mapping[str, str]
    """The person's, which says where the key lies."""
    anyone: bool = False
    """True if the person trusts the runs of anyone."""
    said_by: str = "--trust"
    """Option by which a person says so."""

    def run(self, folder: Path) -> TrustedRun:
        """Return the run in *folder* if this user began it on this machine, or if its journal asks for nothing.

        Raises:
            BadInput: if somebody else may have made it, saying what it asks for; or its journal is damaged.
        """
        if not self.anyone and not is_own(folder, self.environ):
            first = next(read(folder), None)
            if first is not None:
                raise BadInput(
                    f"you did not begin the run in {folder} on this machine, or an older jumar did: its journal says "
                    f"{_describe_orders(first.event)}; add {self.said_by} if that is what you want"
                )
        return TrustedRun(folder)


def _describe_orders(start: Event) -> str:
    """Return the orders in the first line of a journal, which are followed when a run is acted on."""
    if not isinstance(start, RunStart):
        return "nothing that can be told"
    settings, suite = start.settings, start.settings.suite
    tests = suite.command or f"{suite.runner} with {suite.python or 'the interpreter of jumar'}"
    others = (suite.command_for, settings.verify, shlex.join(settings.outside.argv))
    commands = ", ".join(f"`{make_one_line(command)}`" for command in (tests, *others) if command)
    return f"to write to {Path(settings.origin).absolute()} and to run {commands} in sandbox {settings.sandbox}"


def mark(folder: Path, first_line: bytes, environ: Mapping[str, str]) -> None:
    """Mark the new *folder*, whose journal or plan begins with *first_line*; without a folder for a key do nothing.

    Raises:
        OSError: if the run's directory cannot be written.
    """
    key = _read_key(folder, environ, make=True)
    if key is not None:
        (folder / MARK).write_bytes(_compute_code(key, first_line) + b"\n")


def is_own(folder: Path, environ: Mapping[str, str], name: str = EVENTS) -> bool:
    """Return whether this user made the first line of the file *name* in *folder*, a run's journal, on this machine."""
    key = _read_key(folder, environ, make=False)
    if key is None or not (folder / MARK).is_file():
        return False
    if folder.is_symlink() or (folder / MARK).is_symlink() or (folder / name).is_symlink():
        return False  # a repository could lead to a run of the person's, beside a best tree of its own
    with suppress(OSError), (folder / MARK).open("rb") as marked, (folder / name).open("rb") as lines:
        return hmac.compare_digest(
            marked.read(sha256().digest_size * 2), _compute_code(key, lines.readline().rstrip(b"\n"))
        )
    return False


def find_state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the key, by the XDG convention; None where *environ* names no home."""
    named, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    base = Path(named) if os.path.isabs(named) else Path(home, ".local", "state")  # noqa: PTH117  it may be empty
    return base / "jumar" if base.is_absolute() else None


def build_key_ignore_line(root: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a gitignore line that keeps the key out of the tree of *root*, if it lies in there.

    Tests could read it.
    """
    folder = find_state_folder(environ)
    inside = folder is not None and folder.resolve().is_relative_to(root.resolve())
    return (escape_path(folder.resolve().relative_to(root.resolve()).as_posix()) + "/",) if folder and inside else ()


def _compute_code(key: bytes, line: bytes) -> bytes:
    return hmac.new(key, line, sha256).hexdigest().encode()


def _read_key(run: Path, environ: Mapping[str, str], *, make: bool) -> bytes | None:
    """Return the person's key; None if there is none, others may know it, or it lies in the repository of *run*."""
    folder = find_state_folder(environ)
    repository = next((above.parent for above in run.absolute().parents if above.name == ".jumar"), run)
    if folder is None or folder.resolve().is_relative_to(repository.resolve()):
        return None
    with suppress(OSError):
        if make:
            _make_key(folder)
        fd = os.open(folder / KEY, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            private = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            key = file.read(KEY_BYTES + 1) if private and stat.S_ISREG(found.st_mode) else b""
        return key if len(key) == KEY_BYTES else None
    return None


def _make_key(folder: Path) -> None:
    """Make a key in *folder*, unless there is one; of several processes that make one, the first wins.

    Raises:
        OSError: if the disk refuses.
    """
    if os.path.lexists(folder / KEY):
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = folder / f"{KEY}.{secrets.token_hex(8)}"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(fd)
        with suppress(FileExistsError):
            os.link(new, folder / KEY)  # whole or not at all, and never in the place of another
    finally:
        new.unlink(missing_ok=True)
