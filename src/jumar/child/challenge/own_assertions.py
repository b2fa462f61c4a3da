"""Lists the assertions that stand in a test itself: one that it did not come to was not checked.

Left out is what a test that is right need not come to: what is never true, what stands in a block that an exception
ends, or in the handler of one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from jumar.child.challenge.known_assertions import ASSERTING, RAISING
from jumar.child.challenge.syntax import get_dotted_name

ENDING = RAISING | {"suppress"}
"""Contexts whose block an exception may end."""

Lines = tuple[int, int]
"""First and last line of an assertion."""


def list_assertions(nodes: Iterable[ast.AST]) -> dict[int, list[Lines]]:
    """Return the first line of each test function in *nodes*, with the lines of its assertions."""
    found: dict[int, list[Lines]] = {}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[first] = list(_walk(node.body))
    return found


def list_missed(assertions: Iterable[Lines], reached: Iterable[int]) -> list[int]:
    """Return the first lines of those *assertions* in which none of the lines *reached* is."""
    lines = frozenset(reached)
    return [first for first, last in assertions if lines.isdisjoint(range(first, last + 1))]


def _walk(body: Iterable[Any]) -> Iterator[Lines]:
    for node in body:
        asserts = isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)
        if asserts or _is_asserting_call(node):
            yield node.lineno, node.end_lineno
        blocks = [] if _may_end(node) else [getattr(node, "body", ())]
        blocks += [getattr(node, name, ()) for name in ("orelse", "finalbody")]
        blocks += [case.body for case in getattr(node, "cases", ())]
        for block in blocks:
            yield from _walk(block)


def _is_asserting_call(node: Any) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    name = get_dotted_name(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
    return name in RAISING or bool(ASSERTING.match(name))


def _may_end(node: Any) -> bool:
    calls = [item.context_expr for item in node.items] if isinstance(node, (ast.With, ast.AsyncWith)) else []
    names = (get_dotted_name(call.func).rpartition(".")[2] for call in calls if isinstance(call, ast.Call))
    return not ENDING.isdisjoint(names)
