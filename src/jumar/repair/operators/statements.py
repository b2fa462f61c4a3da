"""Mutation operators on statements: deleted, exchanged, moved, changed, or copied from elsewhere in the unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from jumar.repair.source.blocks import (
    StatementLines,
    dedent_text,
    find_line,
    find_siblings,
    indent_text,
    insert_text,
    iter_statements,
    replace_line,
)
from jumar.repair.source.edit_site import EditSite
from jumar.repair.source.spans import TextEdit

_INDENT = "    "
_BARE = ("break", "continue", "return", "pass")
_KEYWORDS: dict[str, tuple[tuple[str, float], ...]] = {
    "if": (("while", 0.5),),
    "while": (("if", 0.4),),
    "return": (("yield", 0.4), ("", 0.4), ("raise", 0.1)),
    "yield": (("yield from", 0.6), ("yield", 0.6), ("return", 0.4)),
    "raise": (("return", 0.3),),
}
_VALUES = (("return", 0.5), ("yield", 0.25), ("yield from", 0.25), ("await", 0.2))


def delete_statements(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a statement dropped, or a compound one replaced by its body."""
    yield replace_line(line, "pass", "statement dropped", 0.5)
    if isinstance(line.node, cst.If | cst.For | cst.While | cst.With | cst.Try) and (body := _get_body(site, line)):
        yield replace_line(line, body, "statement replaced by its body", 0.4)
    if isinstance(line.node, cst.If) and line.node.orelse is not None:
        yield from _keep_branches(site, line, line.node)


def _keep_branches(site: EditSite, line: StatementLines, node: cst.If) -> Iterator[TextEdit]:
    if isinstance(node.orelse, cst.If):
        start, _ = site.span(node.orelse)
        keyword = site.snippet.find("elif", line.start, start + 4)
        if keyword == start:
            yield TextEdit(start, start + 4, "if", "elif to if", 0.4, site.line(node.orelse))
    elif node.orelse is not None and isinstance(node.orelse.body, cst.IndentedBlock):
        start, end = site.span(node.orelse)
        rows = dedent_text(site.snippet[start:end].partition("\n")[2], line.indent + _INDENT)
        last = site.line_offset(site.lines(node.orelse)[0])
        yield TextEdit(
            last, line.end, f"{indent_text(rows, line.indent)}\n", "else dropped, its body kept", 0.4, line.number
        )


def _get_body(site: EditSite, line: StatementLines) -> str:
    """Return the text of the body of a compound statement, without its indentation."""
    node = line.node
    if not isinstance(node, cst.If | cst.For | cst.While | cst.With | cst.Try) or not isinstance(
        node.body, cst.IndentedBlock
    ):
        return ""
    first, last = site.lines(node.body)
    rows = site.snippet[site.line_offset(first) : site.span(node.body)[1]]
    indent = rows[: len(rows) - len(rows.lstrip())]
    return dedent_text(rows, indent) if last >= first else ""


