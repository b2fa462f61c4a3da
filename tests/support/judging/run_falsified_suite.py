"""A suite of one file that is run in this very process: what passes, what fails, before and after it was falsified."""

from __future__ import annotations

import ast
import sys
import types
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from textwrap import dedent
from typing import NamedTuple

from jumar.child.challenge.current_test import CurrentTest
from jumar.child.challenge.deciding import list_deciding
from jumar.child.challenge.questions import Questions
from jumar.child.challenge.rewritten_comparisons import rewrite
from jumar.child.challenge.syntax import NAME
from jumar.verify.challenge.falsified_files import FalsifiableFile

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


class Learnt(NamedTuple):
    """Findings of a round about a test."""

    passed: bool
    asserted: bool
    partial: bool
    lying: bool
    affirming: bool


def learn(
    code: str, seed: int, *, falsified: bool = True, more: str = "", false: Sequence[str] = ()
) -> dict[str, Learnt]:
    """Test -> what is learnt of it if all are *falsified*, or none is, with *more* of a product.

    Literals of the tests *false* are changed all the same.
    """
    names = [name for name, _ in _cases(vars(load(code, more)))] if falsified else false
    data, places = FalsifiableFile(code.encode()).falsify(names, Random(seed))
    tree = ast.parse(data)
    rewrite(tree, places)
    asked = Questions(
        Random(seed), _is_product, _decides, lambda function: getattr(function, "__module__", "") == "test_it"
    )
    module, found = load(tree, more, asked), dict[str, Learnt]()
    for name, case in _cases(vars(module)):
        asked.test = test = CurrentTest(falsified=falsified)
        passed = _passes(case)
        found[name] = Learnt(passed, test.asserted, test.partial, test.lying, test.affirming)
    return found


def _decides(kind: type) -> bool:
    return any(base.__module__ == "product" for base in list_deciding(kind))


def _is_product(thing: object) -> bool:
    kind = thing if isinstance(thing, type) else type(thing)
    return any(base.__module__ == "product" and base.__name__ != "Anything" for base in kind.__mro__)


def outcomes(code: str, more: str = "") -> dict[str, bool]:
    """Test -> whether all its cases pass as they are, with *more* of a product."""
    return {name: _passes(case) for name, case in _cases(vars(load(code, more)))}


def load(code: str | ast.Module, more: str, asked: object = None) -> types.ModuleType:
    """The module of tests *code*, which finds *asked*, beside the product with *more* in it."""
    module, product = types.ModuleType("test_it"), types.ModuleType("product")
    exec(PRODUCT + more, vars(product))  # noqa: S102  our own text
    before = sys.modules.get("product")
    sys.modules["product"] = product
    vars(module)[NAME] = asked
    try:
        exec(compile(code, PATH, "exec"), vars(module))  # noqa: S102  our own snippets
    finally:
        sys.modules.pop("product")
        if before is not None:
            sys.modules["product"] = before
    return module


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
    except Divided:
        raise
    except BaseException:  # noqa: BLE001  whatever it is, the test failed
        return False
    return True


def tidy(code: str) -> str:
    """*code*, which needs what all snippets need."""
    return "import unittest\nimport pytest\nfrom product import Anything, Fault, fail, same\n\n\n" + dedent(code)
