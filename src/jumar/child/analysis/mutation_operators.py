"""Mutation operators: single small changes of a line that a test should notice, as (line, place, new text, what).

A place is two pairs of a line and a column in bytes; `{}` in a new text stands for what was there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Place = tuple[tuple[int, int], tuple[int, int]]
    Step = tuple[int, Place, str, str]

COMPARED = {
    ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")), ast.Gt: (">", (">=", "<=")), ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",)),
}  # fmt: skip

COMPUTED = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip

SIGNS = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}

JUMPS = {ast.Break: ("break", "continue"), ast.Continue: ("continue", "break")}


def build_operators() -> Callable[[ast.Module, set[int]], Iterator[Step]]:
    """Return the function that finds all mutations in a tree that begin on given lines."""
    by_kind = (
        (ast.Compare, _change_comparison), ((ast.BinOp, ast.AugAssign), _change_arithmetic),
        (ast.BoolOp, _change_boolean),
        (ast.UnaryOp, _drop_unary), (ast.Constant, _change_constant), (ast.Return, _change_return),
        ((ast.If, ast.While, ast.IfExp), _change_condition),
        ((ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete), _drop_statement), (tuple(JUMPS), _change_jump),
        (ast.Call, _drop_call), (ast.Slice, _drop_slice_end),
    )  # fmt: skip

    def find(tree: ast.Module, lines: set[int]) -> Iterator[Step]:
        plain = set(_find_untouched(tree))
        for node in ast.walk(tree):
            if getattr(node, "lineno", 0) in lines and id(node) not in plain:
                for kinds, operator in by_kind:
                    if isinstance(node, kinds):
                        yield from ((node.lineno, *step) for step in operator(node))

    return find


def _find_untouched(tree: ast.AST) -> Iterator[int]:
    """Yield the identities of nodes that are left alone: documentation, annotations, what stands in an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node)
            yield id(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield from map(id, ast.walk(node))
        else:
            for part in ("annotation", "returns"):
                if isinstance(getattr(node, part, None), ast.AST):
                    yield from map(id, ast.walk(getattr(node, part)))


def get_place(node: Any) -> Place:
    """Return the line and column of *node*."""
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _find_operator(left: Any, right: Any) -> Place:
    """Return the position of the operator, with parentheses around the operands: then the mutant does not parse."""
    return (left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset)


def _change_comparison(node: Any) -> Iterator[tuple[Place, str, str]]:
    for left, op, right in zip((node.left, *node.comparators), node.ops, node.comparators):  # noqa: B905  Python 3.8 has no strict
        old, others = COMPARED[type(op)]
        for new in others:
            yield _find_operator(left, right), f" {new} ", f"`{old}` to `{new}`"


def _change_arithmetic(node: Any) -> Iterator[tuple[Place, str, str]]:
    assigned = isinstance(node, ast.AugAssign)
    left, right, equal = (node.target, node.value, "=") if assigned else (node.left, node.right, "")
    if type(node.op) in COMPUTED:
        old, new = COMPUTED[type(node.op)]
        yield _find_operator(left, right), f" {new}{equal} ", f"`{old}{equal}` to `{new}{equal}`"


def _change_boolean(node: Any) -> Iterator[tuple[Place, str, str]]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:]):  # noqa: B905  Python 3.8 has no strict
        yield _find_operator(left, right), f" {new} ", f"`{old}` to `{new}`"
    neutral = "True" if old == "and" else "False"
    for value in node.values:
        yield get_place(value), neutral, f"an operand of `{old}` to `{neutral}`"


def _drop_unary(node: Any) -> Iterator[tuple[Place, str, str]]:
    if type(node.op) in SIGNS:
        yield (get_place(node)[0], get_place(node.operand)[0]), "", f"`{SIGNS[type(node.op)]}` dropped"


def _change_constant(node: Any) -> Iterator[tuple[Place, str, str]]:
    value = node.value
    if isinstance(value, bool):
        yield get_place(node), str(not value), f"`{value}` to `{not value}`"
    elif isinstance(value, (int, float)) and -(1 << 63) < value < 1 << 63:
        yield get_place(node), f"({value + 1!r})", f"`{value}` to `{value + 1}`"
        yield get_place(node), f"({value - 1!r})", f"`{value}` to `{value - 1}`"
    elif isinstance(value, str):
        yield get_place(node), '("mutant" + {})' if value else '"mutant"', "a text to another"
    elif isinstance(value, bytes):
        yield get_place(node), '(b"mutant" + {})', "bytes to others"


def _change_return(node: Any) -> Iterator[tuple[Place, str, str]]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield get_place(node.value), "None", "`None` returned"


def _change_condition(node: Any) -> Iterator[tuple[Place, str, str]]:
    yield get_place(node.test), "(not ({}))", "a condition turned round"
    yield get_place(node.test), "False", "a condition to `False`"
    if not isinstance(node, ast.While):
        yield get_place(node.test), "True", "a condition to `True`"


def _drop_statement(node: Any) -> Iterator[tuple[Place, str, str]]:
    yield get_place(node), "pass", "a statement dropped"


def _change_jump(node: Any) -> Iterator[tuple[Place, str, str]]:
    old, new = JUMPS[type(node)]
    yield get_place(node), new, f"`{old}` to `{new}`"


def _drop_call(node: Any) -> Iterator[tuple[Place, str, str]]:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        yield (get_place(node)[0], get_place(node.args[0])[0]), "(", "a call left out"


def _drop_slice_end(node: Any) -> Iterator[tuple[Place, str, str]]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield get_place(bound), "", "an end of a slice dropped"
