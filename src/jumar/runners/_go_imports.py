"""Finds the packages of Go's standard library that a tree needs, by its text: none of its code is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jumar.child.go.compile_errors import IMPORT, IMPORTS
from jumar.child.go.go_main import MODULE

ALWAYS = ("fmt", "os", "reflect", "testing", "testing/internal/testdeps")
"""Imports of the main package that go writes for tests, and of our control build."""

EVERYTHING = "std"
"""Go's name for its whole standard library."""

STANDARD = re.compile(r"(?!(?:all|cmd|main|std|tool|work)$|cmd/)[a-z0-9_]+(?:/[a-z0-9_]+)*")
"""Names that a standard package can have; go takes six words for sets of packages (`go help packages`), and what is
below `cmd` are its programs."""

HEAD_BYTES = 65_536
"""Bytes of a file that are read: imports come first. What is missed is only built again in every room."""


def find_standard_imports(room: Path) -> tuple[str, ...]:
    """Return names for `go list`: packages that may be standard, imported in *room* or by go itself for tests.

    Where a module from elsewhere is imported, whose own imports nobody reads here, that is the whole library.
    """
    names = {name for path in sorted(room.rglob("*.go")) for _, name in _list_imports(_read_head(path))}
    own = {found[1] for path in room.rglob("go.mod") if (found := MODULE.search(_read_head(path)))}
    outside = {name for name in names if "." in name.partition("/")[0].lstrip(".")}
    if any(not any(f"{name}/".startswith(f"{module}/") for module in own) for name in outside):
        return (EVERYTHING,)
    with_c = ("runtime/cgo",) if "C" in names else ()
    return tuple(sorted({*ALWAYS, *with_c, *filter(STANDARD.fullmatch, names)}))


def _read_head(path: Path) -> str:
    """Return the first part of a file; of a link nothing, as it may lead anywhere."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES).decode("utf-8", "replace")


def _list_imports(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the paths of the imports in *text*."""
    for block, single in IMPORTS.findall(text):
        yield from IMPORT.findall(block or single)
