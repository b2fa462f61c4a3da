"""Parsed unit for editing: its concrete syntax tree, the position of each node, and the names it may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from jumar.repair.source.scope import Scope
from jumar.repair.source.spans import TextEdit
from jumar.repair.source.units import find_line_starts

Operator = Callable[["EditSite", cst.CSTNode], Iterator[TextEdit]]
"""Yields the changes one operator makes at one node."""

_STRING = re.compile(r"""(?s)(["'])(?:\\.|(?!\1).)*\1""")
_BRACKETS = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")

_TIGHT = (
    cst.BinaryOperation, cst.BooleanOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget,
    cst.Attribute, cst.Await, cst.StarredElement, cst.IfExp, cst.CompIf,
)  # fmt: skip
"""Parents in which a compound replacement needs parentheses of its own."""


class EditSite:
    """A unit's snippet, parsed. Offsets and lines are those of the snippet."""

    def __init__(self, snippet: str, scope: Scope) -> None:
        """Parse *snippet*; raises `libcst.ParserSyntaxError` if it is beyond the parser."""
        self.snippet = snippet
        self.scope = scope
        wrapper = MetadataWrapper(cst.parse_module(snippet), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        self._parents: Mapping[cst.CSTNode, cst.CSTNode] = wrapper.resolve(ParentNodeProvider)
        self._starts = find_line_starts(snippet)
        self.nodes = tuple(_walk(self.module))
        loads = _Loads(self)
        self.expressions = tuple(n for n in self.nodes if isinstance(n, cst.BaseExpression) and loads(n))
        """Expressions whose value is used: no targets, parameters, keywords, annotations or docstrings."""
        self._used = frozenset(map(id, self.expressions))
        self.seen = tuple(dict.fromkeys(self.text(n) for n in self.expressions))
        """The text of every such expression, in order of appearance."""

    def is_used(self, node: cst.CSTNode) -> bool:
        """Return whether *node* is an expression whose value is used."""
        return id(node) in self._used

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the offsets of *node* without its own parentheses."""
        place = self._positions[node]
        return (
            self._starts[place.start.line - 1] + place.start.column,
            self._starts[place.end.line - 1] + place.end.column,
        )

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the first and last line of *node*."""
        place = self._positions[node]
        return place.start.line, place.end.line

    def text(self, node: cst.CSTNode) -> str:
        """Return the source of *node* without parentheses of its own."""
        start, end = self.span(node)
        return self.snippet[start:end]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the node around *node*; the module is its own."""
        return self._parents.get(node, self.module)

    def line(self, node: cst.CSTNode) -> int:
        """Return the first line of *node*."""
        return self._positions[node].start.line

    def line_offset(self, line: int) -> int:
        """Return the offset of the start of *line*; one past the last line is the end of the text."""
        return self._starts[line - 1]

    def locals(self, node: cst.CSTNode) -> tuple[str, ...]:
        """Return the local names in scope at *node*."""
        return self.scope.locals(self.line(node))

    def edit(self, node: cst.CSTNode, text: str, operator: str, prior: float) -> TextEdit:
        """Put *text* in the place of *node*, word for word."""
        start, end = self.span(node)
        return TextEdit(start, end, text, operator, prior, self.line(node))

    def put(self, node: cst.BaseExpression, text: str, operator: str, prior: float) -> TextEdit:
        """Put the expression *text* in the place of *node*, in parentheses if its surroundings need them."""
        return self.edit(
            node, f"({text})" if self._needs_parentheses(node) and not _is_atomic(text) else text, operator, prior
        )

    def atom(self, node: cst.BaseExpression) -> str:
        """Return the text of *node* in a form that an operator may stand beside."""
        text = self.text(node)
        return text if _is_atomic(text) else f"({text})"

    def _needs_parentheses(self, node: cst.BaseExpression) -> bool:
        match self.parent(node):
            case cst.Subscript() | cst.Call() as parent:
                return not node.lpar and node in (getattr(parent, "value", None), getattr(parent, "func", None))
            case parent:
                return not node.lpar and isinstance(parent, _TIGHT)


def _is_atomic(text: str) -> bool:
    """Return whether *text* is one name, number, string, call, index or bracket, judged by its brackets alone."""
    outside = _STRING.sub("s", text)
    while (shorter := _BRACKETS.sub("", outside)) != outside:
        outside = shorter
    return outside.replace(".", "").replace("_", "").isalnum() or not outside


def _walk(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


class _Loads:
    """Predicate for expressions whose value is used, as opposed to those that only name something."""

    def __init__(self, site: EditSite) -> None:
        self._site = site

    def __call__(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.SimpleString) and isinstance(self._site.parent(node), cst.Expr):
            return False
        if isinstance(node, cst.FormattedStringExpression):
            return False
        inner: cst.CSTNode = node
        parent = self._site.parent(node)
        while not isinstance(parent, cst.BaseStatement | cst.BaseSmallStatement | cst.Module):
            if self._is_naming(parent, inner):
                return False
            if self._is_shielding(parent, inner):
                return True
            inner, parent = parent, self._site.parent(parent)
        return not self._is_naming(parent, inner)

    @staticmethod
    def _is_shielding(parent: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Check for an index or the owner of an attribute: even a target's parts are read there."""
        return (isinstance(parent, cst.Subscript)) or (isinstance(parent, cst.Attribute) and parent.value is inner)

    @staticmethod
    def _is_naming(parent: cst.CSTNode, inner: cst.CSTNode) -> bool:
        if isinstance(parent, _NAMING):
            return True
        field = next((field for kind, field in _NAMED if isinstance(parent, kind)), "")
        return bool(field) and getattr(parent, field) is inner


_NAMING = (
    cst.AssignTarget, cst.Annotation, cst.AsName, cst.NameItem, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal,
    cst.Del,
)  # fmt: skip
"""Node types whose descendants are named, not read."""

_NAMED = (
    ((cst.For, cst.CompFor, cst.AugAssign, cst.AnnAssign, cst.NamedExpr), "target"),
    ((cst.Param, cst.FunctionDef, cst.ClassDef), "name"),
    ((cst.Attribute,), "attr"),
    ((cst.Arg,), "keyword"),
)
"""Of these, one field is."""
