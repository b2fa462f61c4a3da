"""Reads the test ids of a plain pytest suite off its files, without a process: only where they are certain.

Certain they are where nothing but functions and classes with plain names makes tests: no configuration, no conftest, no
decorators, no fixtures but pytest's own, no base class but that of unittest, nothing imported that may be a test or a
fixture, and no value but literals. Anything else is left to pytest to collect.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from jumar.core.state.settings import Suite
from jumar.runners.pytest import PytestRunner

CONFIGURATION = frozenset(
    ["conftest.py", "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg"]
)
"""Files that may change what pytest collects. `pyproject.toml` may, too, if it speaks of pytest."""

UNENTERED = frozenset(["_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}"])
"""Folders that pytest does not look into, beside those that begin with a dot or end with `.egg`."""

FIXTURES = frozenset({
    "cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "doctest_namespace", "monkeypatch",
    "pytestconfig", "record_property", "recwarn", "request", "tmp_path", "tmp_path_factory", "tmpdir", "tmpdir_factory",
    "self",
})  # fmt: skip
"""Arguments that do not multiply a test."""


BASES = {"unittest.TestCase": "import unittest", "TestCase": "from unittest import TestCase"}
"""The base class of tests in the standard library -> how it came by that name."""


class _Uncertain(Exception):  # noqa: N818  it is an answer, not an error
    """Something may make tests, or unmake them, that cannot be read here."""


def read_plain_ids(paths: Sequence[str], read: Callable[[str], bytes], suite: Suite) -> tuple[str, ...] | None:
    """Return the ids that pytest finds in the files at *paths*, all of a tree, or None where they are not certain."""
    if suite.runner != "pytest" or suite.command_for or any(name.startswith("PYTEST") for name in suite.env):
        return None
    try:
        return tuple(_ids(paths, read, suite.select))
    except (_Uncertain, SyntaxError, ValueError, RecursionError):
        return None


def _ids(paths: Sequence[str], read: Callable[[str], bytes], select: Sequence[str]) -> Iterator[str]:
    for path in paths:
        name = path.rpartition("/")[2]
        _certain(name not in CONFIGURATION and not (name == "pyproject.toml" and b"pytest" in read(path)))
        _certain(name.endswith(".py") or not name.startswith("test"))
    for chosen in select:
        _certain("::" not in chosen and any(path == chosen or path.startswith(f"{chosen}/") for path in paths))
    tests = sorted(PytestRunner().test_files(paths, select))
    _certain(bool(tests))
    # Two test files of one name in different folders: whether pytest takes both depends on the folders being packages.
    _certain(max(Counter(path.rpartition("/")[2] for path in tests).values()) == 1)
    for path in tests:
        _certain(not any(_unentered(folder) for folder in path.split("/")[:-1]))
        data = read(path)
        _certain(b"test-id" not in data)
        tree = ast.parse(data)
        _certain(not _reaches(tree))
        body = tree.body
        _certain(all(_harmless(node, path, paths, read) for node in body))
        yield from (f"{path}::{name}" for name in _module(body))


def _harmless(node: ast.stmt, path: str, paths: Sequence[str], read: Callable[[str], bytes]) -> bool:
    """Return whether *node*, an import in *path*, can bring neither a fixture nor a class of tests."""
    if not isinstance(node, ast.ImportFrom):
        return True
    module = (node.module or "").split(".")
    roots = ("", "src/", path.rpartition("/")[0] + "/")
    names = [f"{root}{'/'.join(module)}{end}" for root in roots for end in (".py", "/__init__.py")]
    found = [name for name in names if name in paths]
    if node.level == 0 and not found and (module[0] in sys.stdlib_module_names or module[0] == "pytest"):
        return module[0] not in _OF_TESTS or all(_unittest(node, alias) for alias in node.names)
    trees = [ast.parse(read(name)) for name in found]
    return (
        node.level == 0
        and bool(found)
        and all(not _reaches(tree) and _plain(tree, alias.name) for tree in trees for alias in node.names)
    )


_OF_TESTS = frozenset({"unittest", "doctest", "test"})
"""Modules of the standard library that hold classes of tests."""


def _plain(tree: ast.Module, name: str) -> bool:
    """Return whether *tree* binds *name* once, as an undecorated function or a class that inherits nothing."""
    bound = 0
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()):
                bound += found == name
            case ast.alias():
                bound += name == (node.asname or node.name).split(".")[0] or node.name == "*"
    matching = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name]
    if bound or len(matching) != 1 or matching[0].decorator_list:
        return False
    return isinstance(matching[0], ast.FunctionDef) or not (matching[0].bases or matching[0].keywords)


def _reaches(tree: ast.AST) -> bool:
    """Return whether anything in *tree* can bind names of a module other than by a statement in its body."""
    for node in ast.walk(tree):
        match node:
            case ast.NamedExpr() | ast.Global():
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _REACHING:
                return True
            case ast.ImportFrom() if any(alias.name in _REACHING for alias in node.names):
                return True
    return False


def _unentered(folder: str) -> bool:
    return folder in UNENTERED or folder.startswith(".") or folder.endswith(".egg")


def _module(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names of the tests in the body of a module."""
    names: list[str] = []
    bases = {ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)}
    for node in body:
        if isinstance(node, ast.ClassDef):
            _certain(all(BASES.get(ast.unparse(base)) in bases for base in node.bases))
            names += (f"{node.name}::{name}" for name in _class(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            named = [alias.asname or alias.name for alias in node.names if not _unittest(node, alias)]
            _certain(not any(_telling(name.split(".")[0]) for name in named))
        elif not _is_main(node):
            names += _statement(node)
    _certain(len(set(names)) == len(names))
    yield from names


def _class(node: ast.ClassDef) -> Iterator[str]:
    _certain(not (node.decorator_list or node.keywords) and len(node.bases) <= 1)
    names = [name for inner in node.body for name in _statement(inner)]
    _certain(not any(isinstance(inner, ast.FunctionDef) and inner.name in _UNMAKING for inner in node.body))
    _certain(len(set(names)) == len(names))
    if node.bases or node.name.startswith("Test"):
        yield from names
    else:
        _certain(not names or not node.name.lower().startswith("test"))


_UNMAKING = frozenset({"__init__", "__new__", "runTest", "__init_subclass__"})
"""Methods that change what of a class is a test."""


def _statement(node: ast.stmt) -> Iterator[str]:
    """Yield the name of the test that *node* is, if it is one."""
    match node:
        case ast.FunctionDef():
            _certain(not node.decorator_list and not node.name.startswith("pytest_"))
            if node.name.startswith("test"):
                _certain(_arguments(node.args) <= FIXTURES)
                _certain(not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)))
                yield node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            _certain(not _telling(name))
            if node.value is not None:
                ast.literal_eval(node.value)  # Anything else may be a class of tests: its ValueError is uncertainty.
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case _:
            raise _Uncertain


