"""Reads a Dockerfile that only lays out files and installs Python packages; names every instruction that does more."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jumar.errors import BadInput
from jumar.importing.make_task import LEFTOVERS, Blob
from jumar.languages.gitignore_globs import compile_patterns

IGNORED = frozenset({"CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "STOPSIGNAL", "MAINTAINER"})
"""Instructions that play no part: Harbor starts its own command."""

PIP = re.compile(r"(?:python3?\s+-m\s+)?pip3?\s+install\s|uv\s+pip\s+install\s")
PIP_FLAGS = frozenset({"--no-cache-dir", "--no-cache", "--system", "--upgrade", "-U", "-q", "--quiet"})
REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]+\])?(?:[=<>~!]=?[\w.*+!,<>=~]+)?")
PYTHON_IMAGE = re.compile(r"(?:docker\.io/)?(?:library/)?python:(\d+\.\d+)\S*")


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image that consists only of files and Python packages."""

    workdir: str = "/"
    files: dict[str, Blob] = {}
    """Path, relative to the work directory -> file."""
    packages: tuple[str, ...] = ()
    python: str = ""
    """Version of Python in the image, such as `3.12`."""
    obstacles: tuple[str, ...] = ()
    """Instructions that need a container, one clause each."""


def read_dockerfile(context: Path) -> Image:
    """Return the image of the Dockerfile in *context*, its build context.

    Raises:
        BadInput: if it cannot be read.
    """
    try:
        text = (context / "Dockerfile").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{context / 'Dockerfile'} cannot be read: {fault}") from None
    build = _Build(context)
    for line in _list_instructions(text):
        build.read_line(line)
    return build.build_image()


def _list_instructions(text: str) -> Iterator[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            yield " ".join(line.split())


class _Build:
    """Follows a Dockerfile from top to bottom."""

    def __init__(self, context: Path) -> None:
        self._context = context.resolve()
        self._workdir, self._python = "/", ""
        self._files: dict[str, Blob] = {}
        self._packages: list[str] = []
        self._obstacles: list[str] = []

    def build_image(self) -> Image:
        inside = {p: b for p, b in self._files.items() if self._is_inside(p)}
        self._obstacles += [f"COPY puts {p} outside the work directory" for p in self._files if p not in inside]
        return Image(
            workdir=self._workdir,
            files={posixpath.relpath(path, self._workdir): blob for path, blob in inside.items()},
            packages=tuple(self._packages),
            python=self._python,
            obstacles=tuple(self._obstacles),
        )

    def read_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word.upper():
            case "FROM" if not self._python and (found := PYTHON_IMAGE.fullmatch(rest)):
                self._python = found[1]
            case "WORKDIR":
                self._workdir = posixpath.normpath(posixpath.join(self._workdir, rest))
            case "COPY" if self._copy(rest):
                return
            case "RUN" if all(map(self._run, rest.split("&&"))):
                return
            case kind if kind in IGNORED:
                return
            case _:
                self._obstacles.append(f"environment/Dockerfile has {line[:80]!r}")

    def _is_inside(self, path: str) -> bool:
        return self._workdir != "/" and path.startswith(self._workdir + "/")

    def _run(self, command: str) -> bool:
        """Return whether *command* only makes folders or installs Python packages, which are recorded."""
        text = command.strip()
        if re.fullmatch(r"mkdir (?:-p )?[\w./ -]+", text):
            return True
        if not (pip := PIP.match(text)):
            return False
        try:
            words = [word for word in shlex.split(text[pip.end() :]) if word not in PIP_FLAGS]
        except ValueError:
            return False
        if not all(REQUIREMENT.fullmatch(word) for word in words):
            return False
        self._packages += words
        return True

    def _copy(self, rest: str) -> bool:
        """Return whether the files of a COPY could be laid out."""
        words = rest.split()
        if any(word.startswith(("-", "[")) for word in words) or len(words) < 2:  # noqa: PLR2004  from, to
            return False
        *sources, dest = words
        target = posixpath.normpath(posixpath.join(self._workdir, dest))
        return all(self._lay(source, target, into=len(sources) > 1 or dest.endswith(("/", "."))) for source in sources)

    def _lay(self, source: str, target: str, *, into: bool) -> bool:
        found = (self._context / source.lstrip("/")).resolve()
        if not found.is_relative_to(self._context) or not found.exists():
            return False
        if found.is_file():
            into = into or any(path.startswith(target + "/") for path in self._files) or target == self._workdir
            self._add(found, f"{target}/{found.name}" if into else target)
            return True
        out = compile_patterns((*LEFTOVERS, "/Dockerfile", ".dockerignore"))
        for path in sorted(found.rglob("*")):
            name = path.relative_to(found).as_posix()
            if path.is_symlink():
                return False
            if path.is_file() and not out(name):
                self._add(path, f"{target}/{name}")
        return True

    def _add(self, path: Path, place: str) -> None:
        self._files[posixpath.normpath(place)] = Blob(path.read_bytes(), bool(path.stat().st_mode & 0o100))
