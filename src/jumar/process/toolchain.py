"""Toolchains: finds the real program behind a name on PATH, through links and, for a shim, by asking it.

A shim (asdf, goenv, nodenv, volta, a script of pip's, a wrapper that execs another path) works only where its own
files are. A sandbox shows the toolchain itself instead, so the shim is asked once, outside, which one that is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jumar.core.quoting import make_one_line
from jumar.errors import BadInput
from jumar.ports import Surroundings
from jumar.sandbox.program_files import find_installation, is_python

ASK_SECONDS = 10.0
"""A shim that does not answer within this time counts as one that fails."""

PREPARE_SECONDS = 180.0
"""Most time that a cache may take to fill; what is missing then is built again in every room."""

PREPARED = "jumar-prepared"
"""File in a toolchain's cache whose age tells when it was last filled."""

PREPARED_SECONDS = 24 * 3600.0
"""Age at which a cache is looked over again: go drops what nobody has asked for in days, and a toolchain may change."""

LINE = 200
"""Characters of what a program says in a reason."""

SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
"""Folders of programs that every sandbox shows, and that are on PATH anyway."""

CHOICES = (".tool-versions", ".go-version", ".node-version", ".nvmrc", ".rust-version", "rust-toolchain")
"""Files in which a project names the versions that shims start."""

VERSIONS = re.compile(r"[\w.+\s-]*")
"""Permitted content of such a file: words and numbers. A path would make a shim start the project's program."""


class ShimAnswer(NamedTuple):
    """Answer of a version manager's shim about the real program."""

    said: str = ""
    """The last line of its standard output."""
    why: str = ""
    """Reason for giving no answer; empty: it did answer."""


def find_binary(program: Path, names: Sequence[str]) -> Path | None:
    """Return the file that *program* leads to, if it is machine code called one of *names*, and so no shim."""
    with suppress(OSError):
        real = program.resolve(strict=True)
        with real.open("rb") as file:
            return real if real.name in names and file.read(2) != b"#!" else None
    return None


