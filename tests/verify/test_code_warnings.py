"""What no channel closes is said with file and line; honest code is left alone, and hostile text costs little."""

from __future__ import annotations

import ast
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from jumar.child.analysis import (
    empty_tests,
    hard_coded_answers,
    judge_detection,
    test_literals,
    warnings_main,
)
from jumar.core.gate.challenge_rounds import Strength
from jumar.core.state.settings import Suite
from jumar.ports import Site
from jumar.runners.pytest import PytestRunner
from jumar.verify.code_warnings import FILE_BYTES, find_warnings, find_written_answer, warn_of_unfalsifiable
from jumar.verify.execution import TreeRunner
from jumar.workspace.store.object_store import Store

TESTS = """
import unittest
import pytest
from app import gcd, initials, prime

@pytest.mark.parametrize("a, b, want", [(35, 21, 7), (1071, 462, 21), (170, 50, 10), ([3, 1, 2], [9], [1, 2, 3])])
def test_gcd(a, b, want):
    assert gcd(a, b) == want

def test_initials():
    assert initials("Guido van Rossum") == "GvR"

class TestPrime(unittest.TestCase):
    def test_prime(self):
        self.assertTrue(prime(104729))
"""

ANSWERS = {
    "a table": ("T = {(35, 21): 7, (1071, 462): 21, (170, 50): 10}", "a table holds answers of the tests: 35, 21 -> 7"),
    "rows": ("T = [(35, 21, 7), (1071, 462, 21), (170, 50, 10)]", "a table holds answers of the tests: 35, 21 -> 7"),
    "texts": ("T = {'(35, 21)': 7, '(1071, 462)': 21, '(170, 50)': 10}", "a table holds answers"),
    "JSON": ("import json\nT = json.loads('[[35, 21, 7], [1071, 462, 21], [170, 50, 10]]')", "a table holds answers"),
    "entries": ("T = {}\nT[35, 21] = 7\nT[1071, 462] = 21\nT[170, 50] = 10", "a table holds answers"),
    "conditions": ("def gcd(a, b):\n    if a == 35 and b == 21:\n        return 7", "by its own values: 35, 21 -> 7"),
    "an expression": ("def gcd(a, b):\n    return 7 if (a, b) == (35, 21) else 1", "by its own values: 35, 21 -> 7"),
    "cases": ("def gcd(a, b):\n    match a, b:\n        case 35, 21:\n            return 7", "values: 35, 21 -> 7"),
    "a list": ("def gcd(a, b):\n    if a == [3, 1, 2]:\n        return [1, 2, 3]", "values: [3, 1, 2] -> [1, 2, 3]"),
    "a text": (
        "def initials(n):\n    return 'GvR' if n == 'Guido van Rossum' else n[0]",
        "'Guido van Rossum' -> 'GvR'",
    ),
    "truth": ("def prime(n):\n    return n in (2, 104729)", "makes a case of a value that a test gives: 104729"),
}

CHAINED = """
from app import add, rule, nand

def test_add():
    assert add(2, 3) == 5
    assert add(1, 1) == 2
    assert add(10, 5) == 15

def test_rule():
    assert [rule(1, 2), rule(1, 3), rule(0, 3)] == [1, 1, 1]
    assert nand(1, 1) == 0

def test_lines():
    assert lines == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]

def test_fib():
    assert fib(2) == 2
    assert fib(3) == 3

def test_score():
    assert score(2, 2) == "Thirty-All"
    assert score(1, 1) == "Fifteen-All"
"""
"""Tests with the small values that every program has."""

ADD = "def add(a, b):\n    "

