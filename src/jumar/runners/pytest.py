"""Runs pytest, with jumar's plug-in inside it: an outcome per id from its phases, nothing is read from text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import msgspec

from jumar.child import programs, start
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.languages.python_options import list_python_options
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode

PATTERNS = ("test_*.py", "*_test.py")
"""pytest's own names for test files."""

NO_CASE = "NOTSET"
"""pytest's name for the value of a parameter whose list is empty."""

_Bodies = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class PytestRunner:
    """Runner adapter for pytest."""

    name = "pytest"
    grade = "D"

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:  # noqa: ARG002  # as below
        """Return empty surroundings: the interpreter of the suite has everything it needs."""
        return Surroundings()

    def collection(self, suite: Suite, room: Path) -> Invocation:  # noqa: ARG002  # other runners name it
        """Return the invocation that lists the ids of the suite."""
        return _build_invocation(suite, {"mode": "collect", "args": list(suite.select), "ids": []})

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # as above
        """Return the invocation that judges *ids*: only their files, so that nothing else is imported."""
        files = list(dict.fromkeys(i.partition("::")[0] for i in ids))
        return _build_invocation(suite, {"mode": "run", "args": files, "ids": list(ids)})

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        found = decode.parse_collection(records, ended, detail)
        return msgspec.structs.replace(found, ids=tuple(dict.fromkeys(map(_name_cases, found.ids))))

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        return decode.build_report(records, ended, detail, serial=True)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*.

        By pytest's names, below what *select* names, or named there themselves.
        """
        chosen = [PurePosixPath(s.partition("::")[0]) for s in select]

        def holds_tests(path: PurePosixPath) -> bool:
            named = any(fnmatch(path.name, pattern) for pattern in PATTERNS)
            below = not chosen or any(folder in path.parents for folder in chosen)
            return path in chosen or (named and below)

        return tuple(p for p in paths if holds_tests(PurePosixPath(p)))

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests that pytest's default names find in *source*, each once; none if it does not parse."""
        try:
            module = ast.parse(source)
        except (SyntaxError, ValueError):
            return ()
        classes = {node.name: node for node in _list_bodies(module) if isinstance(node, ast.ClassDef)}
        found: dict[str, Site] = {}
        for name, body in _list_tests(module, classes):
            first = min([body.lineno, *(d.lineno for d in body.decorator_list)])
            found.setdefault(name, Site(f"{path}::{name}", first, body.end_lineno or first))
        return tuple(found.values())


def _build_invocation(suite: Suite, config: Mapping[str, object]) -> Invocation:
    paths, options = [p for p in suite.env.get("PYTHONPATH", "").split(":") if p], list_python_options(suite.env)
    return Invocation(
        argv=(suite.python or sys.executable, "-I", *options, *start.build_command(programs.PYTEST)),
        config={**config, "paths": paths, "limit": suite.test_timeout_seconds},
        env=suite.env,
    )


def _list_bodies(node: ast.AST) -> Iterator[_Bodies]:
    """Yield the functions and classes in *node*, those under an `if` or `try` included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Bodies):
            yield child
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _list_bodies(child)


def _list_tests(node: ast.AST, classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, _Bodies]]:
    """Yield the names and bodies of the tests below *node*, a module or a class with its bases in *classes*."""
    for body in _list_bodies(node):
        if not isinstance(body, ast.ClassDef):
            if body.name.startswith("test") and not _is_fixture(body):
                yield body.name, body
            continue
        inner = {**classes, **{b.name: b for b in _list_bodies(body) if isinstance(b, ast.ClassDef)}}
        family = list(_list_ancestry(body, inner))
        is_case = any(_is_test_case(base) for member in family for base in member.bases)
        if is_case or (body.name.startswith("Test") and not any(_has_init(member) for member in family)):
            for member in family:
                yield from ((f"{body.name}::{name}", test) for name, test in _list_tests(member, inner))


def _list_ancestry(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Yield *node* and its base classes in the same file, each once."""
    seen, todo = set[str](), [node]
    while todo:
        current = todo.pop(0)
        if current.name not in seen:
            seen.add(current.name)
            yield current
            todo += [classes[b.id] for b in current.bases if isinstance(b, ast.Name) and b.id in classes]


def _is_test_case(base: ast.expr) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    return name.endswith("TestCase")


def _has_init(node: ast.ClassDef) -> bool:
    return any(isinstance(b, ast.FunctionDef) and b.name in ("__init__", "__new__") for b in node.body)


def _is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether *node* is decorated by what is called a fixture, or ends so, as those of plug-ins do."""
    called = (getattr(decorator, "func", decorator) for decorator in node.decorator_list)
    return any(ast.unparse(decorator).endswith("fixture") for decorator in called)


def _name_cases(test_id: str) -> str:
    """Return *test_id*, or its function where it stands for no case: the list of a parameter is empty."""
    function, _, case = test_id.partition("[")
    return function if NO_CASE in case.removesuffix("]").split("-") else test_id


SAMPLES: dict[str, dict[str, str]] = {
    "passing": {"test_sample.py": "def test_one():\n    assert 1 + 1 == 2\n"},
    "failing": {"test_sample.py": "def test_one():\n    assert 1 + 1 == 3\n"},
    "broken_import": {"test_sample.py": "import no_such_module_anywhere\n\n\ndef test_one():\n    assert True\n"},
    "broken_fixture": {
        "test_sample.py": "import pytest\n\n\n@pytest.fixture\ndef thing():\n    raise RuntimeError('broken')\n\n\n"
        "def test_one(thing):\n    assert True\n"
    },
    "several": {
        "test_sample.py": "from threading import Event\n\n\ndef test_one():\n    pass\n\n\n"
        "def test_two():\n    assert False\n\n\ndef test_three():\n    Event().wait()\n"
    },
}
"""Tiny projects, as `jumar.testing.check_runner` wants them."""

plugin = PytestRunner()
