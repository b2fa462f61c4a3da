"""Units of a source file: the parts that can be edited, compiled and swapped alone, each with its shell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


@dataclass(frozen=True, slots=True)
class Unit:
    """A function (with all that is nested in it) or a statement outside of functions."""

    function: bool
    name: str
    """The function's name, or the first name the statement binds."""
    first: int
    """First line in the file, from 1; decorators included."""
    last: int
    start: int
    """Offset in the file of the first character of the first line."""
    end: int
    body: int
    """Offset of the first line of a function's body; what is before it is run at import."""
    shell: str
    """Header lines (`class C:`, `if 1:`) that make the unit's lines a module of the right indentation."""

    @property
    def shell_lines(self) -> int:
        """Return the number of lines of the shell."""
        return self.shell.count("\n")


@dataclass(frozen=True, slots=True)
class FileUnits:
    """Functions and classes of a file, and the names that its top level binds."""

    units: tuple[Unit, ...]
    variables: tuple[str, ...]
    """Names bound by assignment at the top level."""
    callables: tuple[str, ...]
    """Functions, classes and imported names of the top level."""


def find_line_starts(source: str) -> list[int]:
    """Return the offsets of the starts of all lines, as the parser counts them, and of the end of the text."""
    starts = [match.start() for match in _LINE.finditer(source) if match.start() < len(source)]
    return [*starts, len(source)]


def build_outline(source: str) -> FileUnits | None:
    """Return the outline of *source*, or None if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    starts = find_line_starts(source)
    units = tuple(_Walk(source, starts).walk_block(tree.body, ""))
    variables: list[str] = []
    callables: list[str] = []
    for node in _walk_top_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            callables.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            callables += [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        else:
            variables += _list_bound(node)
    return FileUnits(units, tuple(dict.fromkeys(variables)), tuple(dict.fromkeys(callables)))


def _walk_top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for inner in _list_bodies(node):
            yield from _walk_top_level(inner)


def _list_bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement that run in its scope (not those of classes and functions)."""
    if not isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        return []
    blocks = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
    return [*blocks, *(handler.body for handler in getattr(node, "handlers", []))]


def _list_bound(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return []
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Walk:
    """Visitor that descends through classes and conditional blocks and builds the shell on its way."""

    def __init__(self, source: str, starts: list[int]) -> None:
        self.source = source
        self.starts = starts

    def walk_block(self, body: list[ast.stmt], shell: str) -> Iterator[Unit]:
        taken = 0
        for node in body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            last = node.end_lineno or node.lineno
            alone = first > taken and not self.source[self.starts[first - 1] : self._find_column(node, first)].strip()
            taken = last
            if alone:
                yield from self._walk_statement(node, first, last, shell)

    def _find_column(self, node: ast.stmt, first: int) -> int:
        """Return the offset of the first token of *node*; a decorated one starts at its `@`."""
        return self.starts[first - 1] + (node.col_offset if first == node.lineno else 0)

    def _walk_statement(self, node: ast.stmt, first: int, last: int, shell: str) -> Iterator[Unit]:
        start = self.starts[node.lineno - 1]
        indent = self.source[start : start + node.col_offset]
        if isinstance(node, ast.ClassDef):
            yield from self.walk_block(node.body, f"{shell}{indent}class {node.name}:\n")
        elif inner := _list_bodies(node):
            for body in inner:
                yield from self.walk_block(body, f"{shell}{indent}if 1:\n")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield self._build_unit(node.name, (first, last, node.body[0].lineno), shell, function=True)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr) and not _is_docstring(node):
            yield self._build_unit(next(iter(_list_bound(node)), ""), (first, last, first), shell, function=False)

    def _build_unit(self, name: str, lines: tuple[int, int, int], shell: str, *, function: bool) -> Unit:
        first, last, body = lines
        start, end, inside = self.starts[first - 1], self.starts[last], self.starts[body - 1]
        return Unit(function, name, first, last, start, end, inside, shell)
