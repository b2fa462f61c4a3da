"""Finds tests that compare with nothing but what is written down in their file."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress

from jumar.verify.challenge.literals import Function, find_literals, list_tests


def find_literal_tests(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the test functions in *files* that compare with literals alone, in each of their assertions.

    A parameter that is used for nothing else is as a literal: nobody but the file said what it is. All else that an
    assertion names is one thing: `total(rows) - sum(rows) == 0` compares two. Not those that call a function of their
    file which asserts: it may do the same.
    """
    found: set[str] = set()
    for path, text in files.items():
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.parse(text)
            helpers = {f.name for f in ast.walk(tree) if isinstance(f, Function) and [*_list_asserted(f)]}
            found |= {f"{path}::{name}" for name, test in list_tests(tree) if _compares_literals(test, helpers)}
    return frozenset(found)


def _compares_literals(function: Function, helpers: set[str]) -> bool:
    """Return whether *function* asserts, and each time compares with a literal, and calls none of *helpers*."""
    asserted = list(_list_asserted(function))
    used = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    fixed = {argument.arg for argument in function.args.args if used[argument.arg] == 1}
    called = {getattr(c.func, "id", getattr(c.func, "attr", "")) for c in ast.walk(function) if isinstance(c, ast.Call)}
    return bool(asserted) and called.isdisjoint(helpers) and all(_is_literal_alone(sides, fixed) for sides in asserted)


def _list_asserted(function: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield what each assertion in *function* compares; nothing, if it is no comparison."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
            yield from ([part.left, *part.comparators] if isinstance(part, ast.Compare) else [] for part in parts)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert"):
            yield node.args


def _is_literal_alone(sides: list[ast.expr], fixed: set[str]) -> bool:
    """Return whether one of *sides* is a literal, or has a name in *fixed*, and all others name one thing at most."""
    others = [side for side in sides if not find_literals(side) and getattr(side, "id", "") not in fixed]
    nodes = [node for side in others for node in ast.walk(side)]
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    named = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in functions]
    return len(others) < len(sides) and len(named) <= 1
