"""Finds a run by its path, its name, a beginning of its name, or `last`."""

from __future__ import annotations

from pathlib import Path

from jumar.disk.store.shared import is_run
from jumar.errors import BadInput
from jumar.journal import EVENTS

LAST = "last"
"""The newest run."""

SHOWN = 5
"""Names that a sentence lists."""


def find_run(name: str, runs: Path) -> Path:
    """The directory of the run called *name*: a path of one, or a name, a beginning of one or `last` in *runs*.

    Raises:
        BadInput: if there is no such run, or more than one.
    """
    path = Path(name)
    if (path / EVENTS).is_file():
        return path
    if path.is_dir() or "/" in name:
        raise BadInput(f"{name} holds no journal (no {EVENTS} in it); name the directory of a run")
    known = runs_in(runs)
    if name == LAST:
        if not known:
            raise BadInput(f"there is no run in {runs}; `jumar run` makes one, --runs DIR names another folder")
        return known[0]
    exact = [run for run in known if run.name == name]
    found = exact or [run for run in known if name and run.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadInput(f"there is no run {name!r} in {runs}; `jumar runs` lists them, --runs DIR names another folder")
    names = ", ".join(run.name for run in found[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
    raise BadInput(f"{len(found)} runs in {runs} begin with {name!r}: {names}; give more of the name")


def runs_in(runs: Path) -> tuple[Path, ...]:
    """The directories in *runs* that hold a journal, the newest first."""
    try:
        found = [path for path in runs.iterdir() if is_run(path) and (path / EVENTS).is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(found, key=_age, reverse=True))


def _age(run: Path) -> tuple[str, int, str]:
    """Sorts runs by the time in their names, which is in whole seconds, then by their journals."""
    return run.name[:15], (run / EVENTS).stat().st_mtime_ns, run.name
