"""Mutation operators on constants: truth values, None, empty and singleton containers, strings of the unit."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.operators.patterns import rewrite_pattern
from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_SINGLES: dict[str, tuple[str, ...]] = {
    "True": ("False", "None"),
    "False": ("True", "None"),
    "None": ("''", "0", "[]", "False", "True", "{}"),
}

_EMPTY = ("None", "[0]", "[None]", "[1]", "{}", "()", "''")


def change_singletons(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: true, False and None to one another, or to a name or a condition of the place."""
    if not isinstance(node, cst.Name) or node.value not in _SINGLES or not site.is_used(node):
        return
    for i, new in enumerate(_SINGLES[node.value]):
        yield site.put(node, new, f"{node.value} to {new}", 0.8 if i == 0 else 0.4)
    conditions = [s for s in site.seen if any(f" {c} " in s for c in ("<", ">", "<=", ">=", "==", "!=", "in", "is"))]
    for name in site.locals(node):
        if node.value != "None":
            for form in ("{} == 0", "not {}", "len({}) == 0", "bool({})", "{} > 0", "{} is None", "{} is not None"):
                yield site.put(node, form.format(name), f"{node.value} to a condition", 0.35)
    for condition in conditions:
        if len(condition) <= 60:  # noqa: PLR2004 - longer ones are whole algorithms
            yield site.put(node, condition, f"{node.value} to a condition", 0.3)


def change_containers(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a literal container emptied, nested in itself, or with one member more or less."""
    if not isinstance(node, cst.List | cst.Tuple) or not site.is_used(node):
        return
    items = [site.text(e) for e in node.elements]
    if isinstance(node, cst.List):
        yield from _change_list(site, node, items)
    elif len(items) == 1:
        yield site.put(node, items[0], "tuple of one to its member", 0.4)
    elif len(items) > 2:  # noqa: PLR2004  # a pair stays a pair
        for i, item in enumerate(items):
            rest = ", ".join(items[:i] + items[i + 1 :])
            yield site.edit(node, f"({rest})", f"{item} dropped from the tuple", 0.3)


def _change_list(site: EditSite, node: cst.List, items: list[str]) -> Iterator[TextEdit]:
    yield site.put(node, f"[{site.text(node)}]", "list nested", 0.25 if items else 0.5)
    for name in site.locals(node):
        if name not in items:
            yield site.put(node, f"[{', '.join([*items, name])}]", f"{name} added to the list", 0.4)
            yield site.put(node, f"[{', '.join([name, *items])}]", f"{name} added to the list", 0.3)
    for i, item in enumerate(items):
        rest = ", ".join(items[:i] + items[i + 1 :])
        yield site.put(node, f"[{rest}]", f"{item} dropped from the list", 0.4)
    for new in ("[]",) if items else _EMPTY:
        yield site.put(node, new, f"list to {new}", 0.4 if items else 0.3)


def change_strings(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a string to another one of the unit, to nothing, or with one character changed.

    Patterns by their grammar.
    """
    if not isinstance(node, cst.SimpleString) or not site.is_used(node):
        return
    body = node.raw_value
    head, tail = node.prefix + node.quote, node.quote
    raw = "r" in node.prefix.lower()
    grammar = raw or _is_pattern(site, node)
    for new, what, prior in rewrite_pattern(body, raw=raw, pattern=grammar):
        yield site.edit(node, f"{head}{new}{tail}", what, prior)
    if body:
        yield site.edit(node, f"{head}{tail}", "string emptied", 0.3)
    for other in site.seen:
        if other[-1:] in "\"'" and other != site.text(node) and other.lstrip("rbufRBUF")[:1] in ("'", '"'):
            yield site.edit(node, other, "string to another of the unit", 0.4)


def _is_pattern(site: EditSite, node: cst.SimpleString) -> bool:
    argument = site.parent(node)
    call = site.parent(argument)
    return isinstance(call, cst.Call) and site.text(call.func).startswith(("re.", "regex."))
