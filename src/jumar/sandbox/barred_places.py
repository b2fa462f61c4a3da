"""Finds the places that no sandbox shows, whoever names them: what a task holds for itself, and the runs.

A folder that holds such a place is not shown as a whole: of it the programs are that lie directly in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from jumar.errors import BadInput

MARK = "task.toml"
"""Of a task's folder: it, and each folder above it, holds this place, whether there is such a file or not."""

KEPT = (MARK, ".git", ".jumar")
"""In the task's folder: how it is judged, its history (later commits among it), its runs."""

JOURNAL = "events.jsonl"
FIRST, FIRST_BYTES = b'"run_start"', 4096
"""Name of the file in a run's directory, and a word at its beginning."""

_OF_SYSTEM = tuple(("/", "usr", name) for name in ("bin", "sbin", "lib", "lib64", "libexec", "include", "share"))
"""Folders of thousands of files, in which nothing is looked for: every sandbox shows them (`bwrap.SYSTEM`)."""

_CODE = (b"\x7fELF", b"#!")
"""First bytes of a program, of machine code or of a script: on some disks every file may be executed."""


def list_barred_places(origin: Path, reserved: Iterable[str | Path] = ()) -> tuple[Path, ...]:
    """Return what the task in *origin* holds for itself: *reserved* (held-out tests, the reference), history, runs."""
    real = origin.resolve()
    history = (folder / ".git" for folder in real.parents if (folder / ".git").exists())
    return tuple(dict.fromkeys((*(real / name for name in KEPT), *history, *map(Path, reserved))))


def is_below(path: str, folder: str) -> bool:
    """Return whether *path*, a real one, is *folder* or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def refuse_barred_in(folders: Iterable[Path], barred: Iterable[Path]) -> None:
    """Refuse a *barred* place in one of *folders*, which every program sees.

    Raises:
        BadInput: naming both.
    """
    places = [(place, os.path.realpath(place)) for place in barred if place.name != MARK and os.path.lexists(place)]
    for folder in folders if places else ():
        real = os.path.realpath(folder)
        if found := next((place for place, path in places if is_below(path, real)), None):
            raise BadInput(f"code in a sandbox sees {folder}, and the task keeps {found} for itself: move it elsewhere")


def list_single_programs(folder: Path) -> tuple[Path, ...]:
    """Return the programs that lie directly in *folder*; links lead elsewhere and are none."""
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        return ()
    return tuple(path for path in entries if not path.is_symlink() and _is_program(path))


def _is_program(path: Path) -> bool:
    try:
        if not (path.is_file() and os.access(path, os.X_OK)):
            return False
        with path.open("rb") as file:
            return file.read(4).startswith(_CODE)
    except OSError:
        return False


def split_runs(path: Path) -> tuple[Path, ...]:
    """Return what of *path* may be shown beside runs: itself, its programs if runs lie in it, nothing of a run."""
    real = path.resolve()
    if real.parts[:3] in _OF_SYSTEM:
        return (path,)
    if _is_of_run(real):
        return ()
    with suppress(OSError):
        if any(map(_is_journal, (*real.glob(f"*/{JOURNAL}"), *real.glob(f"*/*/{JOURNAL}")))):
            return list_single_programs(path)
    return (path,)


def _is_of_run(real: Path) -> bool:
    """Return whether *real* is the directory of a run, or lies in one."""
    return any(_is_journal(folder / JOURNAL) for folder in (real, *real.parents))


def _is_journal(path: Path) -> bool:
    """Return whether *path* is the journal of a run, and no file of somebody else's by that name."""
    try:
        with path.open("rb") as file:
            return FIRST in file.read(FIRST_BYTES)
    except OSError:
        return False


def explain_left_out(search: str, barred: Iterable[Path], homes: Iterable[Path]) -> Iterator[str]:
    """Yield one sentence for each folder of *search*, a PATH, that no sandbox shows as a whole.

    *homes* are the person's.
    """
    places, whole = [os.path.realpath(place) for place in barred], [os.path.realpath(home) for home in homes]
    for folder in dict.fromkeys(map(Path, search.split(":"))):
        if not folder.is_absolute() or not folder.is_dir():
            continue
        real = os.path.realpath(folder)
        if any(is_below(home, real) for home in whole):
            yield f"{folder} on PATH holds your home: no sandbox shows it; keep programs in a folder of their own"
        elif any(is_below(real, place) for place in places) or _is_of_run(Path(real)):
            yield f"{folder} on PATH is what the task keeps for itself, or a run's: no sandbox shows it"
        elif any(is_below(place, real) for place in places) or split_runs(folder) != (folder,):
            yield (
                f"{folder} on PATH holds the task or runs: a sandbox shows the programs directly in it, and nothing "
                "else; keep what a program needs in a folder of its own"
            )
