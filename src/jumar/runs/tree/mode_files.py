"""Selects the files that refactor and codemod mode may edit, and those that steer the runner."""

from __future__ import annotations

import re

from msgspec.structs import replace

from jumar.core.gate.write_rules import CONFIGURATION, Matches, WriteRules
from jumar.core.state.settings import Settings
from jumar.core.state.test_policy import Gate
from jumar.languages.gitignore_globs import compile_patterns
from jumar.languages.project_kinds import CHECKER_FILES, find_project
from jumar.ports import Runner

OWN = (".git/", ".jumar/", "node_modules/", "__pycache__/", "*.pyc", "/task.toml", "/jumar.toml", "/task.checks.json")
CLOSED = ("conftest.py", "conftest/", "conftest.*", "__snapshots__/", *OWN)
"""Closed in every mode: what belongs to tests whatever its place, what is jumar's own, and what no tree holds."""

STEERING = (
    *CONFIGURATION,
    "Makefile", "makefile", "GNUmakefile", "*.mk", "justfile", "Justfile", "Taskfile.y*ml", "noxfile.py", "tasks.py",
    *CHECKER_FILES,
)  # fmt: skip
"""Files that steer a runner or a command such as `make test`: a candidate's own is judged beside the task's."""

_WORD = re.compile(r"[\w./@+-]+")


def add_modes(guard: WriteRules, settings: Settings, runner: Runner) -> WriteRules:
    """Return *guard* with the files that refactor mode may edit under *settings*, and those that steer."""
    kind = find_project(runner.name)
    closed = compile_patterns((*_list_own_lines(settings.protected), *kind.tests, *CLOSED))
    named, scripts = compile_patterns(STEERING), _list_command_words(settings)

    def is_candidate(path: str) -> bool:
        return guard.editable(path) and not guard.protected(path)

    def refactorable(path: str) -> bool:
        return is_candidate(path) or not (closed(path) or runner.test_files((path,), ()))

    allowed, own = compile_patterns(settings.switches.codemod_renames), compile_patterns(OWN)

    def renamable(path: str) -> bool:
        return allowed(path) and not own(path)

    def steering(path: str) -> bool:
        if not (named(path) or path in scripts) or is_candidate(path):  # what the task calls editable is its code
            return False
        return refactorable(path) or not renamable(path)  # a conftest.py in which only names changed is a test's

    return replace(guard, refactorable=refactorable, renamable=renamable, steering=steering)


def build_source_filter(guard: WriteRules, settings: Settings, gate: Gate) -> Matches:
    """Return the test for code under test: files that may be edited in any mode that the run may be in."""
    code = compile_patterns(find_project(settings.suite.runner).sources)
    more = gate is Gate.REFACTOR or settings.switches.allow_refactor or settings.switches.allow_codemod

    def sources(path: str) -> bool:
        if guard.editable(path) and not guard.protected(path):
            return True
        return more and code(path) and guard.refactorable(path) and not guard.steering(path)

    return sources


def _list_own_lines(protected: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of *protected* without the general ones for configuration, which stand in it as one block."""
    size = len(CONFIGURATION)
    for start in range(len(protected) - size, -1, -1):
        if protected[start : start + size] == CONFIGURATION:
            return (*protected[:start], *protected[start + size :])
    return protected


def _list_command_words(settings: Settings) -> frozenset[str]:
    """Return the words that the task's commands name or run: a file among them judges, so it is closed."""
    suite = settings.suite
    said = f"{settings.verify} {suite.command} {suite.command_for}"
    return frozenset((*(word.removeprefix("./") for word in _WORD.findall(said)), *settings.judging))