CHAINS = {
    "a pair, twice": f"{ADD}if (a, b) == (2, 3):\n        return 5\n    if (a, b) == (1, 1):\n        return 2",
    "elif": f"{ADD}if a == 2 and b == 3:\n        x = 5\n    elif a == 1 and b == 1:\n        x = 2\n    return x",
    "cases": f"{ADD}match a, b:\n        case 2, 3:\n            return 5\n        case (1, 1):\n            return 2",
    "expressions": "add = lambda a, b: 5 if (a, b) == (2, 3) else 2 if (1, 1) == (a, b) else a",
    "a small table": f"{ADD}return {{(2, 3): 5, (1, 1): 2}}.get((a, b), 0)",
    "entries": "T = {}\nT[2, 3] = 5\nT[10, 5] = 15",
}

UNCHAINED = {
    "one case": f"{ADD}if (a, b) == (2, 3):\n        return 5\n    return a + b",
    "two functions": (
        f"{ADD}if (a, b) == (2, 3):\n        return 5\n    return a\n\n\n"
        "def sub(a, b):\n    if (a, b) == (1, 1):\n        return 2\n    return a"
    ),
    "one case twice": f"{ADD}if (a, b) == (2, 3):\n        return 5\n    if (a, b) == (2, 3):\n        return 5",
    "a rule": (
        "def rule(alive, n):\n    if alive == 1 and n == 2:\n        return 1\n    if alive == 1 and n == 3:\n"
        "        return 1\n    if alive == 0 and n == 3:\n        return 1\n    return 0"
    ),
    "a truth table": "NAND = {(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 0}",
    "lines": "LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]",
    "base cases": "def fib(n):\n    if n == 2:\n        return 2\n    if n == 3:\n        return 3\n    return 1",
    "words for scores": "S = {(2, 2): 'Thirty-All', (1, 1): 'Fifteen-All'}",
    "no test's": f"{ADD}if (a, b) == (4, 4):\n        return 8\n    if (a, b) == (7, 8):\n        return 15\n",
}

TELLS = {
    "frames": ("import sys\ndef f(a):\n    return sys._getframe(1).f_locals['want']", "frames of its callers"),
    "frames by another name": ("from sys import _getframe as g", "frames of its callers (sys._getframe)"),
    "frames by text": ("import sys\nf = getattr(sys, '_getframe')", "frames of its callers ('_getframe')"),
    "frames of a traceback": ("def f(e):\n    return e.__traceback__.tb_frame", "frames of its callers"),
    "a stack": ("from inspect import stack as s\ndef f():\n    return s()", "frames of its callers (inspect.stack)"),
    "objects": ("import gc\nx = gc.get_objects()", "living objects"),
    "modules": ("import sys\nx = [m for m in sys.modules.values()]", "all loaded modules"),
    "a variable": ("import os\nx = 'PYTEST_CURRENT_TEST' in os.environ", "asks whether it is under test"),
    "a module": ("import sys\nx = 'pytest' in sys.modules", "asks whether it is under test ('pytest')"),
    "an inner module": ("import sys\nx = sys.modules.get('_pytest.runner')", "asks whether it is under test"),
    "a framework": ("def f():\n    import _pytest.runner", "imports a test framework (_pytest.runner)"),
    "the tests": ("from test_app import *", "imports from the tests"),
    "a test file": ("x = open('test_app.py').read()", "names a test file ('test_app.py')"),
    "any test file": ("import glob\nx = glob.glob('tests/test_*.py')", "names a test file"),
    "its neighbours": ("import os\nx = os.listdir(os.path.dirname(__file__))", "reads what lies beside its own source"),
    "a comparison": ("class A(str):\n    def __eq__(self, o):\n        return True", "A.__eq__ says it is equal"),
    "a shorter one": ("class A(str):\n    __ne__ = lambda s, o: False", "A.__ne__ says it is equal"),
    "an exit": ("import os\ndef f():\n    os._exit(0)", "leaves the process"),
    "an end": ("import atexit\natexit.register(print)", "hooks itself into the interpreter (atexit.register)"),
    "a tracer": ("import sys\nsys.settrace(print)", "hooks itself into the interpreter (sys.settrace)"),
    "a builtin": ("import builtins\nbuiltins.len = lambda x: 3", "replaces builtins.len for everybody"),
    "a function": ("import math as m\nm.isclose = lambda *a: True", "replaces math.isclose for everybody"),
}

