"""Decides how the tests of a task are run: the runner, its limits, and the rules of a test command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jumar.core.state.settings import Suite
from jumar.languages.project_kinds import COMMAND, detect_runner
from jumar.task.command_files import find_files_run
from jumar.task.command_texts import LARGEST
from jumar.task.settings.run_settings import LONGEST_SECONDS
from jumar.task.settings.task_file import TestsTable

TEST_SECONDS = 30.0
"""For one test, where nobody chose."""


def choose_runner(tests: TestsTable, root: Path) -> str:
    """Return the runner that *tests* names or implies by a command or report, else that of the project in *root*."""
    if not tests.runner and (tests.command or tests.report):
        return "junit" if tests.report else COMMAND
    return tests.runner or detect_runner(root)


def build_suite(tests: TestsTable, env: Mapping[str, str]) -> Suite:
    """Return how the tests of a task with these tables are run."""
    limit = tests.test_timeout_seconds or (LONGEST_SECONDS if tests.runner == COMMAND else TEST_SECONDS)
    return Suite(
        runner=tests.runner,
        select=tests.select,
        env=dict(env),
        timeout_seconds=tests.timeout_seconds,
        test_timeout_seconds=min(limit, tests.timeout_seconds) if tests.runner != COMMAND else limit,
        command=tests.command,
        report=tests.report,
        command_for=tests.command_for,
        confirm=tests.confirm,
    )


def find_judging_files(command: str, root: Path) -> tuple[str, ...]:
    """Return files in *root* that *command* names or runs, and those that these run: they judge."""
    if not command.strip():
        return ()
    return tuple(sorted(find_files_run(command, _list_files(root), lambda path: _read_start(root, path))))


def find_last_run(command: str, root: Path, judging: Iterable[str]) -> tuple[str, ...]:
    """Return those of *judging*, the files in *root* that *command* runs, that run no other: one may be the product."""
    every = frozenset(judging)

    def runs_none(file: str) -> bool:
        return find_files_run(command, every, lambda path: "" if path == file else _read_start(root, path)) == every

    return tuple(file for file in sorted(every) if runs_none(file))


def _read_start(root: Path, path: str) -> str:
    """Return the first characters of the file *path* in *root*; empty: it is none, or cannot be read."""
    if not (root / path).is_file():  # a pipe would never end
        return ""
    try:
        with (root / path).open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _list_files(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        for name in files:
            yield Path(folder, name).relative_to(root).as_posix()
