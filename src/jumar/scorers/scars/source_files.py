"""Reads the source files below a folder, without those of others: environments, packages, caches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from jumar.errors import BadInput
from jumar.languages.syntax import find_language
from jumar.scorers.scars.search import LARGEST_BYTES

NOT_OWN = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "vendor", "target", "dist", "build"})
"""Names of folders with files that nobody wrote by hand; those that begin with a dot are left out, too."""


def read_source_files(places: Iterable[Path]) -> Mapping[str, bytes]:
    """Return path -> content of the source files at or below *places*.

    A path is relative to the current folder where it lies in it. Links are not followed.

    Raises:
        BadInput: if a place is not there, or a file cannot be read.
    """
    found: dict[str, bytes] = {}
    for place in places:
        if not place.exists():
            raise BadInput(f"there is no {place}; name a source file, or a folder with some")
        for path in [place] if place.is_file() else _list_files(place):
            if find_language(path.name) is None:
                continue
            try:
                if path.stat().st_size <= LARGEST_BYTES:
                    found[_get_name(path)] = path.read_bytes()
            except OSError as error:
                raise BadInput(f"cannot read {path}: {error.strerror}") from None
    return found


def _list_files(folder: Path) -> Iterable[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NOT_OWN and not name.startswith("."))
        yield from (path for name in sorted(names) if not (path := Path(place, name)).is_symlink())


def _get_name(path: Path) -> str:
    here = Path.cwd()
    whole = path.absolute()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else str(whole)
