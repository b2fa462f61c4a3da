"""Finds commands that the grammar leaves in plain text and a shell runs: backticks in here-documents, in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "heredoc_content"})
"""Nodes in which a shell expands nothing; the content of a here-document is read with the whole of it."""

_START = re.compile(r"\\.|`((?:\\.|[^`\\])*)`|\$\(", re.DOTALL)


def list_unparsed(node: Node) -> list[str]:
    """Return the texts of the substitutions in the text of *node* itself, outside of all nodes below it."""
    if node.type == "command_substitution":
        said = _decode(node.text)
        return [_unescape(said[1:-1])] if said[:1] == "`" and "\\`" in said else []
    own = not node.named_children or node.type in ("heredoc_body", "ERROR")
    if not own or node.type in _LITERAL or _is_quoted(node) or _is_in_error(node):
        return []
    return _list_substitutions(_get_own_text(node))


def _list_substitutions(text: str) -> list[str]:
    found, at = list[str](), 0
    while (start := _START.search(text, at)) is not None:
        at = start.end()
        if start[1]:
            found.append(_unescape(start[1]))
        elif start[0] == "$(":
            at = _find_end(text, at)
            found.append(text[start.end() : at])
    return [inner for inner in found if inner.strip()]


def _find_end(text: str, at: int) -> int:
    """Return where the parenthesis that is open before *at* is closed: the end of *text* if it is not."""
    depth = 1
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)


def _get_own_text(node: Node) -> str:
    """Return the text of *node*, with a blank in the place of each node below it that was parsed for what it is."""
    whole, at = node.text or b"", node.start_byte
    parts = []
    for parsed in _list_parsed(node):
        parts.append(whole[at - node.start_byte : parsed.start_byte - node.start_byte])
        at = parsed.end_byte
    return _decode(b" ".join((*parts, whole[at - node.start_byte :])))


def _list_parsed(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in _LITERAL - {"heredoc_content"} or child.type.endswith("_substitution"):
            yield child
        else:
            yield from _list_parsed(child)


def _is_in_error(node: Node) -> bool:
    """Check whether *node* lies in what cannot be parsed, all of which is looked at as one text."""
    above = node.parent
    while above is not None and above.type != "ERROR":
        above = above.parent
    return above is not None


def _is_quoted(node: Node) -> bool:
    """Check whether *node* is a here-document of which a shell expands nothing: its end is quoted."""
    if node.type != "heredoc_body" or node.parent is None:
        return False
    starts = [_decode(child.text) for child in node.parent.named_children if child.type == "heredoc_start"]
    return any(set(start) & set("'\"\\") for start in starts)


def _unescape(text: str) -> str:
    return re.sub(r"\\([`\\$])", r"\1", text)


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
