"""Finds out what a test asserts of its surroundings: that much of the product's may hold for the tests as well."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import Any

CWD, ENVIRONMENT = frozenset(("cwd", "getcwd")), frozenset(("environ", "getenv"))
"""Names by which tests ask for the working directory, and for variables."""


def parse_function(function: Any, names: frozenset[str]) -> list[ast.AST]:
    """Return the nodes of *function*, if its text is there and has one of *names*."""
    if type(function) is not types.FunctionType or names.isdisjoint(function.__code__.co_names):
        return []
    try:
        return [*ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))]
    except (OSError, ValueError, SyntaxError):
        return []


def list_asserted(function: Any) -> frozenset[str]:
    """Return what *function* asserts of its surroundings: names of variables, and `cwd` or `getcwd`.

    Variables only if it reads them in assertions that have nothing but literals beside them: no answer is compared with
    one of them.
    """
    found: set[str] = set()
    compared: set[str] = set()
    for node in parse_function(function, CWD | ENVIRONMENT):
        if not isinstance(node, (ast.Assert, ast.Assign, ast.Expr, ast.Return)):
            continue
        called = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        asserts = str(getattr(called and called.func, "attr", "")).startswith("assert")
        said = called.args if called and asserts else [node]
        parts = [part for one in said for part in ast.walk(one)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        read = names.union(part.attr for part in parts if isinstance(part, ast.Attribute))
        asserts |= isinstance(node, ast.Assert)
        found |= read & CWD if asserts else set()
        if not ENVIRONMENT.isdisjoint(read):
            alone = asserts and names <= {"os", *ENVIRONMENT}
            (found if alone else compared).update(str(p.value) for p in parts if isinstance(p, ast.Constant))
    return frozenset(found - compared)
