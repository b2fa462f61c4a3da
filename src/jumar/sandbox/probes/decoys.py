"""Creates decoys for the probes: a home, a run, a repository, a terminal, which belong to nobody."""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jumar.child.sandbox import probe_channels, probe_main

UNTOUCHED = "untouched"

PAGES = 128
"""Pages of files by which the channels between runs are tried."""


@dataclass(frozen=True, slots=True)
class Decoys:
    """Folder with all decoys, for the duration of one self-test."""

    folder: Path
    """It looks like the folder of a run: rooms are made in `rooms/`."""
    world: Path
    """Folder that everybody may enter."""
    terminal: tuple[int, int]
    """Both ends of a terminal: what is typed into it, and what a process is given."""
    shared: Path
    token: str
    """Token that all secrets hold."""
    key: str
    """Key in the environment that a sandboxed process must not get."""

    @property
    def room(self) -> Path:
        """Folder that the probing process may use."""
        return self.folder / "rooms" / "probed"

    @property
    def later(self) -> Path:
        """Folder that a later probing process may use."""
        return self.folder / "rooms" / "later"

    @property
    def repository(self) -> Path:
        """Return the repository, which the prober may read but not write."""
        return self.folder / "repository"

    @property
    def output(self) -> Path:
        """File for the output of the prober."""
        return self.folder / "output.txt"

    @property
    def lure(self) -> Mapping[str, str]:
        """Paths and addresses that the prober is given to try."""
        return {
            "token": self.token,
            "abstract": f"jumar-{self.token[:16]}",
            "socket": str(self.world / "socket"),
            "home_socket": str(self.folder / "home" / "socket"),
            "journal": str(self.folder / "events.jsonl"),
            "secret": str(self.folder / "home" / "key"),
        }

    def build_aims(self, environ: bytes) -> dict[str, object]:
        """Return the values that the prober is given; *environ* is this process's environment in /proc."""
        home = self.folder / "home"
        return {
            **self.lure,
            "name": f"jumar-probe-{self.token[:16]}",
            "key": self.key,
            "room": str(self.room),
            "home": str(home),
            "journal_number": (self.folder / "events.jsonl").stat().st_ino,
            "hidden": str(self.folder / "hidden" / "test_hidden.py"),
            "truncated": str(home / "truncated"),
            "removed": str(home / "removed"),
            "moded": str(home / "moded"),
            "tests": str(self.repository / "tests" / "test_it.py"),
            "git": str(self.repository / ".git" / "config"),
            **{name: str(self.repository / name) for name in ("cold", "warm", "dated")},
            "code": probe_main.__file__,
            "shared": str(self.shared),
            "jumar": os.getpid(),
            "environ": hashlib.sha256(environ).hexdigest(),
            "processes": _read_namespace(),
            "terminal": self.terminal[1],
            "terminal_path": os.ttyname(self.terminal[1]),
        }

    def find_harm(self) -> Mapping[str, bool]:
        """Return for each probe whether it succeeded, as seen from outside, and remove its traces."""
        home = self.folder / "home"
        journal = _read_text(self.folder / "events.jsonl")
        told = {
            "write_home": (home / "probe").exists(),
            "write_run": self.token in journal,
            "write_descriptor": "by descriptor" in journal,
            "write_tests": self.token in _read_text(self.repository / "tests" / "test_it.py"),
            "write_git": self.token in _read_text(self.repository / ".git" / "config"),
            "truncate_outside": not _read_text(home / "truncated"),
            "remove_outside": not (home / "removed").exists(),
            "link_outside": (home / "key").stat().st_nlink > 1,
            "change_modes": (home / "moded").stat().st_mode & 0o777 != 0o600,  # noqa: PLR2004
        }
        for name, folder in (("write_programs", "/usr"), ("write_settings", "/etc")):
            left = Path(folder, f"jumar-probe-{self.token[:16]}")
            told[name] = left.exists()
            with suppress(OSError):
                left.unlink()
        return told


@contextmanager
def create_decoys(place: Path) -> Iterator[Decoys]:
    """Create decoys in a new folder of *place*, which is removed on leaving."""
    token, key = secrets.token_hex(24), secrets.token_hex(24)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix=".probes-", dir=place))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)  # as the folders of runs are
        world = Path(tempfile.mkdtemp(prefix="jumar-probes-"))
        stack.callback(shutil.rmtree, world, ignore_errors=True)
        world.chmod(0o755)
        terminal = os.openpty()
        for end in terminal:
            stack.callback(os.close, end)
        shared = Path("/dev/shm" if Path("/dev/shm").is_dir() else world, f"jumar-{token[:16]}")  # noqa: S108
        stack.callback(shared.unlink, missing_ok=True)
        for left in (Path(place, f"jumar-probe-{token[:16]}-left") for place in probe_channels.SHARED):
            stack.callback(_remove, left)
        found = Decoys(folder, world, terminal, shared, token, key)
        _furnish(found)
        yield found


def read_environment() -> bytes:
    """Return the environment of this process, as /proc shows it to others."""
    with suppress(OSError):
        return Path("/proc/self/environ").read_bytes()
    return b""


def _furnish(decoys: Decoys) -> None:
    home = decoys.folder / "home"
    for file, text in (
        (home / "key", decoys.token),
        (home / "jumar-decoy", UNTOUCHED),
        (home / "truncated", UNTOUCHED),
        (home / "removed", UNTOUCHED),
        (home / "moded", UNTOUCHED),
        (decoys.folder / "events.jsonl", ""),
        (decoys.folder / "hidden" / "test_hidden.py", decoys.token),
        (decoys.repository / "tests" / "test_it.py", UNTOUCHED),
        (decoys.repository / ".git" / "config", UNTOUCHED),
        (decoys.repository / "dated", UNTOUCHED),
        (decoys.shared, decoys.token),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o600 if file.parent in (home, decoys.shared.parent) else 0o644)
    home.chmod(0o700)
    for room in (decoys.room, decoys.later):
        room.mkdir(parents=True)
    for name in ("cold", "warm"):
        with (decoys.repository / name).open("wb") as pages:
            pages.write(os.urandom(PAGES * mmap.PAGESIZE))
            pages.flush()
            os.fsync(pages.fileno())  # what is not on the disk yet cannot be dropped
            if name == "cold" and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(pages.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.utime(decoys.repository / "dated", (0, time.time()))


def _remove(left: Path) -> None:
    with suppress(OSError):
        left.unlink()


def _read_text(file: Path) -> str:
    return file.read_text("utf-8")


def _read_namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
