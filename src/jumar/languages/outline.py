"""Outline of a file in any language: its definitions and uses, to distinguish a whole file from a part."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Iterable, Iterator

import msgspec


class Outline(msgspec.Struct, frozen=True):
    """Outline of a file that parses."""

    groups: dict[str, frozenset[str]] = {}
    """The names defined at the top (under "") and, by class or type, the methods."""
    bound: frozenset[str] = frozenset()
    """The names the top of the file binds, imports among them."""
    local: frozenset[str] = frozenset()
    """The names that are bound anywhere, parameters among them."""
    used: frozenset[str] = frozenset()
    """The names that are read (Python), or called and calculated with (the others)."""
    members: frozenset[str] = frozenset()
    """The attributes that are read."""
    sources: frozenset[str] = frozenset()
    """Modules it imports from, as written."""
    tests: frozenset[str] = frozenset()
    """The tests it defines."""
    stubs: frozenset[str] = frozenset()
    """The functions, as in *groups* or as `Class.method`, whose body is `...` and nothing else."""
    gaps: tuple[int, ...] = ()
    """Lines with a bare `...` that stands for something: it is neither a whole body nor a default."""
    comments: tuple[tuple[int, str], ...] = ()
    """Line and text of each comment that could stand for code that was left out."""
    substance: bool = True
    """At least one statement does something; words and notes do not."""
    prose: int = 0
    """The first line that is more likely prose than code, which raw text may not hold; 0 if there is none."""
    patch: bool = False
    """A statement begins with a lone + or -, as the lines of a diff do."""
    open: bool = False
    """Names may come from anywhere (`from x import *`)."""


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def build_python_outline(tree: ast.Module, text: str) -> Outline:
    """Return the outline of a Python file."""
    top = list(_flatten(tree.body))
    classes = [node for node in top if isinstance(node, ast.ClassDef)]
    nodes = list(ast.walk(tree))
    imported = frozenset(name for node in top for name in _list_imported(node))
    groups = {"": frozenset(name for node in top for name in _list_defined(node))}
    groups |= {
        node.name: frozenset(name for child in _flatten(node.body) for name in _list_defined(child)) for node in classes
    }
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return Outline(
        groups=groups,
        bound=groups[""] | imported,
        local=frozenset(name for node in nodes for name in _list_bound(node)),
        used=frozenset(node.id for node in names if isinstance(node.ctx, ast.Load)),
        members=frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        sources=frozenset(source for node in nodes for source in _list_sources(node)),
        tests=frozenset(_list_tests(top)),
        stubs=frozenset(_list_stubs("", top))
        | frozenset(s for c in classes for s in _list_stubs(f"{c.name}.", _flatten(c.body))),
        gaps=tuple(sorted(line for node in nodes for line in _find_gaps(node))),
        comments=tuple(_list_comments(text)),
        substance=any(_has_effect(node) for node in tree.body),
        prose=next((node.lineno for node in tree.body if _is_prose(node, groups[""] | imported)), 0),
        patch=any(isinstance(node, ast.Expr) and _is_signed(node.value) for node in tree.body),
        open=any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes),
    )


def _flatten(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of one scope, those under if, try and with included."""
    stack = list(body)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While):
            for field in ("finalbody", "orelse", "body"):
                stack += getattr(node, field, [])[::-1]
            stack += [child for handler in getattr(node, "handlers", []) for child in handler.body]


def _list_defined(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines in its scope, imports aside."""
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif node.__class__.__name__ == "TypeAlias":  # newer than 3.11
        yield str(getattr(getattr(node, "name", None), "id", ""))


def _list_imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)


def _list_sources(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield "." * node.level + (node.module or "")


def _list_bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that *node* binds in any scope."""
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    elif node.__class__.__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):  # newer than 3.11
        yield str(getattr(node, "name", ""))
    yield from _list_imported(node)


def _list_tests(top: list[ast.stmt]) -> Iterator[str]:
    for node in top:
        if (isinstance(node, Function) and node.name.startswith("test_")) or (
            isinstance(node, ast.ClassDef) and any(ast.unparse(x).endswith("TestCase") for x in node.bases)
        ):
            yield node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}.{name}" for child in node.body for name in _list_tests([child]))


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _list_stubs(prefix: str, body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, Function) and all(_is_ellipsis(child) or _is_text(child) for child in node.body):
            yield prefix + node.name


def _find_gaps(node: ast.AST) -> Iterator[int]:
    """Yield the lines of `...` beside other statements, or at the top of the file."""
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        others = [child for child in body if not _is_ellipsis(child) and not _is_text(child)]
        if others or isinstance(node, ast.Module):
            yield from (child.lineno for child in body if _is_ellipsis(child))


def can_be_comment(before: str, after: str) -> bool:
    """Return whether a comment may replace code, with the code *before* it on its line and that *after* it.

    One beside code (`return 1  # unchanged`) speaks of that code, unless the code does nothing.
    """
    before, after = before.strip(), after.lstrip()
    if before.endswith(tuple(":{([")):
        return after.startswith(("pass", "...", "}", ")", "]"))
    return not before or before.endswith(("pass", "..."))


def _list_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a text that parses; a text without `#` is not read twice."""
    if "#" not in text:
        return
    lines = [*text.split("\n"), ""]
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            row, column = token.start
            if token.type == tokenize.COMMENT and can_be_comment(
                token.line[:column], lines[row] if row < len(lines) else ""
            ):
                yield row, token.string
    except (tokenize.TokenError, SyntaxError):
        return


def _is_signed(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub)


def _has_effect(node: ast.stmt) -> bool:
    """Return whether a statement could be the reason that a file exists."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await) or _is_text(node)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    return not isinstance(node, ast.Pass | ast.Global | ast.Delete | ast.Raise | ast.Assert)


def _is_prose(node: ast.stmt, known: frozenset[str]) -> bool:
    """Check for statements that a sentence can be: `Done`, `not yet`, `Note: fixed`, `pass`."""
    if isinstance(node, ast.AnnAssign):
        root = next((n.id for n in ast.walk(node.annotation) if isinstance(n, ast.Name)), "str")
        return root not in known and not hasattr(builtins, root)
    if isinstance(node, ast.Expr):
        return not (isinstance(node.value, ast.Call | ast.Await) or _is_text(node))
    return isinstance(node, ast.Pass | ast.Global)
