"""Mutation operators on names: another name, attribute or expression used nearby."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("any", "all"),
    ("min", "max"),
    ("sum", "len", "max", "min"),
    ("sorted", "reversed", "list", "tuple", "set", "frozenset"),
    ("int", "float", "round", "str"),
    ("str", "repr"),
    ("floor", "ceil", "trunc"),
    ("append", "extend", "add", "insert", "remove", "appendleft"),
    ("add", "update", "discard", "remove"),
    ("pop", "popleft", "remove"),
    ("startswith", "endswith"),
    ("strip", "lstrip", "rstrip"),
    ("removeprefix", "removesuffix", "lstrip", "rstrip", "strip"),
    ("upper", "lower", "title", "capitalize", "casefold"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "partition", "rpartition", "splitlines"),
    ("partition", "rpartition"),
    ("ljust", "rjust", "center", "zfill"),
    ("match", "search", "fullmatch", "findall"),
    ("group", "groups"),
    ("items", "keys", "values"),
    ("get", "pop", "setdefault"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"),
    ("isdigit", "isdecimal", "isnumeric", "isalnum", "isalpha"),
    ("days", "seconds", "microseconds", "total_seconds"),
    ("year", "month", "day"),
    ("isinstance", "issubclass"),
    ("sort", "reverse"),
    ("copy", "deepcopy"),
    ("read", "readline", "readlines"),
    ("chain", "product", "zip", "zip_longest"),
)
"""Functions and methods of the language and its library that are mistaken for one another."""


def _list_siblings(name: str) -> tuple[str, ...]:
    found = [sibling for family in _FAMILIES if name in family for sibling in family]
    return tuple(s for s in dict.fromkeys(found) if s != name)


def change_variables(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a name to another name that is bound there."""
    if not isinstance(node, cst.Name) or not site.is_used(node):
        return
    old = node.value
    if isinstance(site.parent(node), cst.Call):
        others = [(_list_siblings(old), 0.7), (site.scope.callables, 0.2)]
    else:
        others = [(site.locals(node), 0.75), (site.scope.variables if old in site.scope.variables else (), 0.3)]
    for names, prior in others:
        for name in names:
            if name != old:
                yield site.edit(node, name, f"{old} to {name}", prior)


def change_attributes(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: an attribute to one that is used nearby, or to one it is mistaken for."""
    if not isinstance(node, cst.Attribute):
        return
    old = node.attr.value
    for sibling in _list_siblings(old):
        yield site.edit(node.attr, sibling, f".{old} to .{sibling}", 0.6)
    for name in site.scope.attributes:
        if name != old:
            yield site.edit(node.attr, name, f".{old} to .{name}", 0.5)
    if site.is_used(node) and not isinstance(site.parent(node), cst.Call):
        yield site.put(node, site.text(node.value), f".{old} dropped", 0.3)


def take_members(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a name to an attribute of it, as seen elsewhere in the unit."""
    if not isinstance(node, cst.Name) or not site.is_used(node) or isinstance(site.parent(node), cst.Call):
        return
    parent = site.parent(node)
    if not (isinstance(parent, cst.Attribute) and parent.value is node):
        for name in site.scope.attributes:
            yield site.put(node, f"{node.value}.{name}", f".{name} added", 0.2)


def reuse_expressions(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: an expression to another one that the unit already has."""
    if not isinstance(node, cst.BaseExpression) or isinstance(node, cst.Name | cst.Tuple):
        return
    if isinstance(site.parent(node), cst.Expr | cst.Attribute | cst.Decorator):
        return
    target = isinstance(site.parent(node), cst.AssignTarget) and isinstance(node, cst.Subscript | cst.Attribute)
    if not (site.is_used(node) or target):
        return
    text, names = site.text(node), site.locals(node)
    candidates = names if target else (*names, *site.seen)
    for other in dict.fromkeys(candidates if not target else (*site.seen, *names)):
        if other != text and len(other) <= 40 and not (target and not _is_assignable(other)):  # noqa: PLR2004 - short
            yield site.put(node, other, f"{_is_short(text)} to {_is_short(other)}", 0.35 if other in names else 0.3)


def _is_assignable(text: str) -> bool:
    return text.isidentifier() or (text.endswith("]") and not text.startswith("[") and ":" not in text)


def _is_short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:27]}..."  # noqa: PLR2004 - fits in a sentence


def change_elements(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: the members of an index or a tuple exchanged or dropped."""
    if isinstance(node, cst.Subscript) and len(node.slice) > 1:
        yield from _exchange_parts(site, [e.slice for e in node.slice], 0.8)
    elif isinstance(node, cst.Tuple) and len(node.elements) > 1:
        yield from _exchange_parts(site, [e.value for e in node.elements], 0.5)


def _exchange_parts(site: EditSite, parts: list[cst.CSTNode], prior: float) -> Iterator[TextEdit]:
    for i, left in enumerate(parts):
        for right in parts[i + 1 :]:
            if site.text(left) != site.text(right):
                (start, mid), (after, end) = site.span(left), site.span(right)
                text = site.text(right) + site.snippet[mid:after] + site.text(left)
                yield TextEdit(start, end, text, "members exchanged", prior, site.line(left))
