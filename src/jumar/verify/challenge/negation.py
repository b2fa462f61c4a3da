"""Negates operators, `not`, and the assertions of unittest."""

from __future__ import annotations

import ast
import re

from jumar.verify.challenge.source_edits import Edits, ParsedSource, SourceEdit

_PAIRS = (
    ("assertTrue", "assertFalse"), ("assertIsNone", "assertIsNotNone"), ("assertIn", "assertNotIn"),
    ("assertIs", "assertIsNot"), ("assertEqual", "assertNotEqual"), ("assertIsInstance", "assertNotIsInstance"),
    ("assertRegex", "assertNotRegex"), ("assertAlmostEqual", "assertNotAlmostEqual"),
    ("assertGreater", "assertLessEqual"), ("assertLess", "assertGreaterEqual"),
)  # fmt: skip
CONTRARY = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}}
"""Assertions of unittest that cannot both hold."""

OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
"""Operator -> how it is written, and one that does not hold where it does."""

LOOSE = ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr
"""Expressions that bind less tightly than `not`."""


def negate_condition(source: ParsedSource, test: ast.expr) -> Edits:
    """Return the edits that make *test*, which is true, false: turn its only operator, or add or remove `not`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _operator(source, test)
    start, end = source.span(test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = source.span(test.operand)[0]
        opened = source.text(start + 3, inner)
        # A parenthesis before the operand stays; after `assert` there must be a space.
        return (SourceEdit(start, start + 3 + len(opened) - len(opened.lstrip(" ")), ""),) if "\\" not in opened else ()
    if isinstance(test, LOOSE):
        return (SourceEdit(start, start, "not ("), SourceEdit(end, end, ")"))
    return (SourceEdit(start, start, "not "),)


def negate_assertion(source: ParsedSource, call: ast.Call) -> Edits:
    """Return the edits that negate *call*, an assertion of unittest."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    _, end = source.span(call.func)
    name = call.func.attr
    return (SourceEdit(end - len(name.encode()), end, CONTRARY[name]),)


def find_operator(source: ParsedSource, test: ast.Compare) -> tuple[int, int] | None:
    """Return the position of the first operator of *test*.

    None if something else, such as a comment, stands there too.
    """
    start, end = source.span(test.left)[1], source.span(test.comparators[0])[0]
    written, _ = OPERATORS[type(test.ops[0])]
    found = re.fullmatch(rf"[\s)\\]*({written})[\s(\\]*", source.text(start, end))
    return (start + found.start(1), start + found.end(1)) if found else None


def _operator(source: ParsedSource, test: ast.Compare) -> Edits:
    at = find_operator(source, test)
    return (SourceEdit(*at, OPERATORS[type(test.ops[0])][1]),) if at else ()
