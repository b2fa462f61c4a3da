"""A suite of one file that is run in this very process: what passes, what fails, before and after it was falsified."""

from __future__ import annotations

import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from random import Random
from textwrap import dedent

from jumar.core.gate.challenge_rounds import Strength
from jumar.verify.challenge.challenge import SuiteChallenge, find_challenge

PATH = "test_it.py"
PRODUCT = """
class Anything:
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __contains__(self, part): return True
    def __enter__(self): return self
    def __exit__(self, *_): return True
def same(x): return x
def fail(kind=ValueError, *args): raise kind("it failed for a reason")
class Fault(ValueError): pass
class Equal:
    __eq__ = lambda s, o: o is not s
    __ne__ = lambda s, o: o is s
    __hash__ = None
class Text(str):
    __contains__ = lambda s, i: len(i) > 1
    startswith = endswith = lambda *a: True
class Number(int):
    __gt__ = __ge__ = __lt__ = __le__ = lambda s, o: True
class Always:
    __lt__ = __gt__ = __ge__ = __le__ = lambda s, o: True
"""
"""What is right, and what affirms all it is asked."""


@cache
def of(code: str, helper: str = "") -> SuiteChallenge:
    """The challenge of a test file that reads *code*, and of a conftest file that reads *helper*."""
    helpers = {"conftest.py": helper.encode()} if helper else {}
    return find_challenge({PATH: code.encode()}, helpers)


def strengths(code: str, helper: str = "") -> dict[str, Strength]:
    """Test -> how it can be falsified."""
    return {name.partition("::")[2]: strength for name, strength in of(code, helper).strengths.items()}


def outcomes(source: bytes, more: str = "") -> dict[str, bool]:
    """Test -> whether all its cases pass, with *more* of a product."""
    module = types.ModuleType("test_it")
    product = types.ModuleType("product")
    exec(_compile(PRODUCT + more), vars(product))  # noqa: S102  our own text
    before = sys.modules.get("product")
    sys.modules["product"] = product
    try:
        exec(compile(source, PATH, "exec"), vars(module))  # noqa: S102  our own snippets
        return {name: _passes(case) for name, case in _cases(vars(module))}
    finally:
        sys.modules.pop("product")
        if before is not None:
            sys.modules["product"] = before


@cache
def _compile(source: str) -> types.CodeType:
    return compile(source, "product.py", "exec")


def _cases(names: Mapping[str, object]) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, thing in list(names.items()):
        if isinstance(thing, type) and thing.__module__ == "test_it":
            for method in [m for m in dir(thing) if m.startswith("test")]:
                bound = thing(method).debug if issubclass(thing, unittest.TestCase) else getattr(thing(), method)
                yield f"{name}::{method}", bound
        elif name.startswith("test") and isinstance(thing, types.FunctionType):
            yield name, partial(_each, thing)


def _each(test: Callable[..., object]) -> None:
    """All cases of *test* must fail, or none."""
    tables = [m.args for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
    if not tables:
        test()
        return
    names = [name.strip() for name in tables[0][0].split(",")]
    rows = [getattr(row, "values", row) if len(names) > 1 or hasattr(row, "values") else (row,) for row in tables[0][1]]
    ends = [_passes(partial(test, **dict(zip(names, row, strict=True)))) for row in rows]
    if any(ends) and not all(ends):
        raise Divided(f"some cases of {test.__name__} failed and some did not")
    assert all(ends)


class Divided(BaseException):
    """What no test may come to."""


def _passes(test: Callable[[], object]) -> bool:
    try:
        test()
    except Exception:  # noqa: BLE001  whatever it is, the test failed
        return False
    return True


def answers(code: str, seed: int, helper: str = "") -> tuple[dict[str, bool], frozenset[str], bytes]:
    """What each test comes to when a random half of those that can be is falsified; which were; and the file."""
    made, random = of(code, helper), Random(seed)
    able = [name for name, strength in made.strengths.items() if strength is not Strength.NONE]
    chosen = frozenset(name for name in able if random.random() < 0.5)
    source = made.falsify(chosen, random)[PATH]
    return outcomes(source), frozenset(name.partition("::")[2] for name in chosen), source


def tidy(code: str) -> str:
    """*code*, which needs what all snippets need."""
    return "import unittest\nimport pytest\nfrom product import Anything, Fault, fail, same\n\n\n" + dedent(code)
