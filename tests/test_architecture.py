"""The page of the design that draws the architecture, as checks: what may import what, and how long things may get."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import jumar

pytestmark = pytest.mark.slow  # `make lint` runs them each time

ROOT = Path(jumar.__file__).parent
REPOSITORY = ROOT.parent.parent
MODULES = sorted(ROOT.rglob("*.py"))
CORE = sorted((ROOT / "core").glob("*.py"))
PURE = {
    "__future__", "builtins", "collections", "contextlib", "dataclasses", "difflib", "enum", "fractions", "functools",
    "hashlib",
    "itertools", "keyword", "math", "msgspec", "operator", "re", "shlex", "string", "textwrap", "typing", "unicodedata",
}  # fmt: skip
CHILDREN = {
    *(f"verify/{path.name}" for path in (ROOT / "verify").glob("*_boot.py")),
    "verify/reaper.py", "verify/envoy.py", "verify/reporter.py", "verify/inquest.py", "verify/tracer.py",
    "verify/tripwire.py", "verify/landmarks.py", "verify/witness.py", "verify/incognito.py",
    "verify/plain.py", "verify/alarm.py",
    *(f"verify/{name}.py" for name in ("line_recorders", "go_package", "go_faults", "cargo_binary", "cargo_faults")),
    "verify/cargo_seed.py",
    "verify/channel.py", "verify/family.py", "verify/toll.py", "verify/cell.py",
    "verify/tells.py", "verify/answers.py", "verify/given.py", "verify/vacuous.py", "verify/mutations.py",
    *(f"verify/{path.name}" for path in (ROOT / "verify").glob("apart_*.py")),
    *(f"verify/{path.name}" for path in (ROOT / "verify").glob("javascript*.py")),
    *(f"sandbox/{path.name}" for path in (ROOT / "sandbox").glob("*_boot.py")),
    *(f"sandbox/probes_{part}.py" for part in ("files", "processes", "kernel")),
    "sandbox/enter_mounts.py", "sandbox/enter_locks.py",
    *(f"surfaces/hook_{part}.py" for part in ("fast", "rule", "disk", "commands")),
    "repair/screen_child.py", "repair/screen_plugin.py", "repair/screen_swap.py",
}  # fmt: skip
"""Programs that run in processes of their own, in the interpreter of the task: they import nothing of jumar."""
LAYERS = ("surfaces", "harness", "kernel", "core")
"""One arrow each way: an earlier one may import a later one, never the reverse."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Facts(NamedTuple):
    """What is asked of a module; it is parsed once."""

    lines: int
    law: str | None
    imports: tuple[str, ...]
    """The modules, and names in modules, that it imports."""
    called: frozenset[str]
    """The names that it calls."""
    functions: tuple[tuple[str, int, int], ...]
    """Name, lines and parameters; those of a command are its options, and do not count."""


@cache
def facts(path: Path) -> Facts:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    nodes = tuple(ast.walk(tree))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return Facts(
        len(text.splitlines()),
        ast.get_docstring(tree),
        tuple(found for node in nodes for found in _imported(node, path)),
        frozenset(func.id for func in calls if isinstance(func, ast.Name)),
        tuple(_measured(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)),
    )


def imports(path: Path) -> tuple[str, ...]:
    return facts(path).imports


def _imported(node: ast.AST, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{name(path)}: relative imports hide which layer is meant"
        yield node.module or ""
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _measured(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, int, int]:
    counted = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    command = any("click" in ast.unparse(d) or "command" in ast.unparse(d) for d in node.decorator_list)
    count = 0 if command else len([a for a in counted if a not in ("self", "cls")])
    return node.name, (node.end_lineno or node.lineno) - node.lineno + 1, count


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_imports_nothing_impure_and_nothing_else_of_jumar(path: Path) -> None:
    for module in imports(path):
        ours = module.startswith("jumar.core") or module == "jumar"
        assert ours or module.split(".")[0] in PURE, f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_calls_nothing_that_reads_the_world(path: Path) -> None:
    assert not facts(path).called & {"open", "print", "input", "__import__", "exec", "eval", "breakpoint"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_go_one_way(path: Path) -> None:
    parts = name(path).removesuffix(".py").split("/")
    layer = parts[0] if parts[0] in LAYERS else None
    for module in imports(path):
        above = module.removeprefix("jumar.").split(".")[0]
        if not module.startswith("jumar.") or above not in LAYERS:
            continue
        if layer is None:
            assert above == "core" or (parts[0] == "__init__" and above == "harness"), f"{name(path)} imports {module}"
        else:
            assert LAYERS.index(above) >= LAYERS.index(layer), f"{name(path)} imports {module}"


@pytest.mark.parametrize("child", sorted(CHILDREN))
def test_what_runs_in_the_task_s_interpreter_imports_nothing_of_jumar(child: str) -> None:
    allowed = {f"jumar.{path.removesuffix('.py').replace('/', '.')}" for path in CHILDREN} | {"jumar.core.deploys"}
    found = {m for m in imports(ROOT / child) if m.split(".")[0] == "jumar"} - {
        "jumar.verify",
        "jumar.sandbox",
        "jumar.surfaces",
        "jumar.repair",
    }
    assert not [m for m in found if not any(m == a or m.startswith(a + ".") for a in (*allowed, "jumar.child"))]


def test_only_the_verifier_and_git_start_processes() -> None:
    allowed = {
        "disk/ignored.py",
        "disk/merge.py",
        "disk/patch.py",
        "harness/import_git.py",
        "harness/import_pypi.py",
        "harness/importing.py",
        "surfaces/doctor.py",
    }
    for path in MODULES:
        starts = {m.split(".")[0] for m in imports(path)} & {"subprocess", "multiprocessing", "pty"}
        if starts:
            assert name(path).startswith("verify/") or name(path) in allowed, f"{name(path)} imports {starts}"


def test_the_environment_is_read_in_one_place() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|getenv\(")
    allowed = CHILDREN | {"surfaces/environment.py"}
    found = {name(p) for p in MODULES if reads.search(p.read_text("utf-8"))}
    assert found <= allowed


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_and_functions_stay_short(path: Path) -> None:
    assert facts(path).lines <= 300, "a module stops at 300 lines: split it by noun"
    for function, lines, parameters in facts(path).functions:
        assert lines <= 40, f"{function} has {lines} lines"
        assert parameters <= 5, f"{function} has {parameters} parameters"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_begins_with_its_law(path: Path) -> None:
    law = facts(path).law
    assert law, "the first line of a module states its law"
    assert law.splitlines()[0].rstrip().endswith((".", ":"))


def test_no_room_without_a_name_of_its_own() -> None:
    nameless = re.compile(r"(^|/)(utils?|helpers?|common|misc|manager|base)\w*\.py$")
    assert not [name(p) for p in MODULES if nameless.search(name(p))]


def test_nothing_is_mocked_and_nothing_sleeps() -> None:
    for path in (REPOSITORY / "tests").rglob("*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text("utf-8")
        assert not re.search(r"unittest\.mock|MagicMock|monkeypatch\.set(attr|item)", text), path.name
        code = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        naps = [n for n in code if ast.unparse(n.func) in ("time.sleep", "anyio.sleep", "asyncio.sleep")]
        assert not naps, path.name


def test_the_public_names_are_few_and_there() -> None:
    assert len(jumar.__all__) <= 25
    for public in jumar.__all__:
        assert hasattr(jumar, public)
