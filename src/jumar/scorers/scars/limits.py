"""Limits of a search: a tree that takes quadratic time is not searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Tree, TreeCursor

DEEPEST = 1_000
"""Nodes within nodes: rules that search below what they find take as many times as long."""

MOST_STEPS = 20_000_000
"""Steps of a query over brackets and operators that follow each other: from each of them it goes to the last one."""


def can_be_searched(tree: Tree) -> bool:
    """Check that the time of a query over *tree* grows with its size: it is not too deep, and not too much in a row."""
    cursor, depth, steps = tree.walk(), 0, 0
    runs = [0]
    """For each open node: children without a name that follow each other, up to the present one."""
    while True:
        runs[-1] = 0 if cursor.node is not None and cursor.node.is_named else runs[-1] + 1
        steps += runs[-1]
        if depth > DEEPEST or steps > MOST_STEPS:
            return False
        if cursor.goto_first_child():
            depth += 1
            runs.append(0)
            continue
        climbed = _go_on(cursor)
        if climbed > depth:
            return True
        depth -= climbed
        del runs[len(runs) - climbed :]


def _go_on(cursor: TreeCursor) -> int:
    """Move *cursor* to the node after the present one and all below it; return how many levels above it that is."""
    climbed = 0
    while not cursor.goto_next_sibling():
        climbed += 1
        if not cursor.goto_parent():
            return climbed
    return climbed
