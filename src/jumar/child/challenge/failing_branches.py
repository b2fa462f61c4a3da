"""Finds assertions that are written as a branch that fails: `if a != b: pytest.fail()`, `else: raise AssertionError`.

They assert that it is not taken, as `assert a == b` does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from jumar.child.challenge.syntax import get_dotted_name

FAILING = frozenset({"pytest.fail", "self.fail", "fail"})
"""Functions that fail a test; a method of that name of anything else may be what is tested."""

CATCHING = frozenset({"Exception", "BaseException", "AssertionError", ""})
"""Types in a handler that also catches what fails in its block; empty: none is named."""


def fails(body: Sequence[ast.stmt]) -> bool:
    """Return whether *body* does nothing but fail the test."""
    statement: Any = body[0] if len(body) == 1 else None
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        return get_dotted_name(statement.exc) == "AssertionError"
    called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return called and get_dotted_name(statement.value) in FAILING


def list_asserting_handlers(node: Any) -> Iterator[ast.ExceptHandler]:
    """Yield the handlers of a statement `try` that fails where no exception comes: one has to come to one of them."""
    handlers = [handler for handler in node.handlers if not fails(handler.body)]
    narrow = all(get_dotted_name(handler.type or node).rpartition(".")[2] not in CATCHING for handler in handlers)
    if fails(node.orelse) or (fails(node.body[-1:]) and narrow):
        yield from handlers


def list_passing_cases(node: Any) -> Iterator[Any]:
    """Yield the cases of a statement `match` that do not fail, if another one of it does."""
    passing = [case for case in node.cases if not fails(case.body)]
    if len(passing) < len(node.cases):
        yield from passing
