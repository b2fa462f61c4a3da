"""Detects code that looks for its judge: frames, probes, exits, tracers, lying comparisons.

Honest programs do each of these now and then, so a tell is a warning and no more, and only where a candidate brought it
in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Finding = tuple[str, int, str]

FRAMES = "looks at the frames of its callers"
OBJECTS = "looks through the living objects of the process"
MODULES = "looks through all loaded modules"
PROBE = "asks whether it is under test"
LEAVES = "leaves the process behind the back of its tests"
HOOKS = "hooks itself into the interpreter"
READS = "names a test file"
LIES = "says it is equal whatever it is compared with"

NAMES = {
    **dict.fromkeys(("_getframe", "_current_frames", "currentframe", "getouterframes", "getinnerframes"), FRAMES),
    **dict.fromkeys(("tb_frame", "f_back", "f_locals", "f_globals", "f_code", "gi_frame", "cr_frame"), FRAMES),
    **dict.fromkeys(("get_objects", "get_referrers", "get_referents"), OBJECTS),
    **dict.fromkeys(("settrace", "setprofile", "addaudithook", "meta_path", "path_hooks"), HOOKS),
    "_exit": LEAVES,
}
"""Names that say it alone, as attributes, imported, or as text for `getattr`."""

CALLS = {
    **dict.fromkeys(("inspect.stack", "inspect.trace"), FRAMES),
    **dict.fromkeys(("os.abort", "os.execv", "os.execve", "os.execvp", "os.execl", "os.execlp"), LEAVES),
    **dict.fromkeys(("atexit.register", "gc.callbacks", "sys.monitoring"), HOOKS),
    **dict.fromkeys(("sys.modules.values", "sys.modules.items", "sys.modules.copy"), MODULES),
    **dict.fromkeys(("linecache.getline", "linecache.getlines", "inspect.getsource"), "reads source code"),
}
"""Dotted names, by the modules that they come from."""

FRAMEWORKS = ("pytest", "_pytest", "pluggy", "unittest", "nose", "hypothesis")

FRAMEWORK = re.compile(r"PYTEST_\w+|[\w./\\-]*(?:_pytest|\bpytest|py\.test|\bconftest|\bunittest)[\w./\\-]*")
TEST_FILE = re.compile(r"(?:.*[/\\])?(?:test_[\w*?]*|\*_?test|[\w*?]+_test)\.py")
PYTHON_FILES = re.compile(r"(?:.*[/\\])?\*+\.py")
DATA_FILE = re.compile(r".*\.(?!py\b)\w{1,8}")

LISTINGS = frozenset(["glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk"])
READINGS = frozenset(["open", "read_text", "read_bytes", "getlines"])

MAIN = ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)

TRUE_OF = {"__eq__": True, "__ne__": False, "__contains__": True, "__ge__": True, "__le__": True}
"""Comparisons, and the answer that flatters."""


def build_finder(tests: tuple[str, ...]) -> Callable[[ast.Module], Iterator[Finding]]:
    """Build the function that detects such code in a tree, given the test files *tests*."""
    names = {path.rpartition("/")[2] for path in tests}
    stems = {name.rpartition(".")[0] for name in names if name.endswith(".py")} - {"__init__"}

    def find(tree: ast.Module) -> Iterator[Finding]:
        nodes = list(walk_code(tree))
        aliases = read_imports(nodes)
        docs = {id(n.value) for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield from _check_text(node.value, node.lineno, names, stems)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from _check_import(node, stems)
            elif isinstance(node, (ast.Attribute, ast.Name)):
                yield from _check_name(node, aliases)
            elif isinstance(node, (ast.Assign, ast.Delete)):
                yield from _check_assignment(node, aliases)
            elif isinstance(node, ast.ClassDef):
                yield from _check_comparisons(node)
            if isinstance(node, (ast.Expr, ast.Assign, ast.Return, ast.For, ast.withitem)):
                yield from _check_place(node)

    return find


def walk_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes in the order of the text, without what only runs as a program of its own."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.dump(node.test) == MAIN:  # no test runs the code below it
            todo += reversed(node.orelse)
            continue
        yield node
        todo += reversed(list(ast.iter_child_nodes(node)))


def read_imports(nodes: list[ast.AST]) -> dict[str, str]:
    """Return the imports: local name -> the dotted name that was imported."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update({a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                          for a in node.names})  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    return found


