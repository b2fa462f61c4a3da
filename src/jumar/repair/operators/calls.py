"""Mutation operators on calls: put around a value or taken away; arguments exchanged, dropped or added."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_WRAPPERS = ("list", "len", "str", "int", "abs", "set", "sorted", "reversed", "tuple", "sum", "max", "min", "float",
             "bool", "round", "iter", "repr", "any", "all", "next")  # fmt: skip
_METHODS = ("strip()", "lower()", "upper()", "copy()", "keys()", "values()", "items()", "split()", "encode()",
            "decode()", "rstrip()", "lstrip()", "read()", "group()", "total_seconds()")  # fmt: skip


def change_arguments(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: arguments exchanged, dropped, or one more from the names in scope."""
    if not isinstance(node, cst.Call):
        return
    plain = [a for a in node.args if a.keyword is None and not a.star]
    for i, left in enumerate(plain):
        for right in plain[i + 1 :]:
            if site.text(left.value) != site.text(right.value):
                yield _exchange(site, left, right)
    texts = [_get_argument(site, a) for a in node.args]
    function = site.text(node.func)
    for i in range(len(texts)):
        kept = ", ".join(texts[:i] + texts[i + 1 :])
        yield site.put(node, f"{function}({kept})", f"argument {texts[i]} dropped", 0.5)
    for name in (*site.locals(node), "1", "0", "None", "True", "False"):
        if len(texts) == len(plain) and name not in texts:
            yield site.put(node, f"{function}({', '.join([*texts, name])})", f"argument {name} added", 0.3)
            if texts:
                yield site.put(node, f"{function}({', '.join([name, *texts])})", f"argument {name} added", 0.2)


def _get_argument(site: EditSite, node: cst.Arg) -> str:
    star = node.star if isinstance(node.star, str) else ""
    keyword = f"{node.keyword.value}=" if node.keyword else ""
    return f"{star}{keyword}{site.text(node.value)}"


def _exchange(site: EditSite, left: cst.Arg, right: cst.Arg) -> TextEdit:
    (start, mid), (after, end) = site.span(left.value), site.span(right.value)
    text = site.text(right.value) + site.snippet[mid:after] + site.text(left.value)
    return TextEdit(start, end, text, "arguments exchanged", 0.8, site.line(left))


def unwrap_calls(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a call replaced by one of its arguments, or by the owner of its method."""
    if not isinstance(node, cst.Call) or not site.is_used(node):
        return
    for argument in node.args:
        if not argument.star:
            yield site.put(node, site.text(argument.value), f"call of {site.text(node.func)} dropped", 0.6)
    if isinstance(node.func, cst.Attribute):
        yield site.put(node, site.text(node.func.value), f"call of .{node.func.attr.value} dropped", 0.5)
    if not node.args and not isinstance(site.parent(node), cst.Expr):
        yield site.put(node, site.text(node.func), "call dropped", 0.3)


def wrap_values(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a value passed to a function first: one of the unit's, or one of the language's."""
    if not isinstance(node, cst.BaseExpression) or not site.is_used(node) or _is_fixed(site, node):
        return
    text = site.text(node)
    single = [s for s in site.seen if s.isidentifier() and f"{s}(" in site.snippet and s not in site.locals(node)]
    for function in dict.fromkeys((*single, *_WRAPPERS)):
        if not text.startswith(f"{function}("):
            yield site.put(node, f"{function}({text})", f"{function}() added", 0.35 if function in single else 0.3)
    if not isinstance(node, cst.SimpleString | cst.Integer):
        for method in _METHODS:
            yield site.put(node, f"{site.atom(node)}.{method}", f".{method} added", 0.12)
    if isinstance(node, cst.Name | cst.Attribute) and isinstance(site.parent(node), cst.Arg | cst.Assign | cst.Return):
        yield site.put(node, f"{text}()", "call added", 0.3)


def clamp_values(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a value bounded by another one."""
    if not isinstance(node, cst.BaseExpression) or not site.is_used(node):
        return
    parent = site.parent(node)
    if not isinstance(parent, cst.Assign | cst.Return | cst.Arg | cst.Slice | cst.Index | cst.BinaryOperation):
        return
    if isinstance(node, cst.SimpleString | cst.List | cst.Dict | cst.Tuple | cst.ConcatenatedString):
        return
    text = site.text(node)
    targets = [site.text(t.target) for t in parent.targets] if isinstance(parent, cst.Assign) else []
    for other in dict.fromkeys((*targets, "0", "1", *site.locals(node))):
        if other != text:
            for function in ("max", "min"):
                prior = 0.45 if other in targets else 0.3
                yield site.put(node, f"{function}({other}, {text})", f"{function} with {other}", prior)


def combine_values(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a value together with another one, by an operator."""
    if not isinstance(node, cst.Name | cst.Call | cst.Subscript | cst.Attribute | cst.ListComp | cst.List):
        return
    if not site.is_used(node) or _is_fixed(site, node):
        return
    text = site.atom(node)
    numbers = not isinstance(node, cst.ListComp | cst.List)
    for other in site.locals(node):
        near = 0.35 if isinstance(site.parent(node), cst.Arg | cst.Return | cst.Assign | cst.Index) else 0.25
        for operator in ("-", "+", "*", "//", "%", "/") if numbers else ("+",):
            prior = near if operator in "+-*" else 0.15
            yield site.put(node, f"{text} {operator} {other}", f"{operator} {other} added", prior)
        yield site.put(node, f"{other} + {text}", f"{other} + added", 0.25)
        if numbers:
            yield site.put(node, f"{other} - {text}", f"{other} - added", 0.15)
    if numbers:
        for form, prior in (("** 2", 0.25), (f"* {text}", 0.2), ("* 2", 0.2), ("// 2", 0.2), ("or 0", 0.1)):
            yield site.put(node, f"{text} {form}", f"{form} added", prior)
        for form in ("or ''", "or []", "or 1"):
            yield site.put(node, f"{text} {form}", f"{form} added", 0.1)


def _is_fixed(site: EditSite, node: cst.BaseExpression) -> bool:
    """Return whether *node* names a callee or an owner, for which no other value can be."""
    parent = site.parent(node)
    if isinstance(parent, cst.Call):
        return parent.func is node
    if isinstance(parent, cst.Attribute | cst.Subscript):
        return parent.value is node
    return isinstance(parent, cst.Expr | cst.Decorator | cst.Raise | cst.ExceptHandler | cst.Param)
