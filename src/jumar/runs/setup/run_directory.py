"""Creates run directories: a new folder for each run, kept out of everybody's tree and history."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from jumar.errors import BadInput
from jumar.languages.gitignore_globs import escape_path
from jumar.runs.setup.marks import build_key_ignore_line
from jumar.task.task import Task
from jumar.workspace.patch import find_git
from jumar.workspace.store.shared import RECORD, discard, share

OWN = ".jumar"
"""The folder that is made for the runs where nobody chose another."""


def leave_no_trace(runs: Path) -> None:
    """Remove *runs* again, and `.jumar` with it, unless others keep their runs there by now."""
    with suppress(OSError):
        if not any((p / RECORD).exists() for p in runs.iterdir()):
            discard(runs)
        if [p.name for p in runs.iterdir()] == [".gitignore"]:
            (runs / ".gitignore").unlink()
        runs.rmdir()
        if runs.parent.name == OWN:
            runs.parent.rmdir()


def withhold_run_files(task: Task, runs: Path, model: str, environ: Mapping[str, str]) -> Task:
    """Return *task* with a tree without the runs, the person's key, and the files of its model and ledger."""
    inside = runs.resolve()
    if inside.is_relative_to(task.root) and runs.exists() and not (runs / ".gitignore").is_file():
        raise BadInput(f"--runs {runs} is a folder of the task's own; name one that is not there yet, or one elsewhere")
    answers = Path(model.partition(":")[2]) if model.startswith(("script:", "replay:")) else None
    files = [p.resolve() for p in (answers, task.record, task.ledger) if p is not None]
    files += [p.with_name(f"{p.name}-journal") for p in files[-1:] if task.ledger]
    lines = [escape_path(p.relative_to(task.root).as_posix()) for p in files if p.is_relative_to(task.root)]
    if inside.is_relative_to(task.root):
        lines.append(escape_path(inside.relative_to(task.root).as_posix()) + "/")
    return replace(task, withheld=(*task.withheld, *lines, *build_key_ignore_line(task.root, environ)))


def make_absolute(folder: Path) -> Path:
    """Return *folder* as an absolute path in which nothing leads up again: programs below it compare paths as text."""
    return folder.resolve() if ".." in folder.parts else folder.absolute()


def shorten_name(name: str) -> str:
    """Return *name* as a part of a file's name: at most 48 letters, digits, dots, dashes and underscores."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)[:48]


def create_run_directory(runs: Path, task: str, name: str = "") -> Path:
    """Return a new run directory, called *name*, or after its *task* and the time.

    Raises:
        BadInput: if it cannot be made, or is there already, or there is no git to write its patch at the end.
    """
    find_git()
    name = name or f"{time.strftime('%Y%m%d-%H%M%S')}-{shorten_name(task)}-{secrets.token_hex(3)}"
    folder = make_absolute(runs) / name
    prepare_runs_folder(runs)
    try:
        folder.mkdir()
        share(folder)
    except OSError as error:
        raise BadInput(f"cannot make {folder}: {error.strerror}; choose another place with --runs") from None
    return folder


def prepare_runs_folder(runs: Path) -> None:
    """Create *runs* if it is missing, and tell git to ignore it.

    Raises:
        BadInput: if it cannot be made.
    """
    if runs.exists():
        return
    try:
        runs.mkdir(parents=True)
        with (runs / ".gitignore").open("x") as file:  # no link is followed
            file.write("*\n")
    except OSError as error:
        raise BadInput(f"cannot make {runs}: {error.strerror}; choose another place with --runs") from None
