"""Calls of the code under test by the tests are counted one by one; all else in their files does what it did."""

from __future__ import annotations

import ast
from random import Random
from typing import Any

import pytest

from jumar.child.challenge.current_test import CurrentTest
from jumar.child.challenge.questions import Questions
from jumar.child.challenge.rewritten_comparisons import rewrite
from jumar.child.challenge.syntax import get_dotted_name
from support.judging.run_falsified_suite import load

PRODUCT = """
class Box:
    def __init__(self): self.n = 1
    def get(self): return self.n
class Word(str):
    pass
def double(n): return 2 * n
"""
HEAD = """
import contextlib, functools, inspect
from product import Box, Word, double
class Own(Box):
    def __init__(self): super().__init__()
class Plain:
    def __init__(self): self.__n = 3
    def get(self): return self.__n
async def wait(n): return n
def run():
    x = 1
"""
BODIES = {
    "return double(2)": (4, [1]),
    "return [double(n) for n in range(3)]": ([0, 2, 4], [3]),
    "return double(double(2)) + double(1)": (10, [1, 1, 1]),
    "return Box().get()": (1, [1, 1]),
    "return Own().get()": (1, [1, 1, 1]),
    "return Word('ab').upper()": ("AB", [1, 1]),
    "return functools.partial(double, 4)()": (8, [1]),
    "return sorted(map(double, [2, 1]), key=abs)": ([2, 4], []),
    "return Plain().get()": (3, []),
    "return sorted(locals())": (["x"], []),
    "return inspect.currentframe().f_code.co_name": ("run", []),
    "with contextlib.suppress(ValueError):\n        int('a')\n    return eval('x')": (1, []),
    "return (lambda: (yield 5))().send(None)": (5, []),
    "try:\n        wait(2).send(None)\n    except StopIteration as end:\n        return end.value": (2, []),
}


def is_product(thing: Any) -> bool:
    kind = thing if isinstance(thing, type) else type(thing)
    return getattr(thing, "__module__", "") == "product" or any(base.__module__ == "product" for base in kind.__mro__)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("summed", [True, False])
def test_a_file_does_what_it_did_and_calls_are_counted(body: str, summed: bool) -> None:  # noqa: FBT001  a parameter of the test
    tree = ast.parse(f"{HEAD}    {body}\n")
    rewrite(tree, calls=True)
    asked = Questions(Random(1), is_product, lambda _: False, lambda _: False)
    module = load(tree, PRODUCT, asked)
    asked.test = CurrentTest(falsified=False, summed=summed)
    answer, counted = BODIES[body]

    assert vars(module)["run"]() == answer
    assert sorted(asked.test.calls.values()) == (counted if summed else [])


def test_a_call_that_is_handed_on_has_its_name() -> None:
    tree = ast.parse("with contextlib.suppress(ValueError): pass")
    rewrite(tree, calls=True)

    found = [get_dotted_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]

    assert "contextlib.suppress" in found
    assert "hold" in ast.dump(tree)
    assert "Constant(value=True)" in ast.dump(tree), "an exception may end its block"