def get_dotted_name(node: ast.AST, aliases: dict[str, str]) -> str:
    """Return `a.b.c` under its imported name; empty if *node* is no such name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([aliases.get(node.id, node.id), *reversed(words)])


def _check_text(text: str, line: int, names: set[str], stems: set[str]) -> Iterator[Finding]:
    if len(text) > 200 or any(c.isspace() for c in text):  # noqa: PLR2004  a name and not prose
        return
    if text in NAMES:
        yield f"name {text}", line, f"{NAMES[text]} ({text!r})"
    elif FRAMEWORK.fullmatch(text):
        yield f"probe {text}", line, f"{PROBE} ({text!r})"
    elif re.split(r"[/\\]", text)[-1] in names or text in stems or TEST_FILE.fullmatch(text):
        yield f"file {text}", line, f"{READS} ({text!r})"
    elif PYTHON_FILES.fullmatch(text):
        yield f"file {text}", line, f"looks for Python files ({text!r})"


def _check_import(node: ast.Import | ast.ImportFrom, stems: set[str]) -> Iterator[Finding]:
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    whole = [f"{module}.{a.name}" if module else a.name for a in node.names]
    level = node.level if isinstance(node, ast.ImportFrom) else 0
    for name in whole:
        if not level and name.partition(".")[0] in FRAMEWORKS:
            yield f"import {name}", node.lineno, f"imports a test framework ({name})"
        elif stems.intersection(name.split(".")) or "conftest" in name.split("."):
            yield f"import {name}", node.lineno, f"imports from the tests ({name})"
    for alias in node.names:
        if module and alias.name in NAMES:
            yield f"name {alias.name}", node.lineno, f"{NAMES[alias.name]} ({module}.{alias.name})"


def _check_name(node: ast.Attribute | ast.Name, aliases: dict[str, str]) -> Iterator[Finding]:
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"name {node.attr}", node.lineno, f"{NAMES[node.attr]} ({get_dotted_name(node, aliases) or node.attr})"
        return
    name = get_dotted_name(node, aliases)
    if name in CALLS:
        yield f"call {name}", node.lineno, f"{CALLS[name]} ({name})"


def _check_assignment(node: ast.Assign | ast.Delete, aliases: dict[str, str]) -> Iterator[Finding]:
    """Yield an attribute of an imported module that is replaced: everybody else sees the new one too."""
    for target in node.targets:
        if isinstance(target, ast.Attribute):
            name = get_dotted_name(target, aliases)
            root = target
            while isinstance(root.value, ast.Attribute):
                root = root.value
            if name and isinstance(root.value, ast.Name) and root.value.id in aliases:
                yield f"patch {name}", node.lineno, f"replaces {name} for everybody"


def _check_place(node: ast.AST) -> Iterator[Finding]:
    """Yield code that reads sources from the folder of its own file."""
    below = list(ast.walk(node)) if not isinstance(node, ast.For) else list(ast.walk(node.iter))
    here = [n for n in below if isinstance(n, ast.Name) and n.id == "__file__"]
    if not here:
        return
    called = {getattr(n, "attr", getattr(n, "id", "")) for n in below if isinstance(n, (ast.Attribute, ast.Name))}
    texts = [n.value for n in below if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    data = any(map(DATA_FILE.fullmatch, texts))
    if not data and called & (LISTINGS | READINGS):
        yield "place", here[0].lineno, "reads what lies beside its own source"


def _check_comparisons(node: ast.ClassDef) -> Iterator[Finding]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name in TRUE_OF:
            answers = [n.value for n in ast.walk(item) if isinstance(n, ast.Return)]
            if answers and all(get_constant(a) is TRUE_OF[item.name] for a in answers):
                yield f"equal {node.name}.{item.name}", item.lineno, f"{node.name}.{item.name} {LIES}"
        elif isinstance(item, ast.Assign) and isinstance(item.value, ast.Lambda):
            for target in item.targets:
                name = target.id if isinstance(target, ast.Name) else ""
                if name in TRUE_OF and get_constant(item.value.body) is TRUE_OF[name]:
                    yield f"equal {node.name}.{name}", item.lineno, f"{node.name}.{name} {LIES}"


def get_constant(node: ast.AST | None) -> Any:
    """Return the value of a constant; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
        return not node.operand.value
    value = node.value if isinstance(node, ast.Constant) else None
    return bool(value) if isinstance(value, int) else value
