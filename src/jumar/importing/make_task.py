"""Makes a task from a past fix: the old source, the new tests, nothing of the fix itself."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec
import tomli_w

from jumar.core.gate.write_rules import CONFIGURATION, find_escape
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.languages.project_kinds import PYTHON
from jumar.task.settings.task_files import TASK_FILE

REFERENCE = "reference"
"""The folder of a task that holds the fix; it never enters a workspace."""

CHECKS = "task.checks.json"

LEFTOVERS = (".git/", "__pycache__/", "*.pyc", ".jumar/")
"""Files that are never taken over from either side."""

PROSE = ("*.md", "*.rst", "docs/", "doc/", "PKG-INFO", "CHANGE*", "HISTORY*", "NEWS*", "README*", "LICEN[CS]E*", ".*")
"""Files that a release changes without changing the program: no repair begins there."""


class Blob(msgspec.Struct, frozen=True):
    """One file of a source tree. The data of a link is its target."""

    data: bytes
    executable: bool = False
    link: bool = False


Tree = Mapping[str, Blob]
"""Path, relative with forward slashes -> file."""


class TaskDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Description of an imported task."""

    name: str
    """The folder's name."""
    old: str
    new: str
    """The two sides, in words: `humanize 4.12.0`, a commit."""
    planted: bool = False
    select: tuple[str, ...] = ()


class TaskSides(msgspec.Struct, frozen=True):
    """The two trees of an import and their names."""

    about: TaskDescription
    old: Tree
    new: Tree


class TaskLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Files and folders of a task that is written."""

    start: Tree
    """The old source under the new tests."""
    reference: Tree
    """The new text of each source file that the fix changed."""
    editable: tuple[str, ...]
    """Changed source files that are text, and the text files that the fix removed."""


def build_layout(old: Tree, new: Tree, about: TaskDescription) -> TaskLayout:
    """Return the task between two trees.

    What steers the runner (conftest files, pytest's configuration) comes with the tests, from the new side.

    Raises:
        BadInput: if the new side has no tests, or no source file differs.
    """
    judges, leftover, prose = (
        compile_patterns((*PYTHON.tests, *CONFIGURATION)),
        compile_patterns(LEFTOVERS),
        compile_patterns(PROSE),
    )
    if not any(compile_patterns(PYTHON.tests[:-1])(path) and path.endswith(".py") for path in new):
        raise BadInput(f"{about.new} has no tests (tests/, test/, test_*.py); import a version that ships them")
    source = {p: b for p, b in old.items() if not judges(p) and not leftover(p)}
    fixed = {p: b for p, b in new.items() if not judges(p) and not leftover(p) and not prose(p)}
    reference = {p: b for p, b in fixed.items() if source.get(p) != b}
    changed = {**{p: b for p, b in source.items() if not prose(p) and p not in fixed}, **reference}
    editable = sorted(p for p, blob in changed.items() if _is_text(blob))
    if not editable:
        raise BadInput(f"{about.old} and {about.new} have the same source; nothing was fixed between them")
    tests = {p: b for p, b in new.items() if judges(p) and not leftover(p)}
    return TaskLayout(start={**source, **tests}, reference=reference, editable=tuple(editable))


def _is_text(blob: Blob) -> bool:
    """Return whether an agent could write the file: no link, and no compiled catalogue or picture."""
    return not blob.link and b"\0" not in blob.data


def write_task(layout: TaskLayout, about: TaskDescription, out: Path) -> Path:
    """Write the task folder `OUT/NAME` and return its path. No half-written folder ever has that name.

    Raises:
        BadInput: if something that is no task of ours lies there, or the folder cannot be written.
    """
    folder = out / about.name
    if folder.exists() and any(folder.iterdir()) and not (folder / TASK_FILE).is_file():
        raise BadInput(f"{folder} is there already and is no task; choose another --out")
    fresh = out / f".{about.name}.{os.getpid()}"
    try:
        write_tree(layout.start, fresh)
        write_tree(layout.reference, fresh / REFERENCE)
        (fresh / TASK_FILE).write_bytes(tomli_w.dumps(build_task_tables(layout, about)).encode())
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    except OSError as error:
        raise BadInput(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # it is gone if all went well: it has the name of the task
    return folder


def build_task_tables(layout: TaskLayout, about: TaskDescription) -> dict[str, dict[str, object]]:
    """Return the tables of the task file."""
    bug = "one planted bug" if about.planted else f"a bug that {about.new} fixed"
    task: dict[str, object] = {
        "name": about.name,
        "instruction": f"{about.old} has {bug}. Make its tests pass.",
        "reference": REFERENCE,
        "env": {"PYTHONPATH": find_python_path(layout.start)},
    }
    tests: dict[str, object] = {"runner": "pytest"}
    if about.select:
        tests["select"] = list(about.select)
    return {"task": task, "files": {"editable": [escape_path(p) for p in layout.editable]}, "tests": tests}


def find_python_path(tree: Tree) -> str:
    """Return the folder from which the room's own copy of the package is imported, relative to the room."""
    inside = any(p.startswith("src/") and p.endswith(".py") and p.count("/") <= 2 for p in tree)  # noqa: PLR2004  src/a/b.py
    return "src:." if inside else "."


def write_tree(tree: Tree, folder: Path) -> None:
    """Write the files of *tree* into *folder*.

    Raises:
        BadInput: if a path or a link would lead outside.
        OSError: if the disk refuses.
    """
    links = {path for path, blob in tree.items() if blob.link}
    folder.mkdir(parents=True, exist_ok=True)
    for path, blob in tree.items():
        target = folder / path
        if _leads_astray(path, links) or (blob.link and _leads_out(path, os.fsdecode(blob.data))):
            raise BadInput(f"the source holds {path!r}, which leads outside its folder; it is not imported")
        target.parent.mkdir(parents=True, exist_ok=True)
        if blob.link:
            target.symlink_to(os.fsdecode(blob.data))
        else:
            target.write_bytes(blob.data)
            target.chmod(0o755 if blob.executable else 0o644)


def _leads_astray(path: str, links: set[str]) -> bool:
    """Return whether *path* leads out by its name, or through a link, whose target no name shows."""
    above = (parent.as_posix() for parent in PurePosixPath(path).parents)
    return find_escape(path) is not None or posixpath.normpath(path) != path or not links.isdisjoint(above)


def _leads_out(path: str, target: str) -> bool:
    """Return whether a link at *path* to *target* leads out of the tree."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return target.startswith("/") or end.split("/")[0] == ".."
