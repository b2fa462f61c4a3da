"""Mutation operators for forgotten cases: a statement made conditional, an early return, a caught exception."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.operators.conditions import list_clauses
from jumar.repair.source.blocks import StatementLines, indent_text, insert_text, replace_line
from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_EXCEPTIONS = ("ValueError", "KeyError", "IndexError", "TypeError", "AttributeError", "ZeroDivisionError",
               "OverflowError", "StopIteration", "UnicodeError", "OSError", "Exception")  # fmt: skip
_INDENT = "    "


def make_conditional(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a statement executed only under a condition."""
    if isinstance(line.node, cst.If | cst.FunctionDef) or "\n" in line.body.strip():
        return
    body = indent_text(line.body, _INDENT)
    for clause, likely in list_clauses(site, line.node):
        yield replace_line(line, f"if {clause}:\n{body}", f"done only if {clause}", 0.42 * likely)


def return_early(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: an exit before *line*: a return, and in loops `continue` and `break`."""
    exits = [(f"return {value}", likely) for value, likely in _list_returned(site, line)]
    if _is_in_loop(site, line.node):
        exits = [("continue", 1.0), ("break", 0.9), *exits]
    for clause, likely in list_clauses(site, line.node):
        for exit_, fit in exits:
            yield insert_text(line, f"if {clause}:\n{_INDENT}{exit_}", f"{exit_} if {clause}", 0.4 * likely * fit)


def _list_returned(site: EditSite, line: StatementLines) -> Iterator[tuple[str, float]]:
    """Yield values that the function could return, most likely first."""
    values = [n.value for n in site.nodes if isinstance(n, cst.Return) and n.value is not None]
    texts = dict.fromkeys(t for t in map(site.text, values) if len(t) <= 20)  # noqa: PLR2004 - short
    for text in texts:
        yield text, 0.8
    for text in ("None", *site.locals(line.node), "[]", "0", "False", "True", "''", "-1"):
        if text not in texts:
            yield text, 0.9 if text == "None" else 0.5


def _is_in_loop(site: EditSite, node: cst.CSTNode) -> bool:
    """Return whether *node* stands in a loop of its own function."""
    parent = site.parent(node)
    while not isinstance(parent, cst.FunctionDef | cst.Module | cst.ClassDef):
        if isinstance(parent, cst.For | cst.While):
            return True
        parent = site.parent(parent)
    return False


def catch_exceptions(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: an exception of the statement caught and ignored, or answered by leaving."""
    if isinstance(line.node, cst.Try) or "\n" in line.body.strip():
        return
    ways = ["pass", "return None", *(f"return {v}" for v, fit in _list_returned(site, line) if fit > 0.5)]  # noqa: PLR2004
    if _is_in_loop(site, line.node):
        ways = ["pass", "continue", "break", *ways[1:]]
    body = indent_text(line.body, _INDENT)
    for exception in _EXCEPTIONS:
        for way in dict.fromkeys(ways):
            text = f"try:\n{body}\nexcept {exception}:\n{_INDENT}{way}"
            yield replace_line(line, text, f"{exception} caught", 0.25 if way == "pass" else 0.2)


def change_handlers(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: the exceptions of a handler or a raise to others, or more of them."""
    if isinstance(node, cst.ExceptHandler) and node.type is not None:
        old = site.text(node.type)
        known = [site.text(e).strip("()") for e in [node.type]]
        for new in _EXCEPTIONS:
            if new not in old:
                yield site.edit(node.type, new, f"catches {new}", 0.4)
                yield site.put(node.type, f"({', '.join([*known, new])})", f"catches {new} too", 0.5)
    elif isinstance(node, cst.Raise) and isinstance(node.exc, cst.Call | cst.Name):
        function = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        for new in _EXCEPTIONS:
            if new != site.text(function):
                yield site.edit(function, new, f"raises {new}", 0.45)
