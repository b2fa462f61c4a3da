"""Two processes: what an object of the product may do with a value of the tests that an operator tells it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.judging.two_process_verifier import outcomes, run_bodies

Bodies = Mapping[str, str]
"""Body of a test -> its outcome in two processes."""


def check_bodies(folder: Path, product: str, head: str, bodies: Bodies) -> None:
    """Run tests with these *bodies*, and all of *product* and *head* above them, and compare the outcomes."""
    said = outcomes(run_bodies(folder, product, f"from product import *\n{head}", bodies))

    assert {body: said[f"test_{n}"] for n, body in enumerate(bodies)} == bodies


RAISING = """
class Money:
    def __init__(self, n): self.n = n
    def _raise(self, other):
        if not isinstance(other, Money): raise TypeError("no money")
        return Money(self.n + other.n)
    __lt__ = __eq__ = __add__ = __iadd__ = _raise
    def __sub__(self, other): return NotImplemented

class Spy:
    def __eq__(self, other):
        self.heard = other
        raise KeyError

def spy(done):
    heard = Spy()
    try: done(heard)
    except KeyError: done(heard.heard)
"""

RAISED: Bodies = {
    "with raises(TypeError): Money(1) < 'a'": "passed",
    "with pytest.raises(TypeError, match='money'):\n        Money(1) + -1": "passed",
    "money = Money(1)\n    with raises(TypeError): money += 2": "passed",
    "with unittest.TestCase().assertRaises(TypeError): Money(1) == 1": "passed",
    "with raises(TypeError): _ = Money(1) == 2": "passed",
    "with raises(TypeError): Money(1) - 3": "passed",
    "with raises(TypeError): assert Money(1) == 1": "failed",
    "with raises(TypeError): (Money(1) + 3) < 4": "failed",
    "with raises(TypeError):\n        Money(1) < 3\n        fail()": "failed",
    "try: Money(1) < 3\n    except TypeError: pass": "failed",
    "try: Money(1) - 3\n    except TypeError: pass": "failed",
    "try: sorted([3, Money(1)])\n    except TypeError: pass": "failed",
    "assert (Money(1) + Money(2)).n == 3": "passed",
    "spy(wants_three)": "failed",
}


@pytest.mark.slow
def test_a_comparison_that_raises_has_to_be_what_a_test_awaits(tmp_path: Path) -> None:
    head = (
        "import unittest\nimport pytest\nfrom pytest import raises\n\n"
        "def fail(): assert 1 == 2\ndef wants_three(found): assert found == 3\n"
    )
    check_bodies(tmp_path, RAISING, head, RAISED)
