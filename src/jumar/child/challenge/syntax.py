"""Builds pieces of syntax trees: calls of `Questions`, which files of tests know by a name that no source can have."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

NAME = "@asked"
"""Name by which the files find `Questions`; no source can have it."""

REACH = "reach"
"""Method of `Questions` that what is called is handed to."""

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""Statements and expressions whose insides run later, or never."""


def get_method(name: str) -> ast.expr:
    """Build `Questions.name`."""
    return ast.Attribute(load(NAME), name, ast.Load())


def load(name: str) -> ast.Name:
    """Build a name that is read."""
    return ast.Name(name, ast.Load())


def build_call(name: str, given: Sequence[ast.expr]) -> ast.Call:
    """Build a call of the method *name* of `Questions`."""
    return ast.Call(get_method(name), [*given], [])


def get_dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as it is written, without the calls on the way; empty if it is something else."""
    if isinstance(node, ast.Call):
        handed = isinstance(node.func, ast.Attribute) and ast.dump(node.func) == ast.dump(get_method(REACH))
        return get_dotted_name(node.args[0] if handed else node.func)
    if isinstance(node, ast.Attribute):
        return f"{get_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def walk_own(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield all nodes in *nodes*, without those in functions and classes in them."""
    todo = [*nodes]
    while todo:
        node = todo.pop()
        yield node
        todo += [] if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
