"""Finds a run by its path, its name, a beginning of its name, or `last`."""

from __future__ import annotations

from pathlib import Path

from jumar.errors import BadInput
from jumar.journal.writer import EVENTS
from jumar.workspace.store.lease import SHARED
from jumar.workspace.store.shared import is_run

RUNS = Path(".jumar") / "runs"
"""The folder of runs where nobody names another."""

LAST = "last"
"""The newest run."""

SHOWN = 5
"""Names that a sentence lists."""


def find_run(name: str, runs: Path) -> Path:
    """Return the directory of the run called *name*: a path of one, or a name, a beginning of one or `last` in *runs*.

    Raises:
        BadInput: if there is no such run, or more than one.
    """
    path = Path(name)
    if (path / EVENTS).is_file():
        return path
    if path.is_dir() or "/" in name:
        raise BadInput(f"{name} holds no journal (no {EVENTS} in it); name the directory of a run")
    known = find_runs(runs)
    if name == LAST:
        if not known:
            raise BadInput(
                f"there is no run in {runs}; `jumar run` makes one; one in another folder is named by its path"
            )
        return known[0]
    exact = [run for run in known if run.name == name]
    found = exact or [run for run in known if name and run.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadInput(
            f"there is no run {name!r} in {runs}; `jumar runs` lists them; one in another folder is named by its path"
        )
    names = ", ".join(run.name for run in found[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
    raise BadInput(f"{len(found)} runs in {runs} begin with {name!r}: {names}; give more of the name")


def refuse_links(runs: Path) -> None:
    """Refuse the folder *runs* if it is a link that a repository may have brought; a person may name a link.

    Raises:
        BadInput: if `.jumar`, `.jumar/runs` the store of *runs* or a folder in it is a link.
    """
    own = (*((RUNS.parent, RUNS) if runs == RUNS else ()), runs / SHARED)
    link = find_link(*own) or find_link(*(runs / SHARED).glob("*"))
    if link is not None:
        raise BadInput(
            f"{link} is a link to {link.resolve()}, and no link is followed there; remove it, or name the folder "
            "of the runs itself"
        )


def find_link(*folders: Path) -> Path | None:
    """Return the first of *folders* that is a symbolic link, or None."""
    return next((folder for folder in folders if folder.is_symlink()), None)


def find_runs(runs: Path) -> tuple[Path, ...]:
    """Return the directories in *runs* that hold a journal, the newest first.

    Raises:
        BadInput: as `refuse_links`.
    """
    refuse_links(runs)
    try:
        found = [path for path in runs.iterdir() if is_run(path) and (path / EVENTS).is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(found, key=_build_age_key, reverse=True))


def _build_age_key(run: Path) -> tuple[str, int, str]:
    """Return a sort key: the time in a run's name, which is in whole seconds, then its journal."""
    return run.name[:15], (run / EVENTS).stat().st_mtime_ns, run.name
