"""Detects the kind of project in a folder by the files at its root: its runner, its code and its tests."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import msgspec


class ProjectKind(msgspec.Struct, frozen=True):
    """A kind of project, such as Python or Go, and how it is recognised."""

    runner: str
    sources: tuple[str, ...]
    """Globs of its code: what may be edited where a task does not say."""
    tests: tuple[str, ...]
    """Globs of what is a test, or belongs to one, by its name alone."""


_SCRIPTS = ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx", "*.mts", "*.cts")
_SCRIPT_TESTS = ("tests/", "test/", "__tests__/", "__mocks__/", "__snapshots__/", "*.test.*", "*.spec.*")

COMMAND = "command"
"""The runner of tests that a command of the task's runs, and that tell no more than its exit status."""

TEST_NAMES = (
    "test_*.*", "*_test.*", "*_tests.*", "*_spec.*", "*.test.*", "*.spec.*", "*.bats", "*.t", "*_SUITE.erl",
    "*Test.java", "*Tests.java", "Test*.java", "*Test.kt", "*Tests.kt", "*Test.php", "*Test.cs", "*Tests.cs",
    "*Test.scala", "*Spec.scala", "*Test.groovy", "*Spec.groovy", "*Tests.swift", "*Spec.hs",
)  # fmt: skip
"""Names of test files, in any language."""

TEST_FOLDERS = frozenset(
    {"tests", "test", "__tests__", "spec", "__mocks__", "__snapshots__", "testdata", "e2e", "cypress"}
)
"""Folders whose files are tests, and what tests need."""

BUILD_FILES = (
    "Makefile", "makefile", "GNUmakefile", "*.mk", "Justfile", "justfile", ".justfile", "Taskfile.y*ml",
    "noxfile.py", "tasks.py", "Rakefile", "Gemfile*", "build.gradle*", "settings.gradle*", "gradle/", "gradlew*",
    "pom.xml", "mvnw*", ".mvn/", "build.sbt", "CMakeLists.txt", "CMakePresets.json", "*.cmake", "meson.build",
    "meson_options.txt", "configure", "configure.ac", "BUILD", "BUILD.bazel", "WORKSPACE*", "MODULE.bazel", ".bazelrc",
    "SConstruct", "wscript", "composer.json", "phpunit.xml*", "mix.exs", "rebar.config", "dune-project", "*.cabal",
    "stack.yaml", "Package.swift", "*.csproj", "*.fsproj", "*.sln", "Directory.Build.*", "build.zig*", "deno.json*",
    ".mocharc*", "karma.conf*", "playwright.config*", "turbo.json", "nx.json",
)  # fmt: skip
"""Files by which a test command decides what to run: with them, as with a test, a red could be edited away."""

CHECKER_FILES = (
    "mypy.ini", ".mypy.ini", "pyrightconfig.json", "ruff.toml", ".ruff.toml", ".flake8", ".pylintrc", "pylintrc",
    ".pre-commit-config.yaml", "eslint.config.*", ".eslintrc*", "biome.json*", ".prettierrc*", ".stylelintrc*",
    ".golangci.*", "clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", ".rubocop.yml", ".shellcheckrc",
    ".coveragerc", ".nycrc*", "ava.config.*", ".taprc", "cypress.config.*", "webpack.config.*", "rollup.config.*",
    "Gruntfile.*", "gulpfile.*", "dodo.py", "gradle.properties", "buildSrc/", ".env",
)  # fmt: skip
"""Files by which checkers, runners and bundlers decide what is wrong."""

PYTHON = ProjectKind("pytest", ("*.py",), ("tests/", "test/", "test_*.py", "*_test.py", "conftest.py"))

PROJECTS = {
    project.runner: project
    for project in (
        PYTHON,
        ProjectKind("vitest", _SCRIPTS, _SCRIPT_TESTS),
        ProjectKind("jest", _SCRIPTS, _SCRIPT_TESTS),
        ProjectKind("go", ("*.go",), ("*_test.go", "testdata/")),
        ProjectKind("cargo", ("*.rs",), ("tests/", "benches/")),
        ProjectKind(COMMAND, ("*",), (*(f"{folder}/" for folder in sorted(TEST_FOLDERS)), *TEST_NAMES)),
    )
}
"""Runner -> its kind of project. For any other runner a task names its files itself; until then it is as for Python."""

_TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
"""Target of a makefile."""

TESTS = tuple(dict.fromkeys(line for project in PROJECTS.values() for line in project.tests))
"""All general rules for what is a test."""


def find_project(runner: str) -> ProjectKind:
    """Return the kind of project that *runner* judges."""
    return PROJECTS.get(runner, PYTHON)


def find_test_files(paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
    """Return the test files among *paths*, by names and folders usual in any language, and what *select* names."""
    chosen = {PurePosixPath(s.partition("::")[0]) for s in select}

    def holds_tests(path: PurePosixPath) -> bool:
        named = any(fnmatch(path.name, pattern) for pattern in TEST_NAMES)
        return named or not TEST_FOLDERS.isdisjoint(path.parts[:-1]) or not chosen.isdisjoint((path, *path.parents))

    return tuple(p for p in paths if holds_tests(PurePosixPath(p)))


def detect_runner(root: Path) -> str:
    """Return the runner of the project in *root*: by its `go.mod`, `Cargo.toml` or `package.json`, else pytest's."""
    return recognise_runner(root) or PYTHON.runner


def recognise_runner(root: Path) -> str:
    """Return the runner that the files at *root* indicate; empty: they indicate none."""
    if _is_python(root):
        return PYTHON.runner
    for name, runner in (("go.mod", "go"), ("Cargo.toml", "cargo")):
        if (root / name).is_file():
            return runner
    return _recognise_script(root)


def _is_python(root: Path) -> bool:
    """Return whether *root* is first of all a Python project: many of those have a `package.json` too."""
    return any((root / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"))


def _recognise_script(root: Path) -> str:
    """Return the runner that the `package.json` of *root* wants: among its dependencies, else in its script `test`."""
    wanted, script = _read_package(root)
    return next((runner for runner in ("vitest", "jest") if runner in wanted or runner in script), "")


def suggest_test_command(root: Path) -> str:
    """Return the command that seems to run the tests in *root*: its script `test`, a target of its makefile, or any."""
    if (script := _read_package(root)[1]) and "no test specified" not in script:  # as `npm init` writes it
        return "npm test"
    try:
        targets = _TARGET.findall((root / "Makefile").read_text("utf-8", "replace"))
    except OSError:
        targets = []
    return next((f"make {name}" for name in ("test", "tests", "check") if name in targets), "make check")


def _read_package(root: Path) -> tuple[Collection[str], str]:
    """Return the dependencies that the `package.json` of *root* names, and its script `test`, if there are any."""
    try:
        package = json.loads((root / "package.json").read_bytes())
        wanted = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
        return wanted, str(package.get("scripts", {}).get("test", ""))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return (), ""