def _unittest(node: ast.stmt, alias: ast.alias) -> bool:
    """Return whether unittest's `TestCase` is imported by its own name: it holds no test itself."""
    own = isinstance(node, ast.ImportFrom) and node.module == "unittest" and node.level == 0
    return own and alias.name == "TestCase" and alias.asname is None


_REACHING = frozenset({
    "globals", "locals", "vars", "setattr", "exec", "eval", "compile", "getattr", "sys", "modules", "import_module",
    "__import__", "__builtins__", "__dict__", "__setattr__", "__globals__", "f_globals", "f_locals",
})  # fmt: skip
"""Names by which code can write more names into a module."""


def _telling(name: str) -> bool:
    """Return whether pytest gives *name* a meaning, or it stands for names that are not visible here."""
    return (
        name.lower().startswith("test") or name.startswith(("pytest_", "pytestmark", "collect_", "__")) or name == "*"
    )


def _arguments(args: ast.arguments) -> set[str]:
    _certain(not (args.vararg or args.kwarg or args.defaults or args.kw_defaults))
    return {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}


def _is_main(node: ast.stmt) -> bool:
    """Return whether *node* is `if __name__ == "__main__":`, whose body pytest never runs."""
    test = node.test if isinstance(node, ast.If) and not node.orelse else None
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
    )


def _certain(holds: bool) -> None:  # noqa: FBT001  a statement, not an option
    if not holds:
        raise _Uncertain