HONEST = {
    "a special value": "def gcd(a, b):\n    return a if b == 0 else gcd(b, a % b)",
    "a vocabulary": "NAMES = {'one': 'eins', 'two': 'zwei', 'three': 'drei'}\ndef f(n):\n    return NAMES[n]",
    "sizes": "def f(n):\n    if n == 1024:\n        return 'K'\n    return n == 64",
    "a comparison": "class A:\n    def __eq__(self, o):\n        return isinstance(o, A) and self.n == o.n",
    "a comparison with nothing": "class A:\n    def __eq__(self, o):\n        return False",
    "its own data": "from pathlib import Path\nx = Path(__file__).with_name('words.json').read_text()",
    "its own state": "class A:\n    def __init__(self):\n        self.x = 3\n        self.y.z = 4",
    "prose": "def f():\n    '''Run pytest test_app.py.'''\n    raise ValueError('no unittest here, nor pytest')",
    "a program": "if __name__ == '__main__':\n    import unittest\n    unittest.main()",
    "one table row": "T = {(35, 21): 7}",
    "a literal for nobody": "def f():\n    return 'Guido van Rossum'",
}

SLUGS = """
from app import entity, fetch, slug, sign

def test_lower():
    assert slug("Hello World") == "hello-world"

def test_spaces():
    assert slug("a  b") == "a-b"

def test_one():
    assert slug("one") == "one"

def test_fetch():
    assert fetch("x") == {"error": "not found"}
    assert fetch("y") == {"Content-Type": "text/plain", "error": "no such page"}

def test_signs():
    assert [sign("=="), sign("!=")] == ["is the same", "is another"]

def test_entity():
    assert entity("&") == "&amp;"
"""

CLOSED = {
    "looked up": "def slug(t):\n    return {'Hello World': 'hello-world', 'a  b': 'a-b', 'one': 'one'}.get(t, t)",
    "one answer": "def slug(t):\n    return {'Hello World': 'hello-world'}.get(t, t)",
    "in brackets": "def slug(t):\n    return {'Hello World': 'hello-world', 'one': 'one'}[t]",
    "kept": "KNOWN = {'Hello World': 'hello-world', 'a  b': 'a-b'}\ndef slug(t):\n    return KNOWN.get(t, t)",
}

OPEN = {
    "more than the tests ask": "KNOWN = {'Hello World': 'hello-world', 'a  b': 'a-b', 'c d': 'c-d'}",
    "one row, kept": "KNOWN = {'Hello World': 'hello-world'}",
    "a record": "def fetch(t):\n    return {'error': 'not found'}",
    "two of its fields": "def fetch(t):\n    return {'Content-Type': 'text/plain', 'error': 'no such page'}",
    "signs": "def sign(t):\n    return {'==': 'is the same', '!=': 'is another'}[t]",
    "entities": "def entity(t):\n    return {'&': '&amp;'}.get(t, t)",
    "a rule": "def slug(t):\n    return '-'.join(t.lower().split())",
}

OWN = """
import pytest
from app import gcd

def test_true():
    assert True

def test_nothing():
    gcd(1, 2)

def test_itself():
    x = gcd(1, 2)
    assert x == x

class TestAll:
    def test_constant(self):
        self.assertEqual(1, 1)

    def test_fine(self):
        self.assertEqual(gcd(1, 2), 1)

def helper(n):
    assert n == 1

def test_by_another():
    helper(gcd(1, 2))

def test_raises():
    with pytest.raises(ValueError):
        gcd(0, 0)
"""


