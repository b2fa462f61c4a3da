"""Repositories without tests: detected by file names, and guarded by a command that must stay green."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from jumar.core.state.test_policy import Gate
from jumar.runners._programs import VENVS
from jumar.task.task import Task, list_tree_files

TARGETS = ("test", "check")
"""Targets of a Makefile by which most projects run their tests or checks."""

UNREAL = "no test specified"
"""Part of the script `test` that npm writes into each new `package.json`; it does nothing but fail."""

UNIT_TEST = re.compile(rb"#\[(?:\w+::)*test\b")
"""The attribute of a test in a source file of Rust."""

SET_VERIFY = "set [gate] verify in jumar.toml to a command that must stay green (or pass --verify 'make test')"

ELSE = "or name what runs the tests: --test-command 'make check'"


def format_untested_line(verify: str, gate: Gate) -> str:
    """Return the line that a person reads when a run in a repository without tests begins."""
    if gate is Gate.STRICT:
        return "no tests: the agent writes the first failing test; no edit of the code is admitted before it is red"
    if verify:
        return f"no tests: refactor mode; edits need no claims, and stay only if `{verify}` succeeds at the end"
    return (
        "no tests: refactor mode, and no command that guards it: nothing judges the edits, and the run cannot end "
        f"green; {SET_VERIFY}, {ELSE}, or pass --gate strict to have a failing test written first"
    )


def find_verify_commands(task: Task, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return commands of the project of *task* that could guard a refactoring, the best first."""
    search = environ.get("PATH")
    found = (
        *_find_make_targets(task.root),
        *_find_npm_test(task.root),
        *_find_type_checkers(task.root, search),
        *_find_build_check(task),
    )
    return tuple(c for c in found if "/" in c.split()[0] or shutil.which(c.split()[0], path=search))


def _find_make_targets(root: Path) -> Iterator[str]:
    """Yield `make test` or `make check`, if the Makefile has that target."""
    names = (root / name for name in ("GNUmakefile", "makefile", "Makefile"))
    text = next((_read_text(path) for path in names if path.is_file()), "")
    for target in TARGETS:
        if re.search(rf"^(?:[\w.-]+ +)*{target}(?: +[\w.-]+)*\s*::?(?!=)", text, re.MULTILINE):
            yield f"make {target}"


def _find_npm_test(root: Path) -> Iterator[str]:
    """Yield `npm test`, if `package.json` has a script for it that a person wrote."""
    script = _get_table(_read_json(root / "package.json"), "scripts").get("test")
    if isinstance(script, str) and script.strip() and UNREAL not in script:
        yield "npm test"


def _find_type_checkers(root: Path, search: str | None) -> Iterator[str]:
    """Yield the type checkers that the project configures and has installed."""
    tools = _get_table(_read_toml(root / "pyproject.toml"), "tool")
    ini = _list_sections(root / "setup.cfg")
    if any((root / name).is_file() for name in ("mypy.ini", ".mypy.ini")) or "mypy" in tools or "mypy" in ini:
        for program in _find_program(root, "mypy", search):
            yield f"{program} --exclude '^venv/' ." if (root / "venv").is_dir() else f"{program} ."
    if (root / "pyrightconfig.json").is_file() or "pyright" in tools:
        yield from _find_program(root, "pyright", search)
    if (root / "tsconfig.json").is_file() and (root / "node_modules" / ".bin" / "tsc").exists():
        yield "node_modules/.bin/tsc --noEmit"


def _find_build_check(task: Task) -> Iterator[str]:
    """Yield the fallback check: the code compiles, and with Rust its unit tests pass."""
    root = task.root
    if (root / "Cargo.toml").is_file():
        sources = (root / path for path in list_tree_files(root, task.withheld) if path.endswith(".rs"))
        tested = any(UNIT_TEST.search(path.read_bytes()) for path in sources)
        yield "cargo test" if tested else "cargo check"
    if (root / "go.mod").is_file():
        yield "go build ./..."


def _find_program(root: Path, name: str, search: str | None) -> Iterator[str]:
    """Find the program *name*: in the project's own environment, else on PATH."""
    own = next((f"{venv}/bin/{name}" for venv in VENVS if (root / venv / "bin" / name).is_file()), "")
    if own or shutil.which(name, path=search):
        yield own or name


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}


def _read_toml(path: Path) -> object:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _list_sections(path: Path) -> tuple[str, ...]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_read_text(path))
    except configparser.Error:
        return ()
    return tuple(parser.sections())


def _get_table(tables: object, name: str) -> Mapping[str, object]:
    """Return the table *name* in *tables*; empty where there is none."""
    table = tables.get(name) if isinstance(tables, dict) else None
    return table if isinstance(table, dict) else {}
