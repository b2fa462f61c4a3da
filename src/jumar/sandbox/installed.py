"""What a program is made of on this machine: the folders that must be seen for it to work, and as little else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PARTS = ("bin", "lib", "lib64", "libexec", "include")
"""Of the folder that a program is installed in. Projects, runs and homes may lie beside them."""

_SYSTEM = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Seen anyway, with what their links lead to."""

_OF_PYTHON = ("share", "ssl", "pyvenv.cfg")


def interpreter(python: Path) -> tuple[Path, ...]:
    """What the interpreter *python* is made of: each link that leads to it, and each installation on the way.

    What lies elsewhere, such as a package that was installed as editable, is not part of it.
    """
    found: list[Path] = []
    todo, done = [python], set[Path]()
    while todo:
        program = todo.pop()
        if program in done or not os.path.lexists(program):
            continue
        done.add(program)
        place = program.parent.parent
        home = _home(place / "pyvenv.cfg")
        installed = home is not None or (not program.is_symlink() and any((place / "lib").glob("python3*")))
        found += [place / part for part in (*PARTS, *_OF_PYTHON)] if installed else [program]
        if home is not None:
            todo += [home / name for name in (program.name, "python3", "python")]
        if program.is_symlink():
            # The resolved path as well: folders on the way may be links, and interpreters look for their own file.
            todo += [program.resolve(), Path(os.path.normpath(program.parent / program.readlink()))]
    return tuple(found)


def installation(program: Path) -> tuple[Path, ...]:
    """What *program*, in some `PREFIX/bin`, is made of: each link that leads to it, and parts of that prefix."""
    found: list[Path] = []
    while program not in found and os.path.lexists(program):
        found.append(program)
        if not program.is_symlink():
            break
        program = Path(os.path.normpath(program.parent / program.readlink()))
    real = found[-1].resolve() if found else program
    prefix = real.parent.parent
    return (*found, real, *((prefix / part for part in PARTS) if real.parent.name == "bin" else ()))


def on_path(search: str, home: str) -> tuple[Path, ...]:
    """What the programs in the folders of *search*, a PATH, are made of; nothing of it leads to *home* as a whole."""
    return tuple(dict.fromkeys(_on_path(search, {Path(home), *Path(home).parents} if home else {Path("/")})))


def _on_path(search: str, barred: set[Path]) -> Iterator[Path]:
    for folder in map(Path, search.split(":")):
        if not folder.is_absolute() or folder in barred or str(folder) in _SYSTEM:
            continue
        yield folder
        for name in ("python", "python3"):
            yield from interpreter(folder / name)
        if folder.name == "bin" and folder.parent not in barred:
            yield from (folder.parent / part for part in PARTS)
        with suppress(OSError):
            for program in sorted(folder.iterdir()):
                if program.is_symlink() and program.resolve().parent != folder:
                    yield from (path for path in installation(program) if path.parent not in barred)


def sources(python: Path) -> tuple[Path, ...]:
    """The folders that editable installations have put on the path of *python*'s environment.

    Format of `.pth` files: docs.python.org/3/library/site.html
    """
    return tuple(dict.fromkeys(_linked(python.parent.parent)))


def _linked(place: Path) -> Iterator[Path]:
    for file in sorted(place.glob("lib/python3*/site-packages/*.pth")):
        with suppress(OSError, ValueError):
            for line in file.read_text("utf-8").splitlines():
                path = Path(line.strip())
                if path.is_absolute() and not line.startswith(("#", "import ", "import\t")):
                    yield path


def _home(config: Path) -> Path | None:
    """The folder of the interpreter that a virtual environment was made with.

    Format of `pyvenv.cfg`: docs.python.org/3/library/site.html
    """
    try:
        lines = config.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    pairs = (line.partition("=") for line in lines)
    return next((Path(value.strip()) for key, _, value in pairs if key.strip().lower() == "home"), None)
