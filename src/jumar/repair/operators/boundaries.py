"""Changes by one, at the ends of things: numbers, indices, slices and ranges."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_NUMERIC_CALLS = frozenset({"range", "min", "max", "abs", "int", "round", "divmod", "pow", "enumerate"})
_SEQUENCE_CALLS = frozenset({"len", "sorted", "list", "tuple", "reversed", "set", "sum", "iter"})


def change_integers(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a number one up or down, or one of the numbers that programs begin and end with."""
    if not isinstance(node, cst.Integer) or not site.is_used(node):
        return
    try:
        value = int(node.value, 0)
    except ValueError:
        return
    for new, prior in ((value + 1, 0.8), (value - 1, 0.8), (0, 0.6), (1, 0.6), (-1, 0.5), (2, 0.4), (-value, 0.4)):
        if new != value:
            yield site.put(node, str(new), f"{value} to {new}", prior)
    for new in (value * 2, value * 10, value // 10, 10, 100):
        if new != value and value:
            yield site.put(node, str(new), f"{value} to {new}", 0.15)


def change_floats(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a fraction to its neighbours in use."""
    if isinstance(node, cst.Float) and site.is_used(node):
        for new in ("0.0", "1.0", "0.5", "2.0", str(int(float(node.value)))):
            if new != node.value:
                yield site.put(node, new, f"{node.value} to {new}", 0.4)


def shift_counts(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: an expression that counts, plus or minus one."""
    if not isinstance(node, cst.BaseExpression) or not site.is_used(node):
        return
    if not isinstance(node, cst.Name | cst.Call | cst.BinaryOperation | cst.Attribute | cst.Subscript):
        return
    prior = _estimate_count(site, node)
    if prior:
        for sign in ("+", "-"):
            text = site.text(node) if isinstance(node, cst.BinaryOperation) and _is_sum(node) else site.atom(node)
            yield site.put(node, f"{text} {sign} 1", f"{sign} 1", prior)


def _is_sum(node: cst.BinaryOperation) -> bool:
    return isinstance(node.operator, cst.Add | cst.Subtract | cst.Multiply | cst.Modulo | cst.Divide | cst.FloorDivide)


def _estimate_count(site: EditSite, node: cst.BaseExpression) -> float:
    """Return the likelihood that *node* is a number at whose end a bug can sit; 0 if it is none."""
    match site.parent(node):
        case cst.Index() | cst.Slice():
            return 0.8
        case cst.Arg() as argument:
            return _estimate_argument(site, argument)
        case cst.BinaryOperation():
            return 0.6
        case cst.Comparison() | cst.ComparisonTarget():
            return 0.5
        case cst.Assign() | cst.AugAssign() | cst.Return() | cst.Element():
            return 0.35
        case _:
            return 0.0


def _estimate_argument(site: EditSite, argument: cst.Arg) -> float:
    call = site.parent(argument)
    name = site.text(call.func) if isinstance(call, cst.Call) else ""
    return 0.0 if name in _SEQUENCE_CALLS else 0.8 if name in _NUMERIC_CALLS else 0.6


def change_slices(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: a slice with an end dropped, set or negated."""
    if not isinstance(node, cst.Slice):
        return
    lower = site.text(node.lower) if node.lower else ""
    upper = site.text(node.upper) if node.upper else ""
    step = f":{site.text(node.step)}" if node.step else ""
    forms: list[tuple[str, float]] = [(f":{upper}", 0.6), (f"{lower}:", 0.6), (f"{upper}:{lower}", 0.4)]
    if not lower:
        forms += [(f"{end}:{upper}", 0.5) for end in ("1", *site.locals(node))]
    if not upper:
        forms += [(f"{lower}:{end}", 0.5) for end in ("-1", *site.locals(node))]
    if not step:
        forms += [(f"{lower}:{upper}:-1", 0.4), (f"{lower}:{upper}:2", 0.2)]
    for form, prior in forms:
        yield site.edit(node, form + step, "slice", prior)
    if node.step:
        yield site.edit(node, f"{lower}:{upper}", "step of the slice dropped", 0.4)


def change_indices(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: an index or a slice put on a value, or taken off it."""
    if not isinstance(node, cst.BaseExpression) or not site.is_used(node):
        return
    if isinstance(node, cst.Subscript):
        yield site.put(node, site.text(node.value), "index dropped", 0.4)
    if not isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or not _is_indexable(site, node):
        return
    text, names = site.atom(node), site.locals(node)
    for form in ("[1:]", "[:-1]", "[::-1]"):
        yield site.put(node, text + form, "slice added", 0.35)
    for form in ("[0]", "[-1]", "[1]"):
        yield site.put(node, text + form, "index added", 0.3)
    if isinstance(node, cst.Name | cst.Attribute):
        for name in names:
            if name != text:
                yield site.put(node, f"{text}[{name}:]", "slice added", 0.3)
                yield site.put(node, f"{text}[:{name}]", "slice added", 0.3)
                yield site.put(node, f"{text}[{name}]", "index added", 0.25)


def _is_indexable(site: EditSite, node: cst.BaseExpression) -> bool:
    parent = site.parent(node)
    if isinstance(parent, cst.Call):
        return False
    if isinstance(parent, cst.Subscript | cst.Attribute):
        return parent.value is not node
    return True


def change_ranges(site: EditSite, node: cst.CSTNode) -> Iterator[TextEdit]:
    """Yield changes: `range` with a start of one or zero, reversed, or over a length."""
    if not isinstance(node, cst.Call) or site.text(node.func) != "range":
        return
    arguments = [site.text(a) for a in node.args]
    if len(arguments) == 1:
        yield site.edit(node, f"range(1, {arguments[0]})", "range from 1", 0.6)
        yield site.edit(node, f"range(1, {arguments[0]} + 1)", "range from 1 to the end", 0.6)
        yield site.edit(node, f"range(len({arguments[0]}))", "range over the length", 0.3)
    elif len(arguments) == 2:  # noqa: PLR2004 - range(start, stop)
        yield site.edit(node, f"range({arguments[1]})", "range from 0", 0.6)
        yield site.edit(node, f"range({arguments[0]} + 1, {arguments[1]} + 1)", "range moved by one", 0.5)
    yield site.edit(node, f"reversed({site.text(node)})", "range reversed", 0.3)
