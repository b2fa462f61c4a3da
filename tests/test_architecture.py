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
CORE = sorted((ROOT / "core").rglob("*.py"))
PURE = {
    "__future__", "builtins", "collections", "contextlib", "dataclasses", "difflib", "enum", "fractions", "functools",
    "hashlib",
    "itertools", "keyword", "math", "msgspec", "operator", "re", "shlex", "string", "textwrap", "typing", "unicodedata",
}  # fmt: skip
CHILDREN = sorted((ROOT / "child").rglob("*.py"))
"""Programs that run in processes of their own, in the interpreter of the task."""
FILES_PER_FOLDER = 14
FLOORS = (
    ("cli/challenges", "cli/doctor", "cli/verdicts"),
    ("cli", "cli/archive", "hooks", "mcp_server"),
    ("cli/console", "executors", "report"),
    ("cli/parameters",),
    ("challenges/generations",),
    ("challenges",),
    ("challenges/ranking",),
    ("campaigns", "importing", "interop", "preferences", "__init__"),
    ("runs",),
    ("corpus", "runs/archive", "runs/external"),
    ("runs/setup",),
    ("runs/judging", "runs/tree", "kernel", "testing"),
    ("agents", "models", "runtime", "task", "runner_contract"),
    (
        "agents/extraction",
        "repair",
        "runners",
        "scorers",
        "scorers/principles",
        "scorers/scars",
        "task/settings",
        "verify",
        "workspace",
    ),
    ("process/resident", "verify/localisation", "verify/naming"),
    ("process/warm",),
    ("languages", "models/wire", "process", "plugins"),
    ("agents/tools", "core/prompts", "core/run/reducers", "sandbox/probes", "ports"),
    ("commands", "core/run", "journal", "sandbox", "verify/challenge", "workspace/store"),
    ("child/warm",),
    ("child/two_process/product_process", "child/two_process/test_process"),
    ("child/cargo", "child/go", "child/javascript", "child/plain", "child/screening", "child/two_process"),
    ("child/two_process/environment", "core/gate", "repair/operators", "workspace/files"),
    ("child/analysis", "child/commands", "child/pytest", "child/sandbox", "child/two_process/wire"),
    ("child/two_process/wire/containers", "child/two_process/wire/files"),
    ("child", "child/challenge", "child/hook", "child/supervisor", "core", "core/state", "repair/source", "errors"),
)
"""Folders, and modules at the top, from the highest to the lowest: each imports itself and lower floors, nothing else.
There are no circles between folders as long as this holds."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Facts(NamedTuple):
    """What is asked of a module; it is parsed once."""

    lines: int
    docstring: str | None
    texts: tuple[str, ...]
    """The docstrings of the module, its classes, functions and fields."""
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
        tuple(found for node in nodes for found in _texts(node)),
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


def _texts(node: ast.AST) -> Iterator[str]:
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else ():
        match statement:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def test_the_core_imports_nothing_impure_and_nothing_else_of_jumar() -> None:
    for path in CORE:
        for module in imports(path):
            ours = module.startswith("jumar.core") or module == "jumar"
            assert ours or module.split(".")[0] in PURE, f"{name(path)} imports {module}"


def test_the_core_calls_nothing_that_reads_the_world() -> None:
    reading = {"open", "print", "input", "__import__", "exec", "eval", "breakpoint"}
    assert not [(name(path), found) for path in CORE if (found := facts(path).called & reading)]


def place(module: str) -> str:
    """The folder in which *module* lies, or its name if it lies at the top."""
    file = ROOT.joinpath(*module.split(".")[1:])
    if file.is_dir():
        return file.relative_to(ROOT).as_posix()
    folder = file.parent.relative_to(ROOT).as_posix()
    return file.name if folder == "." else folder


def dotted(path: Path) -> str:
    return "jumar." + name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


FILES = {dotted(path) for path in MODULES if path.name != "__init__.py"}


def modules(path: Path) -> Iterator[str]:
    """The modules of jumar that the one at *path* imports; of a package, what is imported from it."""
    for found in imports(path):
        file = ROOT.joinpath(*found.split(".")[1:])
        if found.startswith("jumar.") and (file.with_suffix(".py").exists() or (file / "__init__.py").exists()):
            yield found


def test_imports_go_down() -> None:
    floors = {folder: number for number, floor in enumerate(FLOORS) for folder in floor}
    for path in MODULES:
        here, used = place(dotted(path)), tuple(modules(path))
        for module in used:
            there = place(module)
            package = any(m.startswith(f"{module}.") for m in used)
            assert here == there or package or floors[there] > floors[here], f"{name(path)} imports {module}"


def test_every_folder_stands_on_a_floor_and_is_taken_in_at_a_glance() -> None:
    folders = {path.parent for path in MODULES} - {ROOT}
    known = [folder for floor in FLOORS for folder in floor]
    files = {
        name(folder): [p for p in folder.glob("*.*") if p.name not in ("__init__.py", "py.typed")] for folder in folders
    }

    assert sorted(known) == sorted(
        {*(folder for folder, inside in files.items() if inside), *(p.stem for p in ROOT.glob("*.py"))}
    )
    for folder, inside in files.items():
        assert len(inside) <= FILES_PER_FOLDER, f"{folder} has {len(inside)} files: split it by noun"
    assert len(list(ROOT.glob("*.py"))) <= 7, "what lies at the top is the public interface, and what all rooms share"


def test_no_two_modules_import_each_other() -> None:
    """Late imports and those for types count too: a circle of types is one for the reader."""
    graph = {dotted(path): {m for m in modules(path) if m != dotted(path) and m in FILES} for path in MODULES}
    while leaves := {module for module, used in graph.items() if not used}:
        graph = {module: used - leaves for module, used in graph.items() if module not in leaves}

    assert not graph, "each of these imports another one of them"


def test_what_runs_in_other_processes_imports_nothing_else_of_jumar() -> None:
    for path in CHILDREN:
        others = [m for m in imports(path) if m.split(".")[0] == "jumar" and not f"{m}.".startswith("jumar.child.")]
        assert not others, f"{name(path)} imports {others}"


def test_few_places_start_processes() -> None:
    allowed = {
        "workspace/git.py",
        "importing/from_git.py",
        "importing/from_pypi.py",
        "importing/make_task.py",
        "cli/doctor/command.py",
        "scorers/scars/parse_probe.py",
    }
    for path in MODULES:
        starts = {m.split(".")[0] for m in imports(path)} & {"subprocess", "multiprocessing", "pty"}
        if starts:
            known = name(path).startswith(("process/", "child/")) or name(path) in allowed
            assert known, f"{name(path)} imports {starts}"


def test_the_environment_is_read_in_one_place() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|getenv\(")
    found = {name(p) for p in set(MODULES) - set(CHILDREN) if reads.search(p.read_text("utf-8"))}
    assert found <= {"cli/parameters/environment.py"}


def test_modules_and_functions_stay_short() -> None:
    for path in MODULES:
        assert facts(path).lines <= 300, f"{name(path)}: a module stops at 300 lines: split it by noun"
        for function, lines, parameters in facts(path).functions:
            assert lines <= 40, f"{name(path)}: {function} has {lines} lines"
            assert parameters <= 5, f"{name(path)}: {function} has {parameters} parameters"


def test_a_module_begins_with_a_sentence() -> None:
    for path in MODULES:
        text = facts(path).docstring
        assert text, f"{name(path)}: the first line of a module says what the module does"
        assert text.splitlines()[0].rstrip().endswith((".", ":")), name(path)


def test_a_first_sentence_says_what_the_thing_does_and_is_no_clause() -> None:
    clause = re.compile(
        r"\s*(What|Whether|Which|Where|Whom?|Whose|How|Why|When|That|As|Nobody|Nothing|None|Those|Such)\b"
    )

    assert not [
        (name(path), text.strip().splitlines()[0])
        for path in MODULES
        for text in facts(path).texts
        if clause.match(text)
    ]


def test_no_room_without_a_name_of_its_own() -> None:
    nameless = re.compile(r"(^|/)(utils?|helpers?|common|misc|manager|base)\w*\.py$")
    assert not [name(p) for p in MODULES if nameless.search(name(p))]


def test_nothing_is_mocked_and_nothing_sleeps() -> None:
    for path in (REPOSITORY / "tests").rglob("*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text("utf-8")
        assert not re.search(r"unittest\.mock|MagicMock|monkeypatch\.set(attr|item)", text), path.name
        code = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)] if ".sleep(" in text else []
        naps = [n for n in code if ast.unparse(n.func) in ("time.sleep", "anyio.sleep", "asyncio.sleep")]
        assert not naps, path.name


def test_the_public_names_are_few_and_there() -> None:
    assert len(jumar.__all__) <= 25
    for public in jumar.__all__:
        assert hasattr(jumar, public)
