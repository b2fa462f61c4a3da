"""Reads a Harbor task, and lists its needs for a container."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from jumar.errors import BadInput
from jumar.importing.dockerfile import Image, read_dockerfile
from jumar.task.settings.task_file import is_harbor
from jumar.task.settings.task_files import TASK_FILE

INSTRUCTION = "instruction.md"

CONTAINER_ONLY = {
    "docker_image": "a prebuilt image",
    "gpus": "GPUs",
    "tpu": "a TPU",
    "mcp_servers": "MCP servers beside it",
    "healthcheck": "a service that must be healthy",
}
"""Keys of `[environment]` that ask for more than files and Python packages."""

CONTAINER_FOLDERS = ("/app", "/workspace", "/tests", "/logs", "/root", "/solution")

HARMLESS = re.compile(
    r"""set\s|cd\s|exit\b|echo\s|if\ .*\$(?:\?|PWD)|then$|else$|elif\s|fi$|mkdir\s
    |apt-get\ update|apt-get\ install\ -y\ curl$
    |curl\s.*https://astral\.sh/uv/|source\s+\$HOME/\.local/bin/env$|export\s+PATH=|(?:cp|cat)\s.*/logs/verifier/""",
    re.VERBOSE,
)
"""Lines of a `test.sh` that prepare pytest, or write down its exit status."""

PYTEST = re.compile(r"(?:if\s+)?(?:python3?\s+-m\s+|uvx?\s+.*?)?pytest(?=\s|;|$)")
WITH = re.compile(r"(?:^|\s)(?:-w|--with)[= ](\S+)")


class HarborTask(msgspec.Struct, frozen=True, kw_only=True):
    """A Harbor task as far as jumar reads it."""

    folder: Path
    name: str
    instruction: str
    image: Image
    tests: tuple[Path, ...]
    """Files below `tests/` but `test.sh`."""
    packages: tuple[str, ...]
    """Requirements that the image and `test.sh` install, but pytest's own."""
    test_seconds: float
    agent_seconds: float | None
    obstacles: tuple[str, ...]
    """Parts that need a container, one clause each; empty: it runs without one."""


def read_harbor_task(folder: Path) -> HarborTask:
    """Return the Harbor task in *folder*, with its needs for a container.

    Raises:
        BadInput: if it is none, or a file of it cannot be read.
    """
    tables = _read_tables(folder)
    obstacles = [*_find_needs(folder, tables)]
    image = Image()
    if (folder / "environment" / "Dockerfile").is_file():
        image = read_dockerfile(folder / "environment")
        obstacles += image.obstacles
    elif not obstacles:
        obstacles.append("environment/ has no Dockerfile, so nobody knows what the image holds")
    shell = _read_text(folder / "tests" / "test.sh") if (folder / "tests" / "test.sh").is_file() else ""
    tests = tuple(p for p in sorted((folder / "tests").rglob("*")) if p.is_file() and p.name != "test.sh")
    obstacles += [*_find_test_needs(folder, tests, shell, image.workdir)]
    package = tables.get("task") or {}
    wanted = (*image.packages, *WITH.findall(shell))
    return HarborTask(
        folder=folder,
        name=str(package.get("name", folder.resolve().name)).rpartition("/")[2],
        instruction=_read_text(folder / INSTRUCTION) if (folder / INSTRUCTION).is_file() else "",
        image=image,
        tests=tests,
        packages=tuple(dict.fromkeys(p for p in wanted if not re.match(r"pytest($|[=<>~]|-json-ctrf)", p))),
        test_seconds=_read_seconds(tables, "verifier") or 600.0,
        agent_seconds=_read_seconds(tables, "agent"),
        obstacles=tuple(dict.fromkeys(obstacles)),
    )


