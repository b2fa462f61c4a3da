"""Finds the tests in a JavaScript or TypeScript file by its syntax tree: it need not even be importable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jumar.languages import grammars, syntax
from jumar.ports import Site

if TYPE_CHECKING:
    from tree_sitter import Node

SUITES = frozenset(["describe", "fdescribe", "xdescribe", "suite"])
TESTS = frozenset(["test", "it", "fit", "xit", "xtest"])
MODIFIERS = frozenset({
    "only", "skip", "todo", "fails", "failing", "concurrent", "sequential", "shuffle", "each", "for", "skipIf", "runIf",
})  # fmt: skip
"""Names allowed between the test function and its call: `test.skip.each(table)(name, body)`."""

SEPARATOR = " > "

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


def find_sites(path: str, source: bytes) -> tuple[Site, ...]:
    """Return the tests in *source*, each name once; none if *path* is of another language.

    What is only known at run time stays in a name as it is written: the placeholders of `each`, `${...}` of a template,
    and `${expression}` for any other expression.
    """
    language = syntax.find_language(path)
    if language not in ("javascript", "typescript", "tsx"):
        return ()
    from tree_sitter import Parser  # noqa: PLC0415  a run in Python alone does not load the grammars

    root = Parser(grammars.load_language(language)).parse(source).root_node
    found: dict[str, Site] = {}
    for names, node in _list_tests(root):
        test_id = f"{path}::{SEPARATOR.join(names)}"
        found.setdefault(test_id, Site(test_id, node.start_point[0] + 1, node.end_point[0] + 1))
    return tuple(found.values())


def _list_tests(root: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the names of each test below *root*, those of its suites first, and its call; in the order of the file."""
    todo: list[tuple[tuple[str, ...], Node]] = [((), root)]
    while todo:
        names, node = todo.pop()
        word = _get_word(node)
        title = _get_title(node) if word else None
        if word in TESTS and title is not None:
            yield (*names, title), node
            continue
        if word in SUITES and title is not None:
            names = (*names, title)
        todo += [(names, child) for child in reversed(node.named_children)]


def _get_word(node: Node) -> str:
    """Return the test word that *node* calls, with nothing but modifiers in between; empty if it calls none."""
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    while callee is not None:
        if callee.type == "identifier":
            word = _get_text(callee)
            return word if word in SUITES | TESTS else ""
        if callee.type == "member_expression":
            member = callee.child_by_field_name("property")
            if member is None or _get_text(member) not in MODIFIERS:
                return ""
            callee = callee.child_by_field_name("object")
        else:
            callee = callee.child_by_field_name("function") if callee.type == "call_expression" else None
    return ""


def _get_title(node: Node) -> str | None:
    """Return the text of a call's first argument; None if it is a table (`each`) or a condition (`skipIf`)."""
    callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    last = callee.child_by_field_name("property") if callee is not None and callee.type == "member_expression" else None
    if last is not None and _get_text(last) in ("each", "for", "skipIf", "runIf"):
        return None
    if arguments is None or arguments.type != "arguments":
        return None
    first = next((child for child in arguments.named_children if child.type != "comment"), None)
    return None if first is None else _get_literal(first)


def _get_literal(node: Node) -> str:
    """Return the text of an expression, as far as it is literal."""
    if node.type == "string":
        return "".join(_unescape(child) for child in node.named_children)
    if node.type == "template_string":
        return "".join(_unescape(child) for child in node.named_children)
    if node.type == "binary_expression" and any(child.type == "+" for child in node.children):
        return "".join(_get_literal(child) for child in node.named_children)
    if node.type == "parenthesized_expression" and node.named_children:
        return _get_literal(node.named_children[0])
    return "${" + _get_text(node) + "}"


def _unescape(node: Node) -> str:
    text = _get_text(node)
    if node.type != "escape_sequence":
        return text
    rest = text[1:]
    if rest[:1] in ("u", "x") and len(rest) > 1:
        point = int(rest[1:].strip("{}"), 16)
        return chr(point) if point < 0x110000 else text  # noqa: PLR2004  where Unicode ends
    return ESCAPES.get(rest, rest)


def _get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
