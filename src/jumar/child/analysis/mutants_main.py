"""Makes mutants of the lines that a candidate changed: `["mutant", path, line, what, start, end, text]` (bytes).

It runs nothing that it parses. The same config gives the same mutants: what is chosen of them depends on the seed and
the texts alone.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from jumar.child.analysis.mutation_operators import build_operators
from jumar.child.channel import join

if TYPE_CHECKING:
    Mutant = tuple[int, int, bytes, int, str]
    """One edit of one file: from where to where in bytes, what is there then, its line, and what it is."""


LINES = 4000
"""Beyond so many lines that differ, all of them count as changed: comparing them takes the square of their number."""

ENDS = re.compile(rb"\r\n|\r|\n")

TRIED = 8
"""So many are looked at for each one that is wanted."""

FAULTS = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Exceptions that parsing hostile source may raise."""

BOM = b"\xef\xbb\xbf"


def main() -> None:
    """Serve one request: `files` is path -> [text before, text now], as latin-1; `most` and `seed` choose."""
    config, send, _ = join()
    send(["hello"])
    sys.setrecursionlimit(3000)
    steps = build_operators()
    files = {path: [text.encode("latin-1") for text in texts] for path, texts in config["files"].items()}
    found: list[tuple[str, Mutant]] = []
    changes: list[tuple[str, Mutant]] = []
    for path, (before, now) in files.items():
        with contextlib.suppress(*FAULTS):
            lines, hunks = diff_lines(ENDS.split(before), ENDS.split(now))
            found += [(path, mutant) for mutant in apply_steps(now, lines, steps)]
            changes += [(path, undo_hunks(before, now, hunk)) for hunk in hunks]
    # A single change undone is the task as it came, of which all is known.
    found += changes if len(changes) > 1 else []
    for path, mutant in select_mutants(found, {path: now for path, (_, now) in files.items()}, config):
        start, end, text, line, what = mutant
        send(["mutant", path, line, what, start, end, text.decode("latin-1")])
    send(["end", 0])
    os._exit(0)


def apply_steps(now: bytes, lines: set[int], steps: Any) -> Iterator[Mutant]:
    """Yield all single *steps* on the numbered *lines* of *now*."""
    shift = len(BOM) if now.startswith(BOM) else 0
    starts = [shift, *(match.end() for match in ENDS.finditer(now))]
    for line, (first, last), text, what in steps(ast.parse(now), lines):
        start, end = (starts[row - 1] + column for row, column in (first, last))
        yield start, end, text.encode().replace(b"{}", now[start:end], 1), line, what


def select_mutants(
    found: list[tuple[str, Mutant]], texts: dict[str, bytes], config: dict[str, Any]
) -> Iterator[tuple[str, Mutant]]:
    """Select the wanted number of mutants that compile, and that equal neither the original nor another mutant."""
    known = {path: {dump_tree(text)} for path, text in texts.items()}
    left = config["most"]
    for path, mutant in spread_by_line(found, config["seed"])[: TRIED * left]:
        start, end, text, *_ = mutant
        shape = dump_tree(texts[path][:start] + text + texts[path][end:])
        if left > 0 and shape and shape not in known[path]:
            known[path].add(shape)
            left -= 1
            yield path, mutant


def dump_tree(source: bytes) -> str:
    """Return the tree of *source* as text, empty if it does not compile."""
    try:
        tree = ast.parse(source)
        compile(tree, "mutant", "exec", dont_inherit=True)
        return ast.dump(tree)
    except FAULTS:
        return ""


def diff_lines(old: list[bytes], new: list[bytes]) -> tuple[set[int], list[tuple[int, int, int, int]]]:
    """Return the numbers of the lines of *new* that were changed, or that lines were taken from, and the hunks."""
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    high = 0
    while high < min(len(old), len(new)) - low and old[-1 - high] == new[-1 - high]:
        high += 1
    a, b = old[low : len(old) - high], new[low : len(new) - high]
    if max(len(a), len(b)) > LINES:
        return set(range(low + 1, low + len(b) + 1)), [(low, low + len(a), low, low + len(b))]
    lines: set[int] = set()
    hunks = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal":
            lines.update(range(low + b0 + 1, low + b1 + 1) if b1 > b0 else (low + b0, low + b0 + 1))
            hunks.append((low + a0, low + a1, low + b0, low + b1))
    return lines, hunks


def undo_hunks(before: bytes, now: bytes, hunk: tuple[int, int, int, int]) -> Mutant:
    """Return the mutant in which one hunk is as it was before."""
    a0, a1, b0, b1 = hunk
    old, new = ([0, *(m.end() for m in ENDS.finditer(text)), len(text)] for text in (before, now))
    text = before[old[min(a0, len(old) - 1)] : old[min(a1, len(old) - 1)]]
    start, end = new[min(b0, len(new) - 1)], new[min(b1, len(new) - 1)]
    return start, end, text, b0 + 1, "a change undone"


def spread_by_line(found: Iterable[tuple[str, Mutant]], seed: int) -> list[tuple[str, Mutant]]:
    """Return *found* ordered by *seed*: one mutant of each line first, then a second one of each."""

    def draw_chance(entry: tuple[str, Mutant]) -> bytes:
        return hashlib.sha256(repr((seed, entry)).encode()).digest()

    lines: dict[tuple[str, int], list[tuple[str, Mutant]]] = {}
    for entry in sorted(found, key=draw_chance):
        lines.setdefault((entry[0], entry[1][3]), []).append(entry)
    return [entry for turn in itertools.zip_longest(*lines.values()) for entry in turn if entry]
