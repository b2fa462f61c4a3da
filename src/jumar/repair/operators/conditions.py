"""Mutation operators on conditions: stricter, looser or another one, from the names in scope."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import libcst as cst

from jumar.repair.operators.expressions import is_condition
from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

Clause = tuple[str, float]
"""A condition and how likely it is the one that is missing, 0 to 1."""

_WIDE = 8
"""Names up to which every pair is compared."""


def list_clauses(site: EditSite, node: cst.CSTNode) -> Iterator[Clause]:
    """Yield changes: conditions that can be asked at *node*, the plain ones first."""
    names = site.locals(node)
    for name in names:
        yield from ((name, 1.0), (f"not {name}", 1.0), (f"{name} is None", 0.95), (f"{name} is not None", 0.95))
    for text in site.seen:
        if _is_comparison(text):
            yield text, 0.8
            yield f"not {text}" if " " not in text else f"not ({text})", 0.6
        elif text.count(".") == 1 and text.replace(".", "").replace("_", "").isalnum() and not text[0].isdigit():
            yield from ((text, 0.7), (f"not {text}", 0.7), (f"{text} is None", 0.7))
    for name in names:
        yield from ((f"{name} == 0", 0.6), (f"{name} > 0", 0.6), (f"{name} < 0", 0.55), (f"{name} == 1", 0.5))
        yield from ((f"len({name}) == 1", 0.5), (f"len({name}) > 1", 0.5), (f"{name} != 0", 0.4))
        yield from ((f"{name} == ''", 0.4), (f"isinstance({name}, str)", 0.4), (f"isinstance({name}, int)", 0.3))
    for left, right in permutations(names[:_WIDE], 2):
        yield from ((f"{left} < {right}", 0.5), (f"{left} <= {right}", 0.5))
        if left < right:
            yield from ((f"{left} == {right}", 0.5), (f"{left} != {right}", 0.5))
        yield from ((f"{left} in {right}", 0.45), (f"{left} not in {right}", 0.45))


def _is_comparison(text: str) -> bool:
    short = len(text) <= 50  # noqa: PLR2004 - longer ones are whole algorithms
    return short and (any(f" {c} " in text for c in ("<", ">", "<=", ">=", "==", "!=", "in", "is"))
                      or text.startswith(("isinstance(", "hasattr(", "callable(")))  # fmt: skip


def strengthen_conditions(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a condition with a clause more, on either side, joined by `and` or `or`."""
    if not isinstance(node, cst.BaseExpression) or not is_condition(site, node):
        return
    if isinstance(site.parent(node), cst.BooleanOperation):
        return
    text = f"({site.text(node)})" if isinstance(node, cst.BooleanOperation | cst.IfExp) else site.text(node)
    if text in ("True", "False"):
        return
    for clause, likely in list_clauses(site, node):
        if clause != text:
            for joint in ("or", "and"):
                yield site.put(node, f"{text} {joint} {clause}", f"{joint} {clause} added", 0.45 * likely)
                yield site.put(node, f"{clause} {joint} {text}", f"{joint} {clause} added in front", 0.42 * likely)


def replace_conditions(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a condition to another one."""
    if isinstance(node, cst.BaseExpression) and is_condition(site, node):
        for clause, likely in list_clauses(site, node):
            if clause != site.text(node):
                yield site.put(node, clause, f"condition to {clause}", 0.4 * likely)


def change_filters(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a comprehension with its condition dropped, or with one more."""
    if not isinstance(node, cst.CompFor):
        return
    for condition in node.ifs:
        start, end = site.span(condition)
        yield TextEdit(start, end, "", "condition of the comprehension dropped", 0.5, site.line(condition))
    if not node.ifs:
        _, end = site.span(node)
        target = site.text(node.target)
        asked = (c for c in list_clauses(site, node) if target in c[0])
        for clause, likely in [(target, 1.0), (f"{target} is not None", 0.9), *asked]:
            yield TextEdit(
                end, end, f" if {clause}", "condition of the comprehension added", 0.3 * likely, site.line(node)
            )
