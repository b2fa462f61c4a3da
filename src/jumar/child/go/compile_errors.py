"""Attributes the errors of a Go package that does not build, by the compiler's own positions and messages.

The sentences are those of go/types and cmd/go.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.child.runner_bridge import choose_blame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Blamed = tuple[str, str]
    """A `core.verdict.Blame` (or empty), and for an absence the folder of the package, empty for the room itself."""

CODE, TEST, UNKNOWN = ("code", ""), ("test", ""), ("", "")

POSITION = re.compile(r"(?:vet: )?(\S[^:\n]*\.go):(\d+)(?::\d+)?: (.*)")

UNFOUND = re.compile(
    r"(?:package (\S+) is not in (?:std|GOROOT)|no required module provides package (\S+?)[;:]"
    r"|cannot find (?:package|module providing package) \"?([^\s\":]+)|module \S+ .*does not contain package (\S+))"
)
"""Messages about an import whose target is not there."""

BARREN = re.compile(r"^(?:package )?(\S+): (?:no non-test Go files|build constraints exclude all Go files|no Go files)")
"""A package is imported that has no code yet."""

LACKING = (
    re.compile(r"undefined: (\S+)"),
    re.compile(r"\S+ undefined \(type [\[\]*]*([\w.]+)"),
    re.compile(r"(?:not enough|too many) arguments in call to (\S+)"),
    re.compile(r"assignment mismatch: \d+ variables? but (\S+?)(?:\(.*\))? returns"),
    re.compile(r"unknown field \S+ in struct literal(?: of type ([\w.]+))?"),
    re.compile(r"(?:name )?(\S+) not exported by package"),
    re.compile(r"(?:cannot use|cannot call non-function|cannot range over|cannot convert|invalid operation:) ()"),
    re.compile(r"()\S+ \(?(?:no value|type|value of type|variable of type|constant).*(?:used as value|is not a type|is not an expression)"),  # noqa: E501  # one sentence, one line
    re.compile(r"()too (?:few|many) values in"),
    re.compile(r"()impossible type (?:assertion|switch case)"),
    re.compile(r"()multiple-value \S+ .*in single-value context"),
)  # fmt: skip
"""The test and the code do not agree on a name or a signature; the group is what it is about, where that is told."""

IMPORTS = re.compile(r"^import\s*(?:\(([^)]*)\)|([^\n]*))", re.MULTILINE)
IMPORT = re.compile(r"(?:([\w.]+)\s+)?\"([^\"\n]+)\"")


class GoPackages:
    """The packages of the room: membership, and folders."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        """Import path of a module -> its folder in the room."""

    def find_folder(self, package: str) -> str | None:
        """Return the folder of *package*, whether it is there or not; None if it is of no module of the project."""
        for module, folder in sorted(self._modules.items(), key=lambda m: -len(m[0])):
            if package == module or package.startswith(module + "/"):
                return os.path.normpath(os.path.join(folder, package[len(module) + 1 :]))  # noqa: PTH118  # as text
        return None

    def blame_absence(self, package: str) -> Blamed:
        """Return the blame for the absence of *package* or of something in it."""
        folder = self.find_folder(package)
        return TEST if folder is None else _build_absence(folder)


def attribute_errors(said: str, folder: str, base: str, project: GoPackages) -> Blamed:
    """Return the blame for what the build *said* about the tests in *folder*.

    Args:
        said: the lines of go, all that made this package fail.
        folder: of the package, relative to the room.
        base: the folder that the compiler's paths begin in, relative to the room.
        project: the modules of the room.
    """
    return choose_blame(_attribute_error(path, message, folder, project) for path, message in _list_faults(said, base))


def _list_faults(said: str, base: str) -> Iterator[tuple[str, str]]:
    """Yield the faults: the file, relative to the room (empty where none is told), and the sentence."""
    for line in said.splitlines():
        if positioned := POSITION.match(line):
            yield _make_relative(positioned[1], base), positioned[3]
        elif line.strip() and not line.startswith(("#", "\t", " ", "FAIL")):
            yield "", line


def _make_relative(path: str, base: str) -> str:
    if os.path.isabs(path):  # noqa: PTH117  # as text, all of it
        return os.path.relpath(path, os.getcwd())  # noqa: PTH109
    return os.path.normpath(os.path.join(base, path))  # noqa: PTH118


def _attribute_error(path: str, message: str, folder: str, project: GoPackages) -> Blamed:
    if unfound := UNFOUND.search(message):
        package = next(filter(None, unfound.groups()), "")
        fault = project.blame_absence(package)
        return CODE if fault == TEST and path and not path.endswith("_test.go") else fault
    if not path:
        return _attribute_unplaced(message, project)
    if path.startswith(".."):
        return TEST
    if not path.endswith("_test.go"):
        return CODE
    if os.path.dirname(path) not in (folder, folder.removeprefix(".")):  # noqa: PTH120
        return UNKNOWN
    return _attribute_type_error(Path(path), message, folder, project)


def _attribute_unplaced(message: str, project: GoPackages) -> Blamed:
    if barren := BARREN.match(message):
        return project.blame_absence(barren[1])
    if message.startswith("found packages "):
        files = re.findall(r"\((\S+\.go)\)", message)
        return TEST if all(file.endswith("_test.go") for file in files) else CODE
    return CODE if "import cycle not allowed" in message else UNKNOWN


def _attribute_type_error(path: Path, message: str, folder: str, project: GoPackages) -> Blamed:
    """Return the blame for a type error in a test file; unless it disagrees with the code, the test is to blame."""
    about = next((m for m in (pattern.match(message) for pattern in LACKING) if m), None)
    if about is None:
        return TEST
    name = about[1] or ""
    package, imports = _read_imports(path)
    head, dot, _ = name.partition(".")
    if dot and head in imports:
        return project.blame_absence(imports[head])
    if name and not dot and package.endswith("_test") and "." not in imports and message.startswith("undefined:"):
        return TEST  # a test outside the package has only what it imports and what it defines
    if package.endswith("_test") and "." in imports:
        return project.blame_absence(imports["."])
    return _build_absence(folder)


def _build_absence(folder: str) -> Blamed:
    return ("absent", "" if folder in ("", ".") else f"./{folder}")


def _read_imports(path: Path) -> tuple[str, dict[str, str]]:
    """Return the package clause of a file, and its imports by the name they have there."""
    text = ""
    with contextlib.suppress(OSError):
        text = path.read_text("utf-8", "replace")
    package = re.search(r"^package\s+(\w+)", text, re.MULTILINE)
    found = {}
    for block, single in IMPORTS.findall(text):
        for alias, target in IMPORT.findall(block or single):
            found[alias or _get_default_name(target.split("/"))] = target
    return package[1] if package else "", found


def _get_default_name(parts: Sequence[str]) -> str:
    """Return the name of an import by itself: its last part that is no version."""
    named = [part for part in parts if not re.fullmatch(r"v\d+", part)] or list(parts)
    return named[-1]
