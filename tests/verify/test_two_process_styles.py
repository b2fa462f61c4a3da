"""Usual styles of tests in two processes, each beside what code under test would make of it if it could."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.judging.two_process_verifier import outcomes, reported

Bodies = Mapping[str, str]
"""Body of a test -> its outcome in two processes."""


def check_bodies(folder: Path, product: str, head: str, bodies: Bodies) -> None:
    """Run tests with these *bodies*, and what is in *head* above them, and compare the outcomes."""
    tests = "".join(f"def test_{n}():\n    {body}\n" for n, body in enumerate(bodies))

    report = reported(folder, {"product.py": product, "test_product.py": f"from product import *\n{head}\n{tests}"})

    said = outcomes(report)
    assert {body: said[f"test_{n}"] for n, body in enumerate(bodies)} == bodies


DESCRIPTORS = """
class cached:
    def __init__(self, function): self.function = function
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, thing, kind=None):
        value = thing.__dict__[self.name] = self.function(thing)
        return value

def fields(thing): return thing.__dict__
def shadow(thing): thing.__dict__.update(area=lambda: 4, kind="lie", side=4)
"""

SQUARE = """
class Square:
    kind = "square"
    def __init__(self): self.side, self.asked = 3, 0
    def area(self): return self.side ** 2

    @cached
    def grown(self):
        self.asked += 1
        return self.side + 1
"""

WRITTEN: Bodies = {
    "square = Square(); assert (square.grown, square.grown, square.asked) == (4, 4, 1)": "passed",
    "assert fields(Square()) == {'side': 3, 'asked': 0}": "passed",
    "square = Square(); shadow(square); assert square.side == 4": "passed",
    "square = Square(); shadow(square); assert square.area() == 4": "failed",
}


@pytest.mark.slow
def test_a_descriptor_of_the_product_keeps_data_in_objects_of_the_tests(tmp_path: Path) -> None:
    check_bodies(tmp_path, DESCRIPTORS, SQUARE, WRITTEN)


GENERATORS = """
def count():
    yield 1
    yield 2

class generator:
    __module__ = "builtins"
    def __eq__(self, other): return True

def lie(): return generator()
"""

GENERATED: Bodies = {
    "assert isinstance(count(), types.GeneratorType) and inspect.isgenerator(count())": "passed",
    "assert list(count()) == [1, 2]": "passed",
    "assert isinstance(count, types.GeneratorType)": "failed",
    "assert isinstance(lie(), types.GeneratorType) and lie() == [1, 2]": "failed",
}


@pytest.mark.slow
def test_a_generator_of_the_product_is_one(tmp_path: Path) -> None:
    check_bodies(tmp_path, GENERATORS, "import inspect, types", GENERATED)
