"""Changes of operators and operands: what an expression computes, from the same parts."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_COMPARISONS: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1.0), (">", 0.9), (">=", 0.8), ("!=", 0.4)),
    "<=": (("<", 1.0), (">=", 0.9), (">", 0.8), ("==", 0.4)),
    ">": ((">=", 1.0), ("<", 0.9), ("<=", 0.8), ("!=", 0.5)),
    ">=": ((">", 1.0), ("<=", 0.9), ("<", 0.8), ("==", 0.4)),
    "==": (("!=", 0.9), ("<=", 0.8), (">=", 0.8), ("is", 0.3), ("in", 0.4), ("<", 0.5), (">", 0.5)),
    "!=": (("==", 0.9), ("<", 0.6), (">", 0.6), ("is not", 0.3), ("not in", 0.4)),
    "in": (("not in", 0.9), ("==", 0.5)),
    "not in": (("in", 0.9), ("!=", 0.5)),
    "is": (("is not", 0.9), ("==", 0.6)),
    "is not": (("is", 0.9), ("!=", 0.6)),
}

_ARITHMETIC: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 0.9), ("*", 0.5)),
    "-": (("+", 0.9), ("*", 0.3), ("/", 0.3), ("%", 0.3)),
    "*": (("/", 0.6), ("+", 0.5), ("**", 0.5), ("//", 0.5)),
    "/": (("//", 0.9), ("*", 0.6), ("%", 0.4)),
    "//": (("/", 0.9), ("%", 0.6), ("*", 0.4)),
    "%": (("//", 0.7), ("/", 0.5), ("*", 0.3)),
    "**": (("*", 0.7),),
    "&": (("|", 0.9), ("^", 0.7), ("and", 0.4)),
    "|": (("&", 0.9), ("^", 0.7), ("or", 0.4)),
    "^": (("&", 0.9), ("|", 0.9), ("**", 0.6)),
    "<<": ((">>", 0.9),),
    ">>": (("<<", 0.9),),
}

_COMMUTATIVE = frozenset({"*", "&", "|", "^"})


def change_comparisons(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: `<` to `<=` and every other comparison; `==` with a number also as a bound beside it."""
    if not isinstance(node, cst.ComparisonTarget):
        return
    old = " ".join(site.text(node.operator).split())
    for new, prior in _COMPARISONS.get(old, ()):
        yield site.edit(node.operator, new, f"comparison {old} to {new}", prior)
    if isinstance(node.comparator, cst.Integer):
        value = int(node.comparator.value, 0)
        start, end = site.span(node.operator)[0], site.span(node.comparator)[1]
        for new, _ in _COMPARISONS.get(old, ()):
            if new in ("<", "<=", ">", ">=", "!=", "=="):
                for other in (value - 1, value + 1):
                    text = f"{new} {other}"
                    yield TextEdit(start, end, text, f"bound {old} {value} to {text}", 0.5, site.line(node))


def change_arithmetic(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: another operator between the same operands, and the operands exchanged."""
    if isinstance(node, cst.BinaryOperation):
        old = site.text(node.operator)
        for new, prior in _ARITHMETIC.get(old, ()):
            yield site.edit(node.operator, new, f"operator {old} to {new}", prior)
        if old not in _COMMUTATIVE:
            yield site.edit(
                node, f"{site.atom(node.right)} {old} {site.atom(node.left)}", f"operands of {old} exchanged", 0.6
            )
    elif isinstance(node, cst.AugAssign):
        old = site.text(node.operator)
        for new, prior in _ARITHMETIC.get(old[:-1], ()):
            if new not in ("and", "or"):
                yield site.edit(node.operator, f"{new}=", f"operator {old} to {new}=", prior)
        yield site.edit(node.operator, "=", f"{old} to =", 0.4)
    elif isinstance(node, cst.Assign) and len(node.targets) == 1:
        target, value = site.text(node.targets[0].target), node.value
        if isinstance(node.targets[0].target, cst.Tuple):
            return
        for new in ("+=", "-="):
            yield site.edit(node, f"{target} {new} {site.text(value)}", f"= to {new}", 0.3)


def keep_operand(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: one operand alone, in the place of the whole operation."""
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        for kept, side in ((node.left, "right"), (node.right, "left")):
            yield site.put(node, site.text(kept), f"{side} operand dropped", 0.7)
    elif isinstance(node, cst.UnaryOperation):
        yield site.put(node, site.text(node.expression), f"{site.text(node.operator)} dropped", 0.8)
    elif isinstance(node, cst.IfExp):
        test = site.text(node.test)
        yield site.put(node, site.text(node.body), "conditional expression to its first value", 0.3)
        yield site.put(node, site.text(node.orelse), "conditional expression to its other value", 0.3)
        yield site.put(
            node, f"{site.text(node.orelse)} if {test} else {site.text(node.body)}", "values of the conditional", 0.5
        )


def change_booleans(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: `and` to `or` and back, operands of a short circuit exchanged, and conditions negated."""
    if isinstance(node, cst.BooleanOperation):
        old = site.text(node.operator)
        new = "or" if old == "and" else "and"
        yield site.edit(node.operator, new, f"{old} to {new}", 0.9)
        yield site.edit(
            node, f"{site.atom(node.right)} {old} {site.atom(node.left)}", f"operands of {old} exchanged", 0.4
        )
    if not isinstance(node, cst.BaseExpression) or isinstance(node, cst.UnaryOperation):
        return
    if is_condition(site, node):
        yield site.put(node, f"not {_group(site, node)}", "condition negated", 0.7)
    elif site.is_used(node) and isinstance(site.parent(node), cst.BinaryOperation):
        yield site.put(node, f"-{site.atom(node)}", "sign changed", 0.2)


def is_condition(site: EditSite, node: cst.BaseExpression) -> bool:
    """Return whether *node* is a condition: the test of a statement or expression, or an operand of `and` and `or`."""
    match site.parent(node):
        case cst.If() | cst.While() | cst.IfExp() | cst.CompIf() | cst.Assert() as parent:
            return parent.test is node
        case cst.BooleanOperation():
            return True
        case _:
            return False


def _group(site: EditSite, node: cst.BaseExpression) -> str:
    """Return *node* as the operand of `not`, which binds looser than everything but `and`, `or` and conditionals."""
    text = site.text(node)
    return f"({text})" if isinstance(node, cst.BooleanOperation | cst.IfExp | cst.Lambda | cst.NamedExpr) else text