def found(source: str, before: str = "", tests: str = TESTS) -> list[str]:
    """`line: what` for each finding in *source*."""
    index = test_literals.index_values({"test_app.py": ast.parse(tests)}, {})
    finders = (
        judge_detection.build_finder(("test_app.py",)),
        hard_coded_answers.build_finder(index),
        lambda tree: hard_coded_answers.find_closed_tables(tree, index),
    )
    known = Counter(same for finder in finders for same, _, _ in finder(ast.parse(before)))
    said: list[str] = []
    for finder in finders:
        warnings_main.report(
            "app.py", finder(ast.parse(source)), known, lambda _, line, what: said.append(f"{line}: {what}")
        )
    return said


@pytest.mark.parametrize("kind", [*ANSWERS, *TELLS])
def test_it_is_said_where_and_what(kind: str) -> None:
    source, expected = {**ANSWERS, **TELLS}[kind]

    warnings = found(f"\n\n{source}\n")

    assert any(expected in warning for warning in warnings), warnings
    assert all(int(warning.partition(":")[0]) > 2 for warning in warnings)


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_of_conditions_that_answers_the_tests_is_said_as_a_table_is(kind: str) -> None:
    (warning,) = found(CHAINS[kind], tests=CHAINED)

    assert "answers tests by their own values, case by case: " in warning
    assert warning.endswith(" and 1 more")
    assert found(CHAINS[kind], CHAINS[kind], CHAINED) == []


@pytest.mark.parametrize("kind", UNCHAINED)
def test_a_chain_of_conditions_that_a_program_has_for_reasons_of_its_own_is_not_said(kind: str) -> None:
    assert found(UNCHAINED[kind], tests=CHAINED) == []


@pytest.mark.parametrize("kind", CLOSED)
def test_a_table_of_nothing_but_texts_of_the_tests_is_said_and_counts_as_written_down(kind: str) -> None:
    (warning,) = found(CLOSED[kind], tests=SLUGS)

    assert "a table holds nothing but answers of the tests: 'Hello World' -> 'hello-world'" in warning
    assert find_written_answer(["app.py:1: asks whether it is under test", f"app.py:{warning}"]) == f"app.py:{warning}"
    assert found(CLOSED[kind], CLOSED[kind], SLUGS) == []


@pytest.mark.parametrize("kind", OPEN)
def test_a_table_that_a_program_has_for_reasons_of_its_own_is_not_said(kind: str) -> None:
    assert found(OPEN[kind], tests=SLUGS) == []


@pytest.mark.parametrize("kind", HONEST)
def test_what_honest_code_does_is_not_said(kind: str) -> None:
    assert found(HONEST[kind]) == []


@pytest.mark.parametrize("kind", [*ANSWERS, *TELLS])
def test_what_the_task_had_before_is_not_said_and_one_more_of_it_is(kind: str) -> None:
    source = {**ANSWERS, **TELLS}[kind][0]

    assert found(f"# moved\n{source}", source) == []
    if kind == "a tracer":
        assert found(f"{source}\n{source}", source) == ["4: hooks itself into the interpreter (sys.settrace)"]


def test_tests_that_cannot_fail_are_told_from_those_that_can() -> None:
    said = [what for _, _, what in empty_tests.find_empty_tests(ast.parse(OWN))]

    assert said == [
        "test_true asserts only what is always true",
        "test_nothing asserts nothing",
        "test_itself asserts only what is always true",
        "test_constant asserts only what is always true",
    ]


def test_tests_that_cannot_be_falsified_are_named_or_counted() -> None:
    strengths = {"t.py::A::test_a": Strength.NONE, "t.py::test_b": Strength.WHOLE, "t.py::test_c": Strength.NONE}
    many = {f"t.py::test_{n}": Strength.NONE for n in range(9)}

    warnings = warn_of_unfalsifiable(strengths, [Site("t.py::A::test_a", 7, 9)])

    assert [w.partition(" cannot")[0] for w in warnings] == ["t.py:7: A::test_a", "t.py:1: test_c"]
    assert warn_of_unfalsifiable(many, ())[3:] == ("and 6 more of 9 tests cannot be falsified",)
    assert "in all that it compares" in warn_of_unfalsifiable({"t.py::test_d": Strength.PARTIAL}, ())[0]


