"""Finds assertions that compare one thing with a literal: those may see a thing of the tests as the product left it.

What holds of a literal cannot have been made alike, as nothing but the text of the test says it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from jumar.child.challenge.syntax import build_call

READING = frozenset({"copy", "get", "getvalue", "getbuffer", "items", "keys", "read", "tell", "values"})
"""Methods of containers and streams that tell of them."""

SHOWING = frozenset({"bool", "bytes", "dict", "frozenset", "len", "list", "max", "min", "repr", "set", "sorted", "str",
                     "sum", "tuple"})  # fmt: skip
"""Functions of Python that tell of one thing."""


def find_windows(nodes: Iterable[ast.AST]) -> list[ast.stmt]:
    """Return the statements among *nodes* that assert something of one thing, and of literals beside it."""
    return [node for node in nodes if isinstance(node, (ast.Assert, ast.Expr)) and _is_window(node)]


def open_windows(tree: ast.Module, statements: Iterable[ast.stmt]) -> None:
    """Have *statements*, of *tree*, run between `Questions.show` and `Questions.hide`."""
    Opener(statements).visit(tree)


class Opener(ast.NodeTransformer):
    """Puts `Questions.show` and `Questions.hide` around *statements*."""

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        self._chosen = frozenset(map(id, statements))

    def visit_Assert(self, node: Any) -> Any:
        """Open a window for an assertion."""
        return self._open(node)

    def visit_Expr(self, node: Any) -> Any:
        """Open one for a call that asserts."""
        return self._open(node)

    def _open(self, node: Any) -> Any:
        if id(node) not in self._chosen:
            return node
        first, last = (ast.copy_location(ast.Expr(build_call(name, [])), node) for name in ("show", "hide"))
        return ast.copy_location(ast.Try([first, node], [], [], [last]), node)


def _is_window(node: Any) -> bool:
    if isinstance(node, ast.Assert):
        parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        return len({_find_subject(part) or id(part) for part in parts}) == 1 and bool(_find_subject(parts[0]))
    call = node.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not call.keywords):
        return False
    things = [given for given in call.args if not is_literal(given)]
    asserts = call.func.attr.startswith("assert") and getattr(call.func.value, "id", "") == "self"
    return asserts and len(things) == 1 and bool(_find_root(things[0]))


def _find_subject(test: ast.expr) -> str:
    """Return the name of the one thing of which *test* says that it is true, false, or how it is to literals; or ""."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _find_subject(test.operand)
    things = [test]
    if isinstance(test, ast.Compare):
        things = [side for side in (test.left, *test.comparators) if not is_literal(side)]
    return _find_root(things[0]) if len(things) == 1 else ""


def _find_root(node: Any) -> str:
    """Return the name that a path of attributes, items and sizes begins with, or ""."""
    while node is not None and not isinstance(node, ast.Name):
        node = _find_source(node)
    return node.id if node is not None else ""


def _find_source(node: Any) -> Any:
    """Return what *node* is read from, or None."""
    if isinstance(node, ast.Attribute):
        return node.value
    if isinstance(node, ast.Subscript):
        return node.value if is_literal(node.slice) else None
    given = node.args if isinstance(node, ast.Call) and not node.keywords else ()
    if given and isinstance(node.func, ast.Name) and node.func.id in SHOWING and len(given) == 1:
        return given[0]
    reads = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING
    return node.func.value if reads and not node.keywords and all(map(is_literal, given)) else None


def is_literal(node: Any) -> bool:
    """Return whether *node* is a literal: a constant, a display of such, a slice of them, an empty `set()`."""
    if isinstance(node, ast.Dict):
        return None not in node.keys and all(map(is_literal, (*node.keys, *node.values)))
    if isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        return all(map(is_literal, node.elts))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and is_literal(node.operand)
    if isinstance(node, ast.Slice):
        return all(part is None or is_literal(part) for part in (node.lower, node.upper, node.step))
    if type(node).__name__ == "Index":  # in Python 3.8
        return is_literal(node.value)
    empty = isinstance(node, ast.Call) and not (node.args or node.keywords)
    return isinstance(node, ast.Constant) or (empty and isinstance(node.func, ast.Name) and node.func.id in SHOWING)
