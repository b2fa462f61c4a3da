"""Edits a source at the byte spans of its syntax tree; lines and formatting stay as they are."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple


class SourceEdit(NamedTuple):
    """Replacement of the bytes from *start* to *end* (of the UTF-8 form) by *text*."""

    start: int
    end: int
    text: str


Edits = tuple[SourceEdit, ...]
"""Edits that make one test false; empty if none were found."""


DrawEdits = Callable[[Random], Edits]
"""One way to make a test false, or stricter: draws its edits. Whether there are any does not depend on the draw."""


class ParsedSource:
    """The text of a Python file and its syntax tree.

    Raises:
        SyntaxError, ValueError: if it is no Python that this interpreter can parse; what ends a file too deeply nested
            (RecursionError, MemoryError) is for the caller too.
    """

    def __init__(self, data: bytes) -> None:
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(self.encoding)
        self.tree = parse_source(text)
        self._utf8 = text.encode()
        self._starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", self._utf8))]

    def get_span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return the start and end of *node*, in bytes of the UTF-8 form."""
        last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[last - 1] + column

    def get_text(self, start: int, end: int) -> str:
        """Return the source between two positions."""
        return self._utf8[start:end].decode()

    @property
    def full_text(self) -> str:
        """Return the whole source text."""
        return self._utf8.decode()

    def get_segment(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of *node*."""
        return self.get_text(*self.get_span(node))

    def replace_node(self, node: ast.expr, text: str) -> SourceEdit:
        """Return the edit that puts *text* in the place of *node*."""
        return SourceEdit(*self.get_span(node), text)

    def append_text(self, text: str) -> SourceEdit:
        """Return the edit that puts *text* at the end, on lines of its own."""
        return SourceEdit(len(self._utf8), len(self._utf8), f"\n{text}")

    def apply_edits(self, edits: Iterable[SourceEdit]) -> bytes:
        """Return the file with *edits*, which do not overlap; those at one place are in their order.

        Raises:
            ValueError: if they do, or the file's encoding has not all they need.
        """
        pieces, at = list[bytes](), 0
        for edit in sorted(edits, key=lambda edit: edit[:2]):
            if edit.start < at:
                raise ValueError("two edits of one place")
            pieces += [self._utf8[at : edit.start], edit.text.encode()]
            at = edit.end
        return b"".join((*pieces, self._utf8[at:])).decode().encode(self.encoding)


def parse_source(text: str) -> ast.Module:
    """Return the syntax tree of *text*; what Python would warn of in it is not ours to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def get_constant(text: str) -> object:
    """Return the value of a literal.

    Raises:
        ValueError, SyntaxError: if it is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(f"({text}\n)")


def split_words(name: str) -> list[str]:
    """Return the words that *name* is made of."""
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)


def get_dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as it is written, without the calls on the way; empty if it is something else."""
    if isinstance(node, ast.Call):
        return get_dotted_name(node.func)
    if isinstance(node, ast.Attribute):
        return f"{get_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
