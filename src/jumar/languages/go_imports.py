"""Finds what a project in Go needs of the standard library, by the imports of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ALL = "std"
"""All packages of the library, in the words of go."""

TESTING = frozenset({"testing", "testing/internal/testdeps", "os", "reflect", "time"})
"""Packages that the program is made of which go writes around tests."""

IMPORTED = re.compile(rb'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([a-z][a-z0-9]*(?:/[a-z0-9]+)*)"', re.MULTILINE)
REQUIRES = re.compile(rb"^\s*require\b", re.MULTILINE)

HEAD = 1 << 16
"""Bytes of a file in which its imports stand."""

FILES = 2000
"""A project with more files may need all of the library: to look at each would take as long as to build it."""


def find_library_packages(origin: Path, library: Path) -> tuple[str, ...]:
    """Return the packages of the standard library in *library* that the files of *origin* import, and those of tests.

    They are names of folders in there, whatever else stands in a file. A project that requires modules of others gets
    all of them, as what those import is not looked at.
    """
    found = set(TESTING)
    for number, path in enumerate(_list_files(origin)):
        head = b""
        with suppress(OSError), path.open("rb") as stream:
            head = stream.read(HEAD)
        if number >= FILES or (path.name == "go.mod" and REQUIRES.search(head)):
            return (ALL,)
        if path.suffix == ".go":
            found.update(name.decode() for name in IMPORTED.findall(head))
    return tuple(sorted(name for name in found if name in TESTING or _is_public(name, library)))


def _list_files(origin: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(origin):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in names if name == "go.mod" or name.endswith(".go"))


def _is_public(name: str, library: Path) -> bool:
    hidden = {"internal", "vendor", "cmd", "testdata", "builtin"}.intersection(name.split("/"))
    return not hidden and any((library / name).glob("*.go"))