def ask(argv: Sequence[str], origin: Path, environ: Mapping[str, str] | None = None) -> ShimAnswer:
    """Return the output of *argv*, run in the person's *environ* (None: jumar's) with the versions of *origin*.

    It is not run in *origin* itself: nothing there may decide which program is started outside of a sandbox.
    """
    env = None if environ is None else dict(environ)
    try:
        with tempfile.TemporaryDirectory(prefix="jumar-") as folder:
            for name, text in _list_choices(origin):
                Path(folder, name).write_text(text, "utf-8")
            done = subprocess.run(  # noqa: S603  a program of the person's PATH, without a shell
                list(argv), cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=ASK_SECONDS, check=False, start_new_session=True,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ShimAnswer(why=f"no answer within {ASK_SECONDS:g} s")
    except OSError as error:
        return ShimAnswer(why=str(error.strerror or error))
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        return ShimAnswer(said=lines[-1].strip())
    return ShimAnswer(why=make_one_line((done.stderr or done.stdout).strip(), LINE) or f"exit status {done.returncode}")


def ask_folder(argv: Sequence[str], origin: Path, environ: Mapping[str, str] | None = None) -> ShimAnswer:
    """Ask like `ask`, for the path of a folder or file that must exist."""
    asked = ask(argv, origin, environ)
    there = not asked.why and Path(asked.said).is_absolute() and Path(asked.said).exists()
    return (
        asked
        if there or asked.why
        else ShimAnswer(why=f"it named {make_one_line(asked.said, LINE)!r}, which is not there")
    )


def resolve_python(python: Path, origin: Path) -> Path:
    """Return the interpreter that *python* starts if that is a shim, as pyenv's are; else *python*.

    Raises:
        BadInput: if it starts none.
    """
    shim = True
    with suppress(OSError), python.open("rb") as file:
        shim = file.read(2) == b"#!"
    if not shim and is_python(python):
        return python
    asked = ask_folder((str(python), "-c", "import sys; print(sys.executable)"), origin)
    if asked.why and not shim:
        raise BadInput(f"--python {python} is no Python ({asked.why}); give the path of a Python interpreter")
    if asked.why:
        raise BadInput(f"--python {python} does not start a Python ({asked.why}); give the interpreter's own path")
    return Path(asked.said) if shim else python


def is_prepared(around: Surroundings, packages: Sequence[str]) -> bool:
    """Return whether sandboxed processes find *packages* of the toolchain of *around* compiled, if it compiles."""
    return not around.prepare or around.cache is None or _list_built(around, around.cache).issuperset(packages)


def prepare_cache(around: Surroundings, packages: Sequence[str]) -> None:
    """Build *packages* into the cache of the toolchain of *around*, at most once a day; later callers wait.

    Only the toolchain's own code is built, outside of any task, so the cache holds nothing of a candidate's. A cache
    that cannot be written is left alone: builds go on without it, at the price of building the same again each time.
    """
    if is_prepared(around, packages) or around.cache is None:
        return
    with suppress(OSError, subprocess.TimeoutExpired), tempfile.TemporaryDirectory() as folder:
        around.cache.mkdir(parents=True, exist_ok=True)
        mark = os.open(around.cache / PREPARED, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(mark, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            built = _list_built(around, around.cache)
            if not (missing := [name for name in packages if name not in built]):
                return
            since = os.fstat(mark).st_mtime if built else time.time()
            file.truncate(0)
            # What the mark says is never an argument: a process without a sandbox could have written it.
            subprocess.run(  # noqa: S603  the toolchain of the person, without a shell
                (*around.prepare, *missing), cwd=folder, env={**around.env, "HOME": folder}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PREPARE_SECONDS, check=False,
            )  # fmt: skip
            file.write("\n".join((around.prepare[0], *sorted(built), *missing)))
            file.flush()
            os.utime(mark, (since, since))  # their day began with the first of them


def _list_built(around: Surroundings, cache: Path) -> set[str]:
    """Return the packages of the toolchain of *around* that were built into *cache* within a day."""
    try:
        mark = cache / PREPARED
        program, *built = mark.read_text("utf-8").split("\n")
        fresh = 0 <= time.time() - mark.lstat().st_mtime < PREPARED_SECONDS
        valid = fresh and program == around.prepare[0] and any(path.is_dir() for path in cache.iterdir())
        return set(built) if valid else set()
    except (OSError, ValueError):
        return set()


def explain_unusable(program: Path, question: str, why: str) -> str:
    """Explain why a toolchain cannot be had, in one sentence with its fix, as `Surroundings.missing`."""
    return (
        f"{program} does not tell where its toolchain is ({why.replace(': ', ' - ')}): "
        f"make `{question}` work in a shell, or put the toolchain's own bin folder first on PATH"
    )


def build_search_path(first: Sequence[Path], path: str, last: Path) -> str:
    """Return a PATH of the folders *first*, the person's *path* and the folders *last*."""
    front = [str(folder) for folder in first if str(folder) not in SYSTEM]
    return os.pathsep.join(dict.fromkeys([*front, *filter(None, path.split(os.pathsep)), str(last)]))


def find_outside_links(root: Path) -> tuple[Path, ...]:
    """Return targets outside the folder *root* of symbolic links directly in it: distributions split toolchains up."""
    with suppress(OSError):
        links = [entry.resolve() for entry in root.iterdir() if entry.is_symlink()]
        return tuple(dict.fromkeys(path for path in links if path.exists() and not path.is_relative_to(root)))
    return ()


def find_compilers(path: str) -> tuple[Path, ...]:
    """Return the C compilers on *path* that no sandbox shows by itself: go and cargo link with them."""
    found = (shutil.which(name, path=path) for name in ("cc", "gcc"))
    return tuple(
        dict.fromkeys(
            p for cc in found if cc and str(Path(cc).parent) not in SYSTEM for p in find_installation(Path(cc))
        )
    )


def _list_choices(origin: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the nearest files that choose versions for *origin*."""
    for name in CHOICES:
        for folder in (origin.absolute(), *origin.absolute().parents):
            with suppress(OSError, ValueError):
                text = (folder / name).read_text("utf-8")
                if VERSIONS.fullmatch(text):
                    yield name, text
                break