def is_harbor_task(folder: Path) -> bool:
    """Return whether *folder* holds a Harbor task that jumar could import."""
    try:
        return is_harbor(tomllib.loads((folder / TASK_FILE).read_text("utf-8")))
    except (OSError, ValueError, RecursionError):  # what cannot be read is said where it is loaded
        return False


def _read_tables(folder: Path) -> Mapping[str, Any]:
    try:
        tables = tomllib.loads(_read_text(folder / TASK_FILE))
    except ValueError as fault:  # of the format, or a number of thousands of digits
        raise BadInput(f"{folder / TASK_FILE} is no TOML: {fault}") from None
    if not (tables.keys() & {"schema_version", "version", "verifier", "environment", "steps"}):
        raise BadInput(f"{folder} is no Harbor task: its {TASK_FILE} has no schema_version and no [environment]")
    for name in ("task", "verifier", "environment", "agent"):
        if not isinstance(tables.get(name, {}), Mapping):
            raise BadInput(f"{folder / TASK_FILE}: {name} is no table; Harbor has [{name}] there")
    return tables


def _read_seconds(tables: Mapping[str, Any], table: str) -> float | None:
    found = tables.get(table, {}).get("timeout_sec")
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _find_needs(folder: Path, tables: Mapping[str, Any]) -> Iterator[str]:
    environment, verifier = tables.get("environment", {}), tables.get("verifier", {})
    yield from (f"[environment] {key} asks for {what}" for key, what in CONTAINER_ONLY.items() if environment.get(key))
    if str(environment.get("os", "linux")).lower() != "linux":
        yield f"[environment] os is {environment['os']}"
    if environment.get("env") or verifier.get("env"):
        yield "[environment] env or [verifier] env sets variables of a container"
    if verifier.get("environment") or verifier.get("environment_mode") == "separate" or verifier.get("collect"):
        yield "[verifier] judges in a container of its own"
    if tables.get("steps") or (folder / "steps").is_dir():
        yield "it has several steps"
    elif not (folder / INSTRUCTION).is_file():
        yield f"it has no {INSTRUCTION}"
    if any((folder / "environment" / name).exists() for name in ("docker-compose.yaml", "docker-compose.yml")):
        yield "environment/docker-compose.yaml starts several containers"


def _find_test_needs(folder: Path, tests: tuple[Path, ...], shell: str, workdir: str) -> Iterator[str]:
    """Yield needs of tests that are more than pytest files without a container's paths and a `test.sh` to run them."""
    judging = [p for p in tests if re.fullmatch(r"test_.*\.py|.*_test\.py", p.name)]
    if not judging:
        yield "tests/ has no pytest file (test_*.py): its test.sh judges by commands in the container"
    if judging and shell and not any(PYTEST.match(line) for line in _list_commands(shell)):
        yield "tests/test.sh does not run pytest"
    for line in _list_commands(shell) if judging else ():
        if not HARMLESS.match(line) and not PYTEST.match(line):
            yield f"tests/test.sh runs {line[:80]!r}"
    yield from (f"{path.relative_to(folder).as_posix()} is a link" for path in tests if path.is_symlink())
    for path in tests:
        if path.suffix == ".py" and (found := _find_container_path(_read_text(path), workdir)):
            yield f"{path.relative_to(folder).as_posix()} names {found!r}, a path of the container"


def _list_commands(shell: str) -> Iterator[str]:
    for line in shell.replace("\\\n", " ").splitlines():
        if (text := line.strip()) and not text.startswith("#"):
            yield text


def _find_container_path(source: str, workdir: str) -> str:
    """Return the first text in *source* that is a path in the container alone; empty: none is."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    roots = [PurePosixPath(root) for root in (workdir, *CONTAINER_FOLDERS)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/"):
            path = PurePosixPath(node.value)
            if any(path.is_relative_to(root) for root in roots if root != PurePosixPath("/")):
                return node.value
    return ""


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is no UTF-8"
        raise BadInput(f"{path} cannot be read: {why}; a Harbor task has it") from None
