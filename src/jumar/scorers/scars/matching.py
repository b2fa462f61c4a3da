"""Relations between findings, places and texts, each in about linear time: what is searched may be hostile."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


class Places:
    """Nodes that excuse all that lies in them."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        spans = sorted((node.start_byte, node.end_byte) for node in nodes)
        self._starts = [start for start, _ in spans]
        self._ends = list(accumulate((end for _, end in spans), max))

    def hold(self, node: Node) -> bool:
        """Check whether *node* lies in one of them."""
        before = bisect_right(self._starts, node.start_byte)
        return before > 0 and node.end_byte <= self._ends[before - 1]


def is_joined(target: str, words: Iterable[tuple[str, ...]]) -> bool:
    """Check whether *target* is all texts of one of *words*, or ends with them after a dot."""
    return any(all(target == text or target.endswith(f".{text}") for text in texts) for texts in words)


def find_lines(regex: re.Pattern[str], data: bytes) -> Iterator[int]:
    """Yield the lines of *data* on which a match of *regex* begins, counted from 1."""
    ends = [found.start() for found in re.finditer(rb"\n", data)]
    # A character of one byte each: positions stay those of the bytes.
    yield from (bisect_right(ends, found.start() - 1) + 1 for found in regex.finditer(data.decode("latin-1")))
