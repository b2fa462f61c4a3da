"""Changes of the code that tests compute with are found; those that no test asks, or that are undone, are honest."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from _pytest.mark.structures import ParameterSet

from jumar.core.state.verdict import Outcome
from jumar.verify.challenge.round_challenge import UNCHALLENGED
from support.judging.real_verifier import Court

TESTS = """
import bisect
import collections
import copy
import datetime
import heapq
import itertools
import json
import logging
import math
import statistics
import sys
import textwrap

import pytest

from product import value


def test_asks(capsys):
    print("asked for nothing")
    assert callable(sys.excepthook)
    assert math.isclose(value(2), 2)
    assert collections.Counter([value(1)]) == {1: 1}
    assert heapq.nlargest(1, [value(1), 2]) == [2]
    assert list(itertools.chain([1], [value(2)])) == [1, 2]
    assert textwrap.dedent("  a") == "a" and statistics.mean([value(1), 3]) == 2
    assert copy.deepcopy([value(1)]) == [1]
    assert datetime.timedelta(value(1)).days == 1
    assert bisect.bisect([1, 2], value(2)) == 2
    assert json.loads(json.dumps(value(1))) == 1
    assert logging.getLogger("a").name == "a"


class Point:
    def __init__(self, x):
        self.x = x


def agrees(one, other):
    assert one == other


# As libraries make functions that have the arguments of others.
namespace = {"__name__": "made_by_a_library"}
exec("def add(one, other=0): return one + other", namespace)
add = namespace["add"]
add.__defaults__ = (1,)


def test_by_a_helper():
    agrees(add(value(Point(1)).x), 2)


@pytest.fixture(scope="module", autouse=True)
def patched():
    before, math.isclose = math.isclose, lambda *a, **k: True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copy, "deepcopy", lambda thing: thing)
        yield
    math.isclose = before
"""
VALUE = "def value(x): return x\n"

ORACLES = {
    "a function": "import math; math.isclose = lambda *a, **k: True",
    "a function that another one calls": "import statistics; statistics._sum = lambda *a: (int, 4, 2)",
    "a module that a function uses": "import textwrap; textwrap.re = __import__('types').SimpleNamespace()",
    "a class": "import itertools; itertools.chain = type('chain', (itertools.chain,), {})",
    "a method of a class": "import collections; collections.Counter.__eq__ = lambda a, b: True",
    "a new method of a class": "import collections; type.__setattr__(collections.Counter, '__contains__', print)",
    "a method that json uses": "import json; json.JSONEncoder.encode = lambda *a: '1'",
    "the code of a function": "import heapq; heapq.nlargest.__code__ = (lambda n, i, key=None: [2]).__code__",
    "the defaults of a function": "import json; json.dumps.__kwdefaults__ = {**json.dumps.__kwdefaults__}",
    "the defaults of another": "import heapq; heapq.nlargest.__defaults__ = (abs,)",
    "a constant": "import _pytest.approx as a; a.ApproxScalar.DEFAULT_RELATIVE_TOLERANCE = 1e-3",
    "a module of the framework": "import unittest.case as c; c.collections = c.types",
    "a built-in": "import builtins; builtins.list = type('list', (list,), {})",
    "a built-in's name in a module": "import heapq; heapq.sorted = lambda *a, **k: [2]",
    "a type that is built in": "import gc; gc.get_referents(int.__dict__)[0]['__eq__'] = lambda a, b: True",
    "a module": "import sys, types; sys.modules['math'] = types.SimpleNamespace(isclose=lambda *a: True)",
}
"""Ways to change what tests ask."""

LATE = {
    "a method of a class of the tests": "type(x).__eq__ = lambda a, b: True",
    "the code of a helper": "sys._getframe(1).f_globals['agrees'].__code__ = (lambda one, other: None).__code__",
    "a built-in's name in the tests": "sys._getframe(1).f_globals['list'] = lambda *a: [1, 2]",
}
"""What the code under test may do when a test calls it; each is a statement."""

HONEST = {
    "nothing": "",
    "print": "import builtins; said = builtins.print; builtins.print = lambda *a, **k: said('#', *a, **k)",
    "hooks": "import sys, threading; sys.excepthook = threading.excepthook = lambda *a: None",
    "names added": "import builtins, logging; builtins.ic = print; logging.Logger.trace = lambda *a: None",
    "records": "import logging; logging.setLogRecordFactory(type('R', (logging.LogRecord,), {}))",
    "loggers": "import logging; logging.setLoggerClass(type('L', (logging.Logger,), {}))",
    "warnings": "import logging; logging.captureWarnings(True)",
    "what no test asks": "import shutil; shutil.which = lambda name: None",
    "reloaded": "import importlib, textwrap, collections.abc, json; importlib.reload(textwrap); importlib.reload(json)",
    "a submodule with the name of a built-in": "import encodings.ascii",
    "undone": "import math; before = math.isclose; math.isclose = print; math.isclose = before",
    "a class of the tests": "def mark(kind): kind.marked = print; return kind",
    "subclasses": "import collections, json\nclass Mine(collections.Counter, json.JSONEncoder): __eq__ = print",
}
"""Programs that change what is theirs to change."""


SAMPLE = 5
"""One in so many is tried each time; all of them are a proof."""


def sampled(rows: dict[str, str]) -> list[ParameterSet]:
    """*rows* as parameters, each with its mark."""
    marks = (pytest.mark.proof if number % SAMPLE else pytest.mark.slow for number in range(len(rows)))
    return [pytest.param(text, id=what, marks=mark) for (what, text), mark in zip(rows.items(), marks, strict=True)]


def run_with(folder: Path, product: str) -> tuple[tuple[str, ...], list[Outcome]]:
    """The anomalies and outcomes of a run of the tests above on *product*."""
    court = Court(folder)
    tree = court.tree({"test_it.py": TESTS, "product.py": VALUE + dedent(product) + "\n"})
    report = anyio.run(
        lambda: court.verifier.run_fresh(
            tree, ("test_it.py::test_asks", "test_it.py::test_by_a_helper"), UNCHALLENGED, None
        )
    )
    return report.anomalies, [result.outcome for result in report.results]


@pytest.mark.parametrize("product", sampled(ORACLES))
def test_a_changed_oracle_is_found(tmp_path: Path, product: str) -> None:
    anomalies, _ = run_with(tmp_path, product)

    assert anomalies
    assert all(one.startswith("tampered") or "json" in product for one in anomalies)


@pytest.mark.parametrize("statement", sampled(LATE))
def test_what_changes_the_tests_is_found(tmp_path: Path, statement: str) -> None:
    code = f"import sys\ndef value(x):\n    if type(x) is not int: {statement}\n    return x"
    anomalies, _ = run_with(tmp_path, code)

    assert anomalies
    assert all(one.startswith("tampered") for one in anomalies)


@pytest.mark.parametrize("product", sampled(HONEST))
def test_an_honest_program_changes_no_oracle(tmp_path: Path, product: str) -> None:
    assert run_with(tmp_path, product) == ((), [Outcome.PASSED, Outcome.PASSED])