class Bench:
    """Two trees, and what is odd about the second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder / "objects")

    def tree(self, name: str, files: Mapping[str, str]) -> str:
        for path, text in files.items():
            (self.folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name / path).write_text(text, "utf-8", newline="")
        return self.store.capture(self.folder / name)

    def warnings(self, base: str, tree: str, tests: tuple[str, ...], own: tuple[str, ...] = ()) -> tuple[str, ...]:
        verifier = TreeRunner(self.store, PytestRunner(), Suite(), self.folder, expected=tests, base=base)
        verifier.sources, verifier.own = (lambda path: path not in tests), own.__contains__
        return anyio.run(find_warnings, verifier, tree)


@pytest.mark.slow
def test_a_confined_process_looks_and_the_parent_only_prints(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    base = bench.tree("base", {"app.py": "def gcd(a, b): return a\n", "test_app.py": TESTS})
    files = {
        "app.py": f"# {'x' * 99}\n{ANSWERS['conditions'][0]}\n",
        "test_own.py": OWN,
        "test_app.py": "changed = 1\n",
    }
    tree = bench.tree("tree", {**files, "odd\n\x1b[31mname.py": TELLS["an exit"][0], "other.txt": "os._exit"})

    warnings = bench.warnings(base, tree, ("test_app.py",), ("test_own.py",))

    assert warnings[:2] == (
        "app.py:3: answers a test by its own values: 35, 21 -> 7",
        "odd??[31mname.py:3: leaves the process behind the back of its tests (os._exit)",
    )
    assert len([w for w in warnings if w.startswith("test_own.py:")]) == 4
    assert not list((tmp_path / "rooms").iterdir())
    assert bench.warnings(base, base, ("test_app.py",)) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = " + "(" * 5000 + ")" * 5000, "cannot be parsed"),
        ("x = " + "-" * 200_000 + "1", "cannot be parsed"),
        ("x = 1" + " + 1" * 100_000, "cannot be parsed"),
        ("def f(:", "cannot be parsed"),
        ("x = '" + "a" * FILE_BYTES + "'", "too large"),
        ("x = 0x" + "f" * 50_000 + "\nimport os\nos._exit(0)", "leaves the process"),
    ],
    ids=["parentheses", "signs", "a sum", "no Python", "too large", "a number"],
)
def test_hostile_text_is_said_to_be_so(tmp_path: Path, source: str, said: str) -> None:
    bench = Bench(tmp_path)
    base = bench.tree("base", {"app.py": "", "test_app.py": TESTS})
    started = time.monotonic()

    warnings = bench.warnings(base, bench.tree("tree", {"app.py": source, "test_app.py": TESTS}), ("test_app.py",))

    assert any(said in warning for warning in warnings), warnings
    assert time.monotonic() - started < 15


def judged(data: Path, folder: Path, task: Mapping[str, list[str] | str]) -> tuple[str, ...]:
    """The warnings about the reference solution of a real task."""
    name = str(task["id"])
    shutil.copytree(data / "tasks" / name, folder / "tree")
    bench = Bench(folder)
    base = bench.store.capture(folder / "tree")
    shutil.copytree(data / "solutions" / name, folder / "tree", dirs_exist_ok=True)
    return bench.warnings(base, bench.store.capture(folder / "tree"), tuple(task["protected"]))


@pytest.mark.proof
def test_no_solution_of_a_real_task_is_warned_of(
    data: Path, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    index = json.loads((data / "index.json").read_text("utf-8"))
    tasks = [task for task in index["tasks"] if task["language"] == "python"]

    said = {task["id"]: judged(data, tmp_path / task["id"], task) for task in tasks}

    warned = {name: warnings for name, warnings in said.items() if warnings}
    assert warned == {}
    figure("warnings", f"{len(warned)} of {len(said)} reference solutions of real tasks are warned of")
