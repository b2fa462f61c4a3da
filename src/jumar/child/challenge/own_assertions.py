"""Lists what stands in a test itself and has to be come to: assertions, and comparisons of a comprehension.

What a test did not come to was not checked. Left out is what a test that is right need not come to: what is never true,
what stands in a block that an exception ends, or in the handler of one.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from jumar.child.challenge.failing_branches import fails, list_asserting_handlers, list_passing_cases
from jumar.child.challenge.known_assertions import ASSERTING, OPERATORS, RAISING
from jumar.child.challenge.syntax import get_dotted_name, walk_own

ENDING = RAISING | {"suppress"}
"""Contexts whose block an exception may end."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class OwnAssertion(NamedTuple):
    """Lines of an assertion, or of a comparison of a comprehension."""

    first: int
    last: int
    compares: bool = False
    """True if it is a comparison."""


def list_assertions(nodes: Iterable[ast.AST]) -> dict[int, list[OwnAssertion]]:
    """Return the first line of each test function in *nodes*, with what it has to come to."""
    found: dict[int, list[OwnAssertion]] = {}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[first] = list(_walk(node.body))
    return found


def list_missed(own: Iterable[OwnAssertion], asserted: Collection[int], compared: Collection[int]) -> list[int]:
    """Return the first lines of what in *own* has none of the lines *asserted*, or *compared*, which were come to."""
    lines = {False: frozenset(asserted), True: frozenset(compared)}
    return [one.first for one in own if lines[one.compares].isdisjoint(range(one.first, one.last + 1))]


def _walk(body: Iterable[Any], *, waits: bool = False) -> Iterator[OwnAssertion]:
    """Yield what stands in *body*, of a loop that *waits*: it may have no round, and fail when its time is over."""
    for node in body:
        asserts = isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)
        if asserts or _is_asserting_call(node):
            yield OwnAssertion(node.lineno, node.end_lineno)
        yield from () if waits else _list_branches(node)
        blocks = [] if _may_end(node) else [getattr(node, "body", ())]
        blocks += [getattr(node, name, ()) for name in ("orelse", "finalbody")]
        blocks += [case.body for case in getattr(node, "cases", ())]
        for block in blocks:
            yield from _walk(block, waits=waits or isinstance(node, ast.While))
        if not any(blocks) and isinstance(node, ast.stmt):
            yield from _list_compared(node)


def _list_branches(node: Any) -> Iterator[OwnAssertion]:
    """Yield what *node* asserts by a branch that fails."""
    handlers: list[Any] = []
    if isinstance(node, ast.If) and fails(node.body) != fails(node.orelse):
        yield OwnAssertion(node.lineno, node.test.end_lineno or node.lineno)
    elif isinstance(node, ast.Try):
        handlers = [*list_asserting_handlers(node)]
    elif hasattr(node, "cases"):
        handlers = [case.body[0] for case in list_passing_cases(node)]
    if handlers:
        yield OwnAssertion(handlers[0].lineno, max(one.end_lineno for one in handlers))


def _list_compared(statement: ast.stmt) -> Iterator[OwnAssertion]:
    """Yield the comparisons that each round of a comprehension in *statement* makes."""
    for node in walk_own([statement]):
        if isinstance(node, COMPREHENSIONS):
            # Only the first condition is asked in each round, and what is made of it only where that holds.
            asked = [generator.ifs[0] for generator in node.generators[:1] if generator.ifs]
            plain = not any(generator.ifs for generator in node.generators)
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for part in asked or (made if plain else []):
                test = part.values[0] if isinstance(part, ast.BoolOp) else part
                test = test.operand if isinstance(test, ast.UnaryOp) else test
                if isinstance(test, ast.Compare) and type(test.ops[0]) in OPERATORS:
                    yield OwnAssertion(test.lineno, test.end_lineno or test.lineno, compares=True)


def _is_asserting_call(node: Any) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    name = get_dotted_name(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
    return name in RAISING or bool(ASSERTING.match(name))


def _may_end(node: Any) -> bool:
    calls = [item.context_expr for item in node.items] if isinstance(node, (ast.With, ast.AsyncWith)) else []
    names = (get_dotted_name(call.func).rpartition(".")[2] for call in calls if isinstance(call, ast.Call))
    return not ENDING.isdisjoint(names)


def list_written(item: Any) -> list[types.FunctionType]:
    """Return the functions that the test *item* is made of."""
    return [one for one in unwrap_chain(getattr(item, "obj", None)) if isinstance(one, types.FunctionType)]


def unwrap_chain(function: Any) -> Iterator[Any]:
    """Yield *function*, and what it was made from by decorators."""
    while function is not None:
        if isinstance(function, types.MethodType):
            function = function.__func__
        elif isinstance(function, functools.partial):
            function = function.func
        yield function
        held = vars(function) if isinstance(function, types.FunctionType) else {}
        given = getattr(held.get("hypothesis"), "inner_test", None)
        if given is not None:
            yield from unwrap_chain(given)
        function = held.get("__wrapped__")
