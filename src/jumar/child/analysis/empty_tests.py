"""Finds tests that pass whatever the code does: they assert nothing, or only what is always true."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Finding = tuple[str, int, str]
    Function = ast.FunctionDef | ast.AsyncFunctionDef

CLAIMS = ("assert", "raises", "warns", "deprecated_call", "fail", "expect", "check", "verify", "should", "ensure")
"""Prefixes of the names of assertion functions."""


def find_empty_tests(tree: ast.Module) -> Iterator[Finding]:
    """Yield the tests of a module that cannot fail by what the code under test does."""
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    claiming = {f.name for f in functions if not f.name.startswith("test") and any(list_claims(f, frozenset()))}
    for function in functions:
        if function.name.startswith("test"):
            made = list(list_claims(function, frozenset(claiming)))
            if not made:
                yield "nothing", function.lineno, f"{function.name} asserts nothing"
            elif not any(made):
                yield "itself", function.lineno, f"{function.name} asserts only what is always true"


def list_claims(function: Function, claiming: frozenset[str]) -> Iterator[bool]:
    """Yield for each claim in *function* whether it could be false; *claiming* are functions that claim something."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield not is_always_true(node.test)
        elif isinstance(node, ast.Raise):
            yield True
        elif isinstance(node, ast.Call):
            name = _get_called_name(node.func)
            plain = name.lstrip("_").lower()
            if name in claiming:
                yield True
            elif plain.startswith(CLAIMS):
                yield not is_vain(plain, node.args)


def _get_called_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_vain(name: str, given: list[ast.expr]) -> bool:
    """Return whether `assertSomething(given...)` can never fail."""
    if name.startswith(("asserttrue", "assert_")) and len(given) == 1:
        return is_always_true(given[0])
    if name.startswith(("assertequal", "assertis")) and len(given) > 1:
        return are_same(given[0], given[1]) or all(isinstance(g, ast.Constant) for g in given[:2])
    return bool(given) and name.startswith("assert") and all(isinstance(g, ast.Constant) for g in given)


def is_always_true(test: ast.expr) -> bool:
    """Return whether *test* is always true: a constant, a filled tuple, an expression compared with itself."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp):
        return (any if isinstance(test.op, ast.Or) else all)(is_always_true(value) for value in test.values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        reflexive = isinstance(test.ops[0], (ast.Eq, ast.Is, ast.LtE, ast.GtE))
        both = isinstance(test.left, ast.Constant) and isinstance(test.comparators[0], ast.Constant)
        return (reflexive and are_same(test.left, test.comparators[0])) or both
    return False


def are_same(one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions have the same text and, as they call nothing, the same value."""
    if any(isinstance(n, ast.Call) for n in ast.walk(one)):
        return False
    return ast.dump(one) == ast.dump(other)