def move_statements(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a statement exchanged with the next one, or moved into or out of a block beside it."""
    _, after = find_siblings(site, line)
    if after is not None and after.start == line.end:
        text = after.text + line.text
        yield TextEdit(line.start, after.end, text, "statements exchanged", 0.55, line.number)
    if after is not None and (inner := _find_ends(site, after)):
        first, last, indent = inner
        body = indent_text(line.body, indent) + "\n"
        between, rest = site.snippet[line.end : first], site.snippet[first:last]
        yield TextEdit(
            line.start, last, between + body + rest, "statement moved into the next block", 0.35, line.number
        )
    block = site.parent(line.node)
    owner = find_line(site, site.parent(block))
    if owner is not None and isinstance(owner.node, cst.For | cst.While | cst.If | cst.With):
        body = dedent_text(line.body, line.indent)
        rest = site.snippet[line.end : owner.end]
        yield TextEdit(
            line.start, owner.end, f"{rest}{indent_text(body, owner.indent)}\n",
            "statement moved behind its block", 0.4, line.number,
        )  # fmt: skip
        front = site.snippet[owner.start : line.start]
        yield TextEdit(
            owner.start, line.end, f"{indent_text(body, owner.indent)}\n{front}",
            "statement moved before its block", 0.3, line.number,
        )  # fmt: skip
    yield from _move_into_previous(site, line)


def _move_into_previous(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    before, _ = find_siblings(site, line)
    if before is not None and before.end == line.start and (inner := _find_ends(site, before)):
        text = indent_text(dedent_text(line.body, line.indent), inner[2]) + "\n"
        yield TextEdit(line.start, line.end, text, "statement moved into the block before", 0.45, line.number)


def _find_ends(site: EditSite, line: StatementLines) -> tuple[int, int, str] | None:
    """Return the offsets of the start and the end of a block's body, and its indentation."""
    node = line.node
    if not isinstance(node, cst.For | cst.While | cst.If | cst.With) or not isinstance(node.body, cst.IndentedBlock):
        return None
    first = site.line_offset(site.lines(node.body)[0])
    start, _ = site.span(node.body.body[0])
    return first, line.end, site.snippet[first:start]


def change_keywords(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:  # noqa: ARG001  # an operator's signature
    """Yield changes: the keyword that a statement begins with to a related one."""
    head, rest = _split_body(line.body)
    if head in _BARE and not rest:
        for new in _BARE:
            if new != head:
                yield replace_line(line, new, f"{head} to {new}", 0.5)
    elif head == "if" and ("\nelse" in line.body or "elif" in line.body):
        return
    elif head in _KEYWORDS:
        for new, prior in _KEYWORDS[head]:
            yield replace_line(
                line, f"{new} {rest.removeprefix('from ')}".strip(), f"{head} to {new or 'nothing'}", prior
            )
    elif _is_value(line.node):
        for new, prior in _VALUES:
            yield replace_line(line, f"{new} {line.body}", f"{new} added", prior)


def find_returns(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a returned value assigned to a name or a constant."""
    if not isinstance(line.node, cst.SimpleStatementLine) or not isinstance(line.node.body[0], cst.Return):
        return
    value = line.node.body[0].value
    for name in (*site.locals(line.node), "None", "[]", "0", "True", "False", "''"):
        if value is None or site.text(value) != name:
            yield replace_line(line, f"return {name}", f"return of {name}", 0.35)


def _split_body(body: str) -> tuple[str, str]:
    match = re.match(r"(\w+)\b ?(.*)", body, re.DOTALL)
    return (match[1], match[2]) if match else ("", body)


def _is_value(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Expr)


def copy_statements(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes that copy a statement to another place.

    Another simple statement of the unit put before or after *line*, as it is or with one name replaced.
    """
    names = site.locals(line.node)
    for other in iter_statements(site):
        simple = isinstance(other.node, cst.SimpleStatementLine) and "\n" not in other.body
        if not simple or len(other.body) > 80:  # noqa: PLR2004 - a line's length
            continue
        if other.node is not line.node:
            yield from _insert_around(line, other.body, "statement copied", 0.35)
        if other.body.startswith(("return", "import", "from", "global")):
            continue
        used = dict.fromkeys(re.findall(r"(?<![.\w])[A-Za-z_]\w*", other.body))
        for old in (n for n in used if n in names):
            for new in names:
                if new != old:
                    text = re.sub(rf"(?<![.\w]){old}\b", new, other.body)
                    yield from _insert_around(line, text, f"statement copied with {new} for {old}", 0.28)


def _insert_around(line: StatementLines, text: str, operator: str, prior: float) -> Iterator[TextEdit]:
    yield insert_text(line, text, operator, prior)
    if not line.body.startswith(("return", "raise", "break", "continue")):
        yield insert_text(line, text, operator, prior, after=True)


def assign_names(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a plain assignment among local names, put before or after *line*."""
    names = site.locals(line.node)
    for left in names:
        if f"{left} =" in site.snippet or f"{left}," in site.snippet:
            for right in names:
                if left != right:
                    yield from _insert_around(line, f"{left} = {right}", "assignment added", 0.3)
            for form in (f"{left} += 1", f"{left} -= 1"):
                yield from _insert_around(line, form, "count added", 0.25)
            for value in ("None", "0", "[]", "''", "False", "True"):
                yield from _insert_around(line, f"{left} = {value}", "assignment added", 0.15)


def collect_names(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a local name put into a local collection, before or after *line*."""
    names = site.locals(line.node)
    for owner in names:
        if _is_collecting(site.snippet, owner):
            for item in names:
                if item != owner:
                    for method in ("append", "add"):
                        yield from _insert_around(line, f"{owner}.{method}({item})", "collection added", 0.3)
            for method in ("pop()", "sort()", "clear()"):
                yield from _insert_around(line, f"{owner}.{method}", "collection changed", 0.1)


def _is_collecting(snippet: str, name: str) -> bool:
    return any(mark in snippet for mark in (f"in {name}", f"{name}.", f"{name} = [", f"{name} = set", f"{name} = {{"))


def end_with_return(site: EditSite, line: StatementLines) -> Iterator[TextEdit]:
    """Yield changes: a return at the end of the function."""
    block = site.parent(line.node)
    if not isinstance(block, cst.IndentedBlock) or block.body[-1] is not line.node:
        return
    if isinstance(site.parent(block), cst.FunctionDef):
        returned = [t.value for t in site.nodes if isinstance(t, cst.Return) and t.value is not None]
        values = dict.fromkeys((*site.locals(line.node), *(site.text(v) for v in returned), "None", "True", "False"))
        for value in values:
            yield insert_text(line, f"return {value}", "return added at the end", 0.4, after=True)
