"""Infers the file of one fenced block without a path, by names: those it defines, and those tests import."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from jumar.agents.extraction.fences import Fence
from jumar.languages import syntax

Names = Mapping[str, frozenset[str]]
"""Path -> names."""


def find_candidate_paths(block: Fence, present: Names, imported: Names) -> tuple[str, ...]:
    """Return the files that *block* can be; if there is one alone, that file is meant.

    Args:
        block: the only block of the reply that could be a file.
        present: for each file that may be written, the names that it defines at its top today.
        imported: for each of them, the names that the tests import from it.
    """
    defined = {path: _list_top_names(path, block.text) for path in present if syntax.is_label_of(block.label, path)}
    shared = [path for path, names in defined.items() if names & present[path]]
    whole = [path for path in shared if present[path] <= defined[path]]
    for found in (shared, whole):
        if len(found) == 1:
            return tuple(found)
    asked = [path for path in shared or defined if defined[path] & imported.get(path, frozenset())]
    return tuple(asked or shared)


def collect_test_imports(tests: Mapping[str, str], targets: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return for each target the names that the Python *tests* (path -> text) import from it."""
    taken = [
        pair for path, text in tests.items() if syntax.find_language(path) == "python" for pair in _list_taken(text)
    ]
    modules = {path: f".{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for path in targets}
    return {
        path: frozenset(name for module, name in taken if dotted.endswith(f".{module}"))
        for path, dotted in modules.items()
    }


def _list_top_names(path: str, text: str) -> frozenset[str]:
    outline = syntax.parse_file(path, text)[0]
    return outline.groups.get("", frozenset()) if outline else frozenset()


def _list_taken(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name for each name that *text* imports, or reads as an attribute of an imported module."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    modules: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and (owner := _format_dotted(node.value)) in modules:
            yield modules[owner], node.attr


def _format_dotted(node: ast.expr) -> str:
    """Return `a.b.c` as text; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""
