"""Describes how classes of Python files come to their special methods, as their text has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from jumar.core.gate.untouched_reports import ARITHMETIC

MAKING = r"dataclass|total_ordering|NamedTuple|\battrs?\b|\bdefine\b|Model\b"
"""Above a class: gives it an equality, or an order."""

PLAIN = repr(([], [], [], []))
"""Description of a class with none of the methods, no decorators and no bases."""


def is_as_before(
    kind: str,
    methods: frozenset[str],
    before: Mapping[str, Sequence[ast.ClassDef]],
    now: Mapping[str, Sequence[ast.ClassDef]],
) -> bool:
    """Return whether classes called *kind* come to one of *methods* *now* as they did *before*, or had no equality."""
    there, here = describe_classes(kind, methods, before), describe_classes(kind, methods, now)
    kept = here.keys() <= there.keys() and any(here.values())
    return kept or (there.keys() == {PLAIN} and "__eq__" in methods)


def list_classes(texts: Iterable[bytes]) -> dict[str, list[ast.ClassDef]]:
    """Return the classes in *texts*, Python files, by name; none of a text that cannot be parsed."""
    found: dict[str, list[ast.ClassDef]] = {}
    for text in texts:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for part in ast.walk(ast.parse(text)):
                if isinstance(part, ast.ClassDef):
                    found.setdefault(part.name, []).append(part)
    return found


def describe_classes(
    kind: str, methods: frozenset[str], classes: Mapping[str, Sequence[ast.ClassDef]]
) -> dict[str, bool]:
    """Return how each of *classes* that is called *kind* comes to its *methods*, and whether it has one of them.

    By its body, its decorators (whatever else they are told), or its bases, which are described as well.
    """
    described = {}
    for node in classes.get(kind, ()):
        own = [ast.unparse(part) for part in node.body if not methods.isdisjoint(_list_bound(part))]
        decorators = [getattr(each, "func", each) for each in node.decorator_list]
        told = [k for each in node.decorator_list for k in getattr(each, "keywords", ()) if k.arg == "eq"]
        above = [ast.unparse(each) for each in (*decorators, *node.bases)]
        rest = {name: found for name, found in classes.items() if name != kind}
        bases = [describe_classes(name, methods, rest) for name in above if name in rest]
        made = "NamedTuple" if methods & {"__contains__", *ARITHMETIC} else MAKING
        text = repr((own, above, [*map(ast.unparse, (*told, *node.keywords))], bases))
        described[text] = bool(own or re.search(made, " ".join(above)))
    return described


def _list_bound(part: ast.stmt) -> set[str]:
    """Return the names that *part*, a statement of the body of a class, binds."""
    stored = {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {str(getattr(part, "name", ""))}
