"""The ids of a plain suite are read off its files; of a suite that is not plain nothing is guessed."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pytest

from cli.test_cli import GOOD, lay
from jumar.cli.main import call
from jumar.core.state.settings import Suite
from jumar.runs.tree.plain_suite import read_plain_ids
from support.processes.interpreters import PLAIN_PYTHON

PLAIN = '''"""Tests."""

import os.path
from app import f as g

LIMIT: int = 3
CASES = [(1, 2), (3, 4)]


def helper():
    yield 1


def test_one():
    assert g() == 2


def test_two(tmp_path, capsys):
    assert os.path.exists(tmp_path)


class TestMore:
    """Some more."""

    size = 4

    def setup_method(self):
        self.n = 2

    def test_three(self):
        assert self.n == g()


class Helper:
    def run(self):
        return 1


if __name__ == "__main__":
    import pytest

    pytest.main()
'''
IDS = ("test_two.py::test_x", "tests/test_app.py::test_one", "tests/test_app.py::test_two",
       "tests/test_app.py::TestMore::test_three", "test_unit.py::Case::test_u")  # fmt: skip
FILES = {
    "app.py": "def f():\n    return 2\n",
    "test_two.py": "def test_x():\n    pass\n",
    "test_unit.py": "from unittest import TestCase\n\n\nclass Case(TestCase):\n    def test_u(self):\n        pass\n",
    "tests/test_app.py": PLAIN,
    "notes.txt": "words",
}


def read(files: dict[str, str], suite: Suite | None = None) -> tuple[str, ...] | None:
    """The ids of *files*."""
    return read_plain_ids(tuple(files), lambda path: files[path].encode(), suite or Suite())


def test_the_ids_of_a_plain_suite() -> None:
    assert read(FILES) is not None
    assert set(read(FILES) or ()) == set(IDS)
    assert read(FILES, Suite(select=("test_two.py",))) == IDS[:1]
    assert set(read(FILES, Suite(select=("tests",))) or ()) == set(IDS[1:4])


@pytest.mark.slow
def test_they_are_what_pytest_finds(tmp_path: Path) -> None:
    lay(tmp_path, {**FILES})
    argv = [PLAIN_PYTHON, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert {line for line in found.splitlines() if "::" in line} == set(IDS)


HELPER = {"helper.py": "import unittest\n\n\nclass CalcCase(unittest.TestCase):\n    def test_c(self):\n        pass\n"}

MORE = {
    "a decorator": "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n",
    "a fixture with parameters": "import pytest\n@pytest.fixture(params=[1, 2])\ndef n(request): return 1\n",
    "a name of an unknown package": "from strange import anything\ndef test_a(): pass\n",
    "a fixture of somebody else's": "def test_a(n): pass\n",
    "a test that is imported": "from app import test_f\n",
    "all names of a module": "from app import *\n",
    "a base class": "from app import Base\nclass TestA(Base): pass\n",
    "another base of that name": "class TestCase: pass\nclass A(TestCase):\n    def test_a(self): pass\n",
    "a unittest by one method": "import unittest\nclass A(unittest.TestCase):\n    def runTest(self): pass\n",
    "a class with a constructor": "class TestA:\n    def __init__(self): pass\n",
    "a class in a class": "class TestA:\n    class TestB:\n        def test_a(self): pass\n",
    "a test under a condition": "import sys\nif sys.platform == 'linux':\n    def test_a(): pass\n",
    "a test that is made": "test_a = lambda: None\n",
    "tests that are made": "for n in range(3):\n    globals()[f'test_{n}'] = lambda: None\n",
    "a hand in the names": "names = globals()\n",
    "a hook": "def pytest_generate_tests(metafunc): pass\n",
    "a mark for all": "pytestmark = []\n",
    "a test by another name": "__test__ = False\ndef test_a(): pass\n",
    "a coroutine": "async def test_a(): pass\n",
    "a test that yields": "def test_a():\n    yield 1\n",
    "a test defined twice": "def test_a(): pass\ndef test_a(): pass\n",
    "a name of its own": "# jumar: test-id=slug\ndef test_a(): pass\n",
    "a class of tests by another name": "import helper\nCase = helper.CalcCase\n",
    "a class of tests that is imported": "from helper import CalcCase\n",
    "a test in an expression": "x = (test_y := lambda: 1 / 0)\n",
    "a test in an expression of a class": "class TestA:\n    x = (test_y := lambda self: 1 / 0)\n",
    "a test in a default": "def f(x=(test_y := lambda: 1 / 0)): pass\n",
    "a test in an annotation": "x: (test_y := lambda: 1 / 0) = 1\n",
    "a function that makes a test": "def f():\n    globals()['test_h'] = f\nx = f()\n",
    "a function that makes a global test": "def f():\n    global test_h\n    test_h = f\ndef g(x=f()): pass\n",
    "a class of tests of the standard library": "from unittest import FunctionTestCase as Case\n",
    "no Python": "def test_a(:\n",
}


@pytest.mark.parametrize("what", MORE)
def test_nothing_is_guessed_of_a_file_that_holds(what: str) -> None:
    assert read({"test_a.py": MORE[what] + "\n", **HELPER}) is None


@pytest.mark.slow
@pytest.mark.parametrize("what", [what for what in MORE if "test in" in what or "class of tests" in what])
def test_what_is_read_is_what_pytest_collects_or_nothing(tmp_path: Path, what: str) -> None:
    files = {"test_a.py": MORE[what] + "\ndef test_z(): pass\n", **HELPER}
    lay(tmp_path, dict(files))
    argv = [PLAIN_PYTHON, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert read(files) in (None, tuple(line for line in found.splitlines() if "::" in line))


@pytest.mark.parametrize(
    "more",
    [
        {"conftest.py": ""}, {"tests/conftest.py": ""}, {"pytest.ini": ""}, {"tox.ini": ""}, {"setup.cfg": ""},
        {"pyproject.toml": "[tool.pytest.ini_options]\n"}, {"test_words.txt": ">>> 1\n1\n"}, {"test_api.yaml": ""},
        {"build/test_b.py": "def test_b(): pass\n"}, {".hidden/test_b.py": "def test_b(): pass\n"},
        {"other/test_app.py": "def test_b(): pass\n"},
    ],
    ids=lambda more: next(iter(more)),
)  # fmt: skip
def test_nothing_is_guessed_of_a_tree_that_holds(more: dict[str, str]) -> None:
    assert read({**FILES, **more}) is None
    assert read({**FILES, "pyproject.toml": "[project]\nname = 'x'\n"}) is not None


def test_nothing_is_guessed_of_other_runners_options_and_ids() -> None:
    for suite in (
        Suite(runner="vitest"), Suite(env={"PYTEST_ADDOPTS": "-k x"}), Suite(command_for="x {test_id}"),
        Suite(select=("test_two.py::test_x",)), Suite(select=("absent.py",)),
    ):  # fmt: skip
        assert read(FILES, suite) is None
    assert read({"app.py": ""}) is None


def test_nothing_is_guessed_where_a_fixture_may_be_imported() -> None:
    """It could multiply the tests of a file that says nothing of it."""
    fixture = "import pytest\n\n\n@pytest.fixture(autouse=True, params=[1, 2])\ndef every(request):\n    return 1\n"
    tests = "from app import every\n\n\ndef test_f():\n    pass\n"
    assert read({"app.py": fixture, "test_app.py": tests}) is None
    assert read({"app.py": "def every():\n    pass\n", "test_app.py": tests}) == ("test_app.py::test_f",)


@pytest.mark.slow
def test_where_pytest_does_not_work_a_score_says_so_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = lay(tmp_path / "task", GOOD)
    venv.create(tmp_path / "bare")
    python = str(tmp_path / "bare" / "bin" / "python")

    assert call(("score", str(task), str(task), "--confirm", "0", "--python", python)) == 2

    assert "no pytest" in capsys.readouterr().err
