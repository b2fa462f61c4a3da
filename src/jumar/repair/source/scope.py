"""Names in scope: bindings of a function, the functions around it and its module, in their order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """Names that are bound throughout a range of lines."""

    first: int
    last: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that one function or class can use."""

    extents: tuple[Extent, ...]
    variables: tuple[str, ...]
    """The module's variables."""
    callables: tuple[str, ...]
    """The module's functions, classes and imports."""
    attributes: tuple[str, ...]
    """Attribute names used in the unit."""

    def locals(self, line: int) -> tuple[str, ...]:
        """Return the local names bound around *line*, innermost function first."""
        around = [e for e in self.extents if e.first <= line <= e.last]
        around.sort(key=lambda e: e.last - e.first)
        return tuple(dict.fromkeys(name for extent in around for name in extent.names))


def build_scope(snippet: str, variables: tuple[str, ...], callables: tuple[str, ...]) -> Scope:
    """Return the scope of a unit whose text is *snippet*, in a module that binds *variables* and *callables*."""
    tree = ast.parse(snippet)
    extents: list[Extent] = []
    attributes: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            extents.append(_build_extent(node, (*_list_parameters(node.args), *_list_assigned(node))))
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            extents.append(_build_extent(node, tuple(n for g in node.generators for n in _list_stored(g.target))))
        elif isinstance(node, ast.Attribute):
            attributes.append(node.attr)
    return Scope(tuple(extents), variables, callables, tuple(dict.fromkeys(attributes)))


def _build_extent(node: ast.expr | ast.stmt, names: tuple[str, ...]) -> Extent:
    return Extent(node.lineno, node.end_lineno or node.lineno, tuple(dict.fromkeys(names)))


def _list_parameters(arguments: ast.arguments) -> tuple[str, ...]:
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return tuple(a.arg for a in [*plain, arguments.vararg, arguments.kwarg] if a is not None)


def _list_assigned(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    """Yield names the function's own body binds, in order; those of inner functions and comprehensions are theirs."""
    body = function.body if isinstance(function.body, list) else [function.body]
    for node in _walk_own(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            if node.name:
                yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _walk_own(nodes: list[ast.stmt] | list[ast.expr]) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(reversed(nodes))
    while pending:
        node = pending.pop()
        yield node
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        if not isinstance(node, inner + comprehension):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _list_stored(target: ast.expr) -> Iterator[str]:
    return (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
