"""What kind of project a folder holds is told by the files at its root: its runner, its code and its tests."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec


class Project(msgspec.Struct, frozen=True):
    """One kind of project."""

    runner: str
    sources: tuple[str, ...]
    """Globs of its code: what may be edited where a task does not say."""
    tests: tuple[str, ...]
    """Globs of what is a test, or belongs to one, by its name alone."""


_SCRIPTS = ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx", "*.mts", "*.cts")
_SCRIPT_TESTS = ("tests/", "test/", "__tests__/", "__mocks__/", "__snapshots__/", "*.test.*", "*.spec.*")

PYTHON = Project("pytest", ("*.py",), ("tests/", "test/", "test_*.py", "*_test.py", "conftest.py"))

PROJECTS = {
    project.runner: project
    for project in (
        PYTHON,
        Project("vitest", _SCRIPTS, _SCRIPT_TESTS),
        Project("jest", _SCRIPTS, _SCRIPT_TESTS),
        Project("go", ("*.go",), ("*_test.go", "testdata/")),
        Project("cargo", ("*.rs",), ("tests/", "benches/")),
    )
}
"""Runner -> its kind of project. For any other runner a task names its files itself; until then it is as for Python."""

TESTS = tuple(dict.fromkeys(line for project in PROJECTS.values() for line in project.tests))
"""All general rules for what is a test."""


def of_runner(runner: str) -> Project:
    """The kind of project that *runner* judges."""
    return PROJECTS.get(runner, PYTHON)


def runner_in(root: Path) -> str:
    """The runner of the project in *root*: by its `go.mod`, `Cargo.toml` or `package.json`, else pytest's."""
    for name, runner in (("go.mod", "go"), ("Cargo.toml", "cargo")):
        if (root / name).is_file() and not _is_python(root):
            return runner
    return (_scripted(root) if not _is_python(root) else "") or PYTHON.runner


def _is_python(root: Path) -> bool:
    """Whether *root* is first of all a Python project: many of those have a `package.json` beside."""
    return any((root / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"))


def _scripted(root: Path) -> str:
    """The runner that the `package.json` of *root* wants: among its dependencies, else in its script `test`."""
    try:
        package = json.loads((root / "package.json").read_bytes())
        wanted = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
        script = str(package.get("scripts", {}).get("test", ""))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return ""
    named = [runner for runner in ("vitest", "jest") if runner in wanted or runner in script]
    return named[0] if named else ""
