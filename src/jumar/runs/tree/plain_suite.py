"""Reads the test ids of a plain pytest suite from its files, without a process, if they are certain.

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
    """Raised if something may create or remove tests that cannot be read here."""


def read_plain_ids(paths: Sequence[str], read: Callable[[str], bytes], suite: Suite) -> tuple[str, ...] | None:
    """Return the ids that pytest finds in the files at *paths*, all of a tree, or None where they are not certain."""
    if suite.runner != "pytest" or suite.command_for or any(name.startswith("PYTEST") for name in suite.env):
        return None
    try:
        return tuple(_list_ids(paths, read, suite.select))
    except (_Uncertain, SyntaxError, ValueError, RecursionError):
        return None


def _list_ids(paths: Sequence[str], read: Callable[[str], bytes], select: Sequence[str]) -> Iterator[str]:
    for path in paths:
        name = path.rpartition("/")[2]
        _require(name not in CONFIGURATION and not (name == "pyproject.toml" and b"pytest" in read(path)))
        _require(name.endswith(".py") or not name.startswith("test"))
    for chosen in select:
        _require("::" not in chosen and any(path == chosen or path.startswith(f"{chosen}/") for path in paths))
    tests = sorted(PytestRunner().test_files(paths, select))
    _require(bool(tests))
    # Two test files of one name in different folders: whether pytest takes both depends on the folders being packages.
    _require(max(Counter(path.rpartition("/")[2] for path in tests).values()) == 1)
    for path in tests:
        _require(not any(_is_unentered(folder) for folder in path.split("/")[:-1]))
        data = read(path)
        _require(b"test-id" not in data)
        tree = ast.parse(data)
        _require(not _can_bind_names(tree))
        body = tree.body
        _require(all(_is_harmless(node, path, paths, read) for node in body))
        yield from (f"{path}::{name}" for name in _list_module_tests(body))


def _is_harmless(node: ast.stmt, path: str, paths: Sequence[str], read: Callable[[str], bytes]) -> bool:
    """Return whether *node*, an import in *path*, can bring neither a fixture nor a class of tests."""
    if not isinstance(node, ast.ImportFrom):
        return True
    module = (node.module or "").split(".")
    roots = ("", "src/", path.rpartition("/")[0] + "/")
    names = [f"{root}{'/'.join(module)}{end}" for root in roots for end in (".py", "/__init__.py")]
    found = [name for name in names if name in paths]
    if node.level == 0 and not found and (module[0] in sys.stdlib_module_names or module[0] == "pytest"):
        return module[0] not in _OF_TESTS or all(_is_test_case_import(node, alias) for alias in node.names)
    trees = [ast.parse(read(name)) for name in found]
    return (
        node.level == 0
        and bool(found)
        and all(not _can_bind_names(tree) and _is_plain(tree, alias.name) for tree in trees for alias in node.names)
    )


_OF_TESTS = frozenset({"unittest", "doctest", "test"})
"""Modules of the standard library that hold classes of tests."""


def _is_plain(tree: ast.Module, name: str) -> bool:
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


def _can_bind_names(tree: ast.AST) -> bool:
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


def _is_unentered(folder: str) -> bool:
    return folder in UNENTERED or folder.startswith(".") or folder.endswith(".egg")


def _list_module_tests(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names of the tests in the body of a module."""
    names: list[str] = []
    bases = {ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)}
    for node in body:
        if isinstance(node, ast.ClassDef):
            _require(all(BASES.get(ast.unparse(base)) in bases for base in node.bases))
            names += (f"{node.name}::{name}" for name in _list_class_tests(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            named = [alias.asname or alias.name for alias in node.names if not _is_test_case_import(node, alias)]
            _require(not any(_has_meaning(name.split(".")[0]) for name in named))
        elif not _is_main(node):
            names += _list_statement_tests(node)
    _require(len(set(names)) == len(names))
    yield from names


def _list_class_tests(node: ast.ClassDef) -> Iterator[str]:
    _require(not (node.decorator_list or node.keywords) and len(node.bases) <= 1)
    names = [name for inner in node.body for name in _list_statement_tests(inner)]
    _require(not any(isinstance(inner, ast.FunctionDef) and inner.name in _UNMAKING for inner in node.body))
    _require(len(set(names)) == len(names))
    if node.bases or node.name.startswith("Test"):
        yield from names
    else:
        _require(not names or not node.name.lower().startswith("test"))


_UNMAKING = frozenset({"__init__", "__new__", "runTest", "__init_subclass__"})
"""Methods that change what of a class is a test."""


def _list_statement_tests(node: ast.stmt) -> Iterator[str]:
    """Yield the name of the test that *node* is, if it is one."""
    match node:
        case ast.FunctionDef():
            _require(not node.decorator_list and not node.name.startswith("pytest_"))
            if node.name.startswith("test"):
                _require(_list_arguments(node.args) <= FIXTURES)
                _require(not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)))
                yield node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            _require(not _has_meaning(name))
            if node.value is not None:
                ast.literal_eval(node.value)  # Anything else may be a class of tests: its ValueError is uncertainty.
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case _:
            raise _Uncertain


def _is_test_case_import(node: ast.stmt, alias: ast.alias) -> bool:
    """Check whether unittest's `TestCase` is imported by its own name: it holds no test itself."""
    own = isinstance(node, ast.ImportFrom) and node.module == "unittest" and node.level == 0
    return own and alias.name == "TestCase" and alias.asname is None


_REACHING = frozenset({
    "globals", "locals", "vars", "setattr", "exec", "eval", "compile", "getattr", "sys", "modules", "import_module",
    "__import__", "__builtins__", "__dict__", "__setattr__", "__globals__", "f_globals", "f_locals",
})  # fmt: skip
"""Names by which code can write more names into a module."""


def _has_meaning(name: str) -> bool:
    """Return whether pytest gives *name* a meaning, or it stands for names that are not visible here."""
    return (
        name.lower().startswith("test") or name.startswith(("pytest_", "pytestmark", "collect_", "__")) or name == "*"
    )


def _list_arguments(args: ast.arguments) -> set[str]:
    _require(not (args.vararg or args.kwarg or args.defaults or args.kw_defaults))
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


def _require(holds: bool) -> None:  # noqa: FBT001  a statement, not an option
    if not holds:
        raise _Uncertain
