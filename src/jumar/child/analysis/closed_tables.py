"""Finds tables that hold nothing but answers of the tests, for texts and numbers that a table elsewhere may have.

A vocabulary has words and signs for keys, and a record has names: neither is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jumar.child.analysis import hard_coded_answers, test_literals

if TYPE_CHECKING:
    Finding = tuple[str, int, str]

LOOKUPS = frozenset(["get", "pop", "__getitem__"])

ROWS = 2
"""So many rows for a test say it alone; one is enough where the table is written down in order to be looked up."""


def find_closed_tables(tree: ast.Module, index: test_literals.Index) -> Iterator[Finding]:
    """Yield a finding for each dictionary of which every row is a case of the tests in *index*, with its answer."""
    looked_up = {id(node) for node in map(_find_table_of_lookup, ast.walk(tree)) if node is not None}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        rows = [(asked, answered) for _, _, asked, answered in hard_coded_answers.read_table_rows(node)]
        if len(rows) < len(node.keys) or not all(test_literals.are_together(index, *row) for row in rows):
            continue
        telling = [row for row in rows if _is_telling(*row)]
        rare = sum(any(map(test_literals.is_rare, asked)) for asked, _ in rows)
        if len(telling) >= (1 if id(node) in looked_up else ROWS) and rare < hard_coded_answers.TABLE:
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            what = f"{hard_coded_answers.NOTHING_ELSE}: {hard_coded_answers.format_pair(*telling[0])}{more}"
            yield f"closed {hard_coded_answers.build_key(telling[0][0])}", node.lineno, what


def _find_table_of_lookup(node: ast.AST) -> ast.Dict | None:
    """Return the dictionary that is written down and looked up in one expression, if *node* is that."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS:
        found: ast.expr = node.func.value
    elif isinstance(node, ast.Subscript):
        found = node.value
    else:
        return None
    return found if isinstance(found, ast.Dict) else None


def _is_telling(asked: list[Any], answered: list[Any]) -> bool:
    """Return whether a row is for a test, and its key is neither a name nor a sign."""
    if not hard_coded_answers.is_for_a_test(asked, answered):
        return False
    return not any(_is_name_or_sign(value) for value in asked if isinstance(value, str))


def _is_name_or_sign(text: str) -> bool:
    return bool(test_literals.NAME.fullmatch(text)) or not any(map(str.isalnum, text))
