"""How the tests of a task are run, settled from its tables: the runner, its limits, and a test command's own rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from jumar.core.state.settings import Suite
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import escape_path
from jumar.languages.project_kinds import BUILD_FILES, CHECKER_FILES, COMMAND, detect_runner, find_project
from jumar.task.command_files import LARGEST, files_run
from jumar.task.settings.task_file import LONGEST_SECONDS, TestsTable

if TYPE_CHECKING:
    from jumar.task.resolve import Options
    from jumar.task.task import Task

TEST_SECONDS = 30.0
"""For one test, where nobody chose."""


def runner_of_tests(tests: TestsTable, root: Path) -> str:
    """The runner that *tests* names or implies by a command, else that of the project in *root*."""
    if not tests.runner and tests.command:
        return "junit" if tests.report else COMMAND
    return tests.runner or detect_runner(root)


def suite_of(tests: TestsTable, env: Mapping[str, str]) -> Suite:
    """How the tests of a task with these tables are run."""
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


def with_command(task: Task, options: Options) -> Task:
    """*task*, judged by the test command of *options* where they have one.

    Raises:
        BadInput: if that command, or the task's own, is given what only applies to a runner that names its tests.
    """
    if options.test_command is None:
        _refuse_idle(task, options)
        return task
    kind = find_project(COMMAND)
    limit = task.suite.test_timeout_seconds if "tests.test_timeout_seconds" in task.named else LONGEST_SECONDS
    suite = replace(
        task.suite, runner=COMMAND, command=options.test_command, report="", command_for="", select=(),
        test_timeout_seconds=limit,
    )  # fmt: skip
    chosen = "files.editable" in task.named
    task = replace(
        task,
        suite=suite,
        expected=(),
        editable=task.editable if chosen else kind.sources,
        protected=task.protected if chosen else (*task.protected, *kind.tests),
    )
    _refuse_idle(task, options)
    return steered(task)


def steered(task: Task) -> Task:
    """*task*, where a test command's build files, and the files that it names, are read-only."""
    if not task.suite.single:
        return task
    return replace(task, protected=(*task.protected, *BUILD_FILES, *CHECKER_FILES, *_named_files(task)))


def _named_files(task: Task) -> Iterator[str]:
    """The files that judge the task by its test command. One that `[files] editable` names by its path stays open."""
    opened = {normpath(line).lstrip("/") for line in task.editable} if "files.editable" in task.named else set()
    for path in judging_files(task.suite.command, task.root):
        if path not in opened:
            yield escape_path(path)


def judging_files(command: str, root: Path) -> tuple[str, ...]:
    """The files in *root* that *command* names or runs, and those that these run in turn: they are what judges."""
    if not command.strip():
        return ()

    def read(path: str) -> str:
        if not (root / path).is_file():  # a pipe would never end
            return ""
        try:
            with (root / path).open("rb") as file:
                return file.read(LARGEST).decode("utf-8", "replace")
        except OSError:
            return ""

    return tuple(sorted(files_run(command, _files(root), read)))


def _refuse_idle(task: Task, options: Options) -> None:
    """Refuse what names single tests, where the command is the only one."""
    if not task.suite.single:
        return
    for label, value in (
        ("--test", options.tests),
        ("[tests] select", task.suite.select),
        ("[tests] expected", task.expected),
        ("[tests] command_for", task.suite.command_for),
        ("[tests] hidden", task.hidden),
    ):
        if value:
            raise BadInput(
                f"{label} names single tests, and a test command is one test for the whole suite: leave it out "
                "(name files that must stay read-only in [files] protected)"
            )


def _files(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        for name in files:
            yield Path(folder, name).relative_to(root).as_posix()
