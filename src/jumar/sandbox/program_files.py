"""Finds the files that a program needs: the folders that it must see to work, and little else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from jumar.sandbox.barred_places import split_runs

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PARTS = ("bin", "lib", "lib64", "libexec", "include")
"""Of the folder that a program is installed in. Projects, runs and homes may lie beside them."""

_SYSTEM = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Seen anyway, with what their links lead to."""

_OF_PYTHON = ("share", "ssl", "pyvenv.cfg")

_PYTHON = re.compile(r"(?:python|pypy|graalpy)[\w.-]*")

_CODE = (b"\x7fELF", b"#!")
"""First bytes of a program, of machine code or of a script."""


def find_interpreter_files(python: Path) -> tuple[Path, ...]:
    """Return the files of the interpreter *python*: each link that leads to it, and each installation on the way.

    What lies elsewhere, such as a package that was installed as editable, is not part of it. A repository may bring the
    links and the `pyvenv.cfg`: they count where they lead to interpreters, and parts of an installation lie in it.
    """
    found: list[Path] = []
    todo, done = [python], set[Path]()
    is_base, list_parts = cache(is_base_interpreter), cache(_list_python_parts)  # several links lead to the same
    while todo:
        program = todo.pop()
        if program in done or not os.path.lexists(program) or (program.is_symlink() and not is_python(program)):
            continue
        done.add(program)
        place = program.parent.parent
        home = _find_home(place / "pyvenv.cfg")
        # Of the environment of another project only the interpreter that it leads to.
        other = home is not None and place.resolve() != python.parent.parent.resolve()
        base = not program.is_symlink() and any((place / "lib").glob("python3*"))
        found += list_parts(place) if not other and (home is not None or base) else [program]
        if home is not None:
            todo += [path for name in (program.name, "python3", "python") if is_base(path := home / name)]
        if program.is_symlink():
            # The resolved path as well: folders on the way may be links, and interpreters look for their own file.
            todo += [program.resolve(), Path(os.path.normpath(program.parent / program.readlink()))]
    return tuple(dict.fromkeys(found))


def _list_python_parts(place: Path) -> tuple[Path, ...]:
    return tuple(find_parts(place, (*PARTS, *_OF_PYTHON)))


def find_parts(place: Path, names: Iterable[str] = PARTS) -> Iterator[Path]:
    """Yield the parts of the installation in *place* called *names*.

    A link is one only if it leads to what lies in there.
    """
    real = os.path.realpath(place)
    for part in (place / name for name in names):
        if not part.is_symlink() or part.resolve().is_relative_to(real):
            yield part


def is_python(program: Path) -> bool:
    """Return whether *program* is a Python interpreter, judged by its name and its first bytes."""
    try:
        real = program.resolve(strict=True)
        if not (real.is_file() and os.access(real, os.X_OK) and _PYTHON.fullmatch(real.name)):
            return False
        with real.open("rb") as file:
            return file.read(4).startswith(_CODE)
    except (OSError, RuntimeError):  # RuntimeError: links that lead round
        return False


def is_base_interpreter(python: Path) -> bool:
    """Return whether *python* is an interpreter with its standard library beside it, there or behind a link.

    A virtual environment is none: that of another project would be shown with all that is installed in it.
    """
    places = (python.parent.parent, python.resolve().parent.parent)
    if not is_python(python) or any((place / "pyvenv.cfg").exists() for place in places):
        return False
    return any((found / "os.py").is_file() for place in places for found in place.glob("lib*/python3*"))


def find_installation(program: Path) -> tuple[Path, ...]:
    """Return the files of *program*, in some `PREFIX/bin`: each link that leads to it, and parts of that prefix."""
    found: list[Path] = []
    while program not in found and os.path.lexists(program):
        found.append(program)
        if not program.is_symlink():
            break
        program = Path(os.path.normpath(program.parent / program.readlink()))
    real = found[-1].resolve() if found else program
    prefix = real.parent.parent
    return (*found, real, *(find_parts(prefix) if real.parent.name == "bin" else ()))


def leads_away(folder: Path, origin: Path) -> bool:
    """Return whether *folder* is named in the project *origin* and lies elsewhere, as the project chose."""
    return folder.is_relative_to(origin.absolute()) and not folder.resolve().is_relative_to(origin.resolve())


def find_path_files(search: str, home: str, origin: Path) -> tuple[Path, ...]:
    """Return the files of the programs in the folders of *search*, a PATH; none of them leads to *home* as a whole.

    Of folders in the project *origin*, where links are its own, only the interpreters' are followed.
    """
    barred = {Path(home), *Path(home).parents} if home else {Path("/")}
    return tuple(dict.fromkeys(_find_on_path(search, barred, origin.absolute())))


def _find_on_path(search: str, barred: set[Path], origin: Path) -> Iterator[Path]:
    for folder in map(Path, search.split(":")):
        if not folder.is_absolute() or folder in barred or str(folder) in _SYSTEM:
            continue
        for name in ("python", "python3"):
            yield from find_interpreter_files(folder / name)
        if folder.is_relative_to(origin):
            yield from () if leads_away(folder, origin) else split_runs(folder)
            continue
        yield from split_runs(folder)
        if folder.name == "bin" and folder.parent not in barred:
            yield from find_parts(folder.parent)
        with suppress(OSError):
            for program in sorted(folder.iterdir()):
                if program.is_symlink() and program.resolve().parent != folder and os.access(program, os.X_OK):
                    yield from (path for path in find_installation(program) if path.parent not in barred)


def find_source_folders(python: Path) -> tuple[Path, ...]:
    """Return the folders that editable installations have put on the path of *python*'s environment.

    Format of `.pth` files: docs.python.org/3/library/site.html
    """
    return tuple(dict.fromkeys(_find_linked(python.parent.parent)))


def _find_linked(place: Path) -> Iterator[Path]:
    for file in sorted(place.glob("lib/python3*/site-packages/*.pth")):
        with suppress(OSError, ValueError):
            for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
                path = Path(line.strip())
                if path.is_absolute() and not line.startswith(("#", "import ", "import\t")):
                    yield path


def _find_home(config: Path) -> Path | None:
    """Return the folder of the interpreter that made a virtual environment.

    Format of `pyvenv.cfg`: docs.python.org/3/library/site.html
    """
    try:
        lines = config.read_text("utf-8").splitlines() if config.is_file() else []
    except (OSError, ValueError):
        return None
    pairs = (line.partition("=") for line in lines)
    return next((Path(value.strip()) for key, _, value in pairs if key.strip().lower() == "home"), None)
