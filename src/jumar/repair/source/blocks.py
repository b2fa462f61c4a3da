"""Statements as whole lines: finds their spans and indentation, and inserts one beside another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit


@dataclass(frozen=True, slots=True)
class StatementLines:
    """A statement that shares its lines with no other."""

    node: cst.CSTNode
    start: int
    """Offset of the start of its first line."""
    end: int
    """Offset after the end of its last line, line ending included."""
    indent: str
    text: str
    """All of its lines, line ending included."""
    number: int

    @property
    def body(self) -> str:
        """The statement without its first indentation and its last line ending."""
        return self.text.strip("\r\n")[len(self.indent) :]


def find_line(site: EditSite, node: cst.CSTNode) -> StatementLines | None:
    """Return *node* as lines, or None if it shares one (`if x: return`) or continues another statement (`elif`)."""
    if not isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
        return None
    if isinstance(node, cst.FunctionDef | cst.ClassDef) or isinstance(site.parent(node), cst.If):
        return None
    first, last = site.lines(node)
    start, end = site.line_offset(first), site.line_offset(min(last + 1, site.snippet.count("\n") + 1))
    head, _ = site.span(node)
    indent = site.snippet[start:head]
    if indent.strip():
        return None
    text = site.snippet[start:end]
    return StatementLines(node, start, end, indent, text if text.endswith("\n") else f"{text}\n", first)


def iter_statements(site: EditSite) -> Iterator[StatementLines]:
    """Yield every statement inside functions that has its lines to itself, in order."""
    for node in site.nodes:
        if isinstance(node, cst.IndentedBlock):
            for inner in node.body:
                line = find_line(site, inner)
                if line is not None and not is_docstring(line.node):
                    yield line


def is_docstring(node: cst.CSTNode) -> bool:
    """Return whether *node* is a string that is a statement of its own."""
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.Expr):
        return False
    return isinstance(node.body[0].value, cst.SimpleString | cst.ConcatenatedString)


def insert_text(line: StatementLines, text: str, operator: str, prior: float, *, after: bool = False) -> TextEdit:
    """Return an edit that puts *text*, one unindented statement, on its own line before or *after* *line*."""
    place = line.end if after else line.start
    return TextEdit(place, place, f"{indent_text(text, line.indent)}\n", operator, prior, line.number)


def replace_line(line: StatementLines, text: str, operator: str, prior: float) -> TextEdit:
    """Return an edit that puts *text* in place of *line*."""
    return TextEdit(line.start, line.end, f"{indent_text(text, line.indent)}\n", operator, prior, line.number)


def indent_text(text: str, indent: str) -> str:
    """Return *text* with every line but empty ones moved in by *indent*."""
    return "\n".join(f"{indent}{row}" if row.strip() else row for row in text.split("\n"))


def dedent_text(text: str, indent: str) -> str:
    """Return *text* with *indent* taken off every line that has it."""
    return "\n".join(row.removeprefix(indent) for row in text.split("\n"))


def find_siblings(site: EditSite, line: StatementLines) -> tuple[StatementLines | None, StatementLines | None]:
    """Return the statements before and after *line* in its own block."""
    block = site.parent(line.node)
    if not isinstance(block, cst.IndentedBlock):
        return None, None
    found = [find_line(site, node) for node in block.body]
    place = next(i for i, node in enumerate(block.body) if node is line.node)
    before = found[place - 1] if place else None
    after = found[place + 1] if place + 1 < len(found) else None
    return before, after
