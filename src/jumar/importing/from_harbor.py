"""Makes a task from a Harbor task that needs no container: its files, its instruction, its tests as read-only."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import tomli_w

from jumar.errors import BadInput
from jumar.importing.from_pypi import make_venv
from jumar.importing.harbor_format import HarborTask, read_harbor_task
from jumar.importing.make_task import Blob, Tree, find_python_path, write_tree
from jumar.task.settings.task_files import TASK_FILE

TESTS = "tests"


class ImportedHarborTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was made from one of Harbor's."""

    folder: str
    files: int
    tests: int
    """Number of files below `tests/`."""
    packages: tuple[str, ...]
    notes: tuple[str, ...]
    """Differences from a run in Harbor, one sentence each."""


async def import_harbor_task(source: Path, out: Path, name: str = "") -> ImportedHarborTask:
    """Write the Harbor task in *source* as a task below *out*. Nothing of it is run; a venv has its packages.

    Args:
        source: the folder of the Harbor task.
        out: the folder in which that of the task is made.
        name: the name of that one; empty: the task's own.

    Raises:
        BadInput: if it needs a container, naming for what, or *out* holds something of that name already.
        Infra: if no virtual environment can be made here.
    """
    task = read_harbor_task(source)
    if task.obstacles:
        raise BadInput(f"{source} does not run without a container: {'; '.join(task.obstacles)}; run it in Harbor")
    tree = build_tree(task)
    folder = out / (name or task.name)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    if folder.exists():
        raise BadInput(f"{folder} is there already; remove it, or name another place with --out")
    try:
        write_tree(tree, fresh)
        (fresh / TASK_FILE).write_bytes(tomli_w.dumps(build_tables(task, tree)).encode())
        fresh.rename(folder)
        if task.packages:
            await make_venv(folder, task.packages)
    except BaseException as fault:
        for made in (fresh, folder):
            shutil.rmtree(made, ignore_errors=True)
        if isinstance(fault, OSError):
            raise BadInput(f"cannot write {folder}: {fault.strerror}") from fault
        raise
    return ImportedHarborTask(
        folder=str(folder),
        files=len(task.image.files),
        tests=len(task.tests),
        packages=task.packages,
        notes=tuple(_list_differences(task)),
    )


def build_tree(task: HarborTask) -> Tree:
    """Return the files of the work directory with the tests below `tests/`.

    Raises:
        BadInput: if the image has files there already.
    """
    there = [path for path in task.image.files if path.partition("/")[0] in (TESTS, TASK_FILE)]
    if there:
        raise BadInput(
            f"the image of {task.folder} holds {there[0]}, where jumar puts files of its own; run it in Harbor"
        )
    top = task.folder / "tests"
    tests = {f"{TESTS}/{path.relative_to(top).as_posix()}": Blob(path.read_bytes()) for path in task.tests}
    return {**task.image.files, **tests}


def build_tables(task: HarborTask, tree: Tree) -> dict[str, dict[str, object]]:
    """Return the tables of the task file."""
    where = "" if task.image.workdir == "/" else f"\n\n({task.image.workdir} is the folder that you work in.)"
    tables: dict[str, dict[str, object]] = {
        "task": {
            "name": task.name,
            "instruction": task.instruction.rstrip() + where,
            "env": {"PYTHONPATH": find_python_path(tree)},
        },
        "files": {"editable": ["*"], "protected": [f"/{TESTS}/"]},
        "tests": {"runner": "pytest", "timeout_seconds": task.test_seconds},
    }
    return tables if task.agent_seconds is None else {**tables, "budget": {"seconds": task.agent_seconds}}


def _list_differences(task: HarborTask) -> Iterator[str]:
    yield "its tests lie in the tree, read-only: an agent can read them, which Harbor's agents cannot"
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if task.image.python not in ("", ours):
        yield f"the image has Python {task.image.python}, and the tests run with {ours} (--python names another one)"
    if (task.folder / "solution").is_dir():
        yield "solution/solve.sh is not run: the task has no reference"
