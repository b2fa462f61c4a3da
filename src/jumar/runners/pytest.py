"""pytest, as told by a plug-in of ours inside it: an outcome per id from its phases, nothing is read from text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from jumar.core.settings import Suite
from jumar.core.verdict import Ended, Outcome, Report, TestResult
from jumar.ports import Collected, Invocation, Record
from jumar.verify import pytest_boot

PATTERNS = ("test_*.py", "*_test.py")
"""pytest's own names for test files."""

_Bodies = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class PytestRunner:
    """The adapter of pytest."""

    name = "pytest"

    def collection(self, suite: Suite, room: Path) -> Invocation:  # noqa: ARG002  # other runners name it
        """What to run to list the ids of the suite."""
        return _invocation(suite, {"mode": "collect", "args": list(suite.select), "ids": []})

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # as above
        """What to run to judge *ids*: their files alone, so that nothing else of the room is imported."""
        files = list(dict.fromkeys(i.partition("::")[0] for i in ids))
        return _invocation(suite, {"mode": "run", "args": files, "ids": list(ids)})

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """The ids in the records of a collection."""
        ids: list[str] = []
        broken: dict[str, str] = {}
        anomaly = "" if ended is Ended.NORMAL else detail
        for record in records:
            match record:
                case ["collected", list(some)]:
                    ids.extend(map(str, some))
                case ["broken", str(path), str(why)]:
                    broken[path] = why
                case ["unusable" | "usage", str(why)]:
                    anomaly = why
                case ["stopped", str(why)]:
                    anomaly = f"the collection was stopped: {why}"
        return Collected(ids=tuple(dict.fromkeys(ids)), broken=broken, anomaly=anomaly)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """The results in the records of a verification. What was collected and then not reported is a result too."""
        results: dict[str, TestResult] = {}
        twice: list[str] = []
        broken: dict[str, str] = {}
        collected: list[str] = []
        running = ""
        for record in records:
            match record:
                case ["collected", list(some)]:
                    collected.extend(map(str, some))
                case ["start", str(running)]:
                    pass
                case ["result", str(test_id), str(outcome), int(ms), str(excerpt)]:
                    twice += [f"{test_id} was reported twice"] if test_id in results else []
                    results[test_id] = TestResult(test_id, Outcome(outcome), ms, excerpt)
                case ["broken", str(path), str(why)]:
                    broken[path] = why
                case ["unusable" | "usage", str(why)]:
                    ended, detail = Ended.UNSTARTED, why
                case ["stopped", str(why)] if ended is Ended.NORMAL:
                    ended, detail = Ended.EXIT, f"the session was stopped: {why}"
        for test_id in collected:
            results.setdefault(test_id, _silent(test_id, ended, detail, lost=test_id == running))
        return Report(
            ended=ended, results=tuple(results.values()), broken=broken, anomalies=tuple(twice), detail=detail
        )

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """The test files among *paths*: by pytest's names, below what *select* names, or named there themselves."""
        chosen = [PurePosixPath(s.partition("::")[0]) for s in select]

        def holds_tests(path: PurePosixPath) -> bool:
            named = any(fnmatch(path.name, pattern) for pattern in PATTERNS)
            below = not chosen or any(folder in path.parents for folder in chosen)
            return path in chosen or (named and below)

        return tuple(p for p in paths if holds_tests(PurePosixPath(p)))

    def static_ids(self, path: str, source: bytes) -> tuple[str, ...]:
        """The ids that pytest's default names give to the tests in *source*; none if it does not parse."""
        try:
            module = ast.parse(source)
        except (SyntaxError, ValueError):
            return ()
        classes = {node.name: node for node in _bodies(module) if isinstance(node, ast.ClassDef)}
        return tuple(dict.fromkeys(f"{path}::{name}" for name in _tests(module, classes)))


def _silent(test_id: str, ended: Ended, detail: str, *, lost: bool) -> TestResult:
    """The result of a test that was collected and never reported; *lost* if the process ended in it."""
    if ended is Ended.NORMAL:
        return TestResult(test_id, Outcome.MISSING, 0, "collected and not run")
    if lost:
        outcome = Outcome.TIMEOUT if ended is Ended.TIMEOUT else Outcome.ERROR
        return TestResult(test_id, outcome, 0, f"the run ended in this test: {detail}")
    return TestResult(test_id, Outcome.ERROR, 0, f"not run, the run ended before: {detail}")


def _invocation(suite: Suite, config: Mapping[str, object]) -> Invocation:
    paths = [p for p in suite.env.get("PYTHONPATH", "").split(":") if p]
    return Invocation(
        argv=(suite.python or sys.executable, "-I", pytest_boot.__file__),
        config={**config, "paths": paths, "limit": suite.test_timeout_seconds},
        env=suite.env,
    )


def _bodies(node: ast.AST) -> Iterator[_Bodies]:
    """The functions and classes in *node*, those under an `if` or `try` included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Bodies):
            yield child
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _bodies(child)


def _tests(node: ast.AST, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    """The ids below *node*, a module or a class whose bases are looked up in *classes*."""
    for body in _bodies(node):
        if not isinstance(body, ast.ClassDef):
            if body.name.startswith("test") and not _is_fixture(body):
                yield body.name
            continue
        inner = {**classes, **{b.name: b for b in _bodies(body) if isinstance(b, ast.ClassDef)}}
        family = list(_ancestry(body, inner))
        is_case = any(_is_test_case(base) for member in family for base in member.bases)
        if is_case or (body.name.startswith("Test") and not any(_has_init(member) for member in family)):
            for member in family:
                yield from (f"{body.name}::{name}" for name in _tests(member, inner))


def _ancestry(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """*node* and its base classes in the same file, each once."""
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
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


SAMPLES: dict[str, dict[str, str]] = {
    "passing": {"test_sample.py": "def test_one():\n    assert 1 + 1 == 2\n"},
    "failing": {"test_sample.py": "def test_one():\n    assert 1 + 1 == 3\n"},
    "broken_import": {"test_sample.py": "import no_such_module_anywhere\n\n\ndef test_one():\n    assert True\n"},
    "broken_fixture": {
        "test_sample.py": "import pytest\n\n\n@pytest.fixture\ndef thing():\n    raise RuntimeError('broken')\n\n\n"
        "def test_one(thing):\n    assert True\n"
    },
}
"""One tiny project for each way a test can come out; every one has exactly one test, `test_sample.py::test_one`."""

plugin = PytestRunner()
