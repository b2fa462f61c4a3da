"""Limits of a search: a file whose parsing or searching would take quadratic time is not searched."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser, Point, Tree, TreeCursor

PARSE_SECONDS = 5.0
"""Time of a processor for parsing one file; a large one of 1 MB takes a tenth of it."""

DEEPEST = 1_000
"""Nodes within nodes: rules that search below what they find take as many times as long."""

MOST_STEPS = 20_000_000
"""Steps of a query over brackets and operators that follow each other: from each of them it goes to the last one."""

_PIECE = 1 << 16


def parse_in_time(parser: Parser, data: bytes) -> Tree | None:
    """Return the tree of *data*, or None if it cannot be parsed in time."""
    end = time.thread_time() + PARSE_SECONDS

    def read(at: int, _: Point) -> bytes:
        return data[at : at + _PIECE]

    def is_over(_: int, __: bool) -> bool:  # noqa: FBT001  its API
        return time.thread_time() > end

    try:
        parser.parse(read, progress_callback=is_over)
    except ValueError:  # it was stopped
        return None
    # Once more: the nodes of a tree that was read in pieces are slow to give their text.
    return parser.parse(data)


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
