"""Suspicion of each line of each unit: a statement counts as its worst line, a constant as its mentions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from jumar.repair.source.units import Unit, build_outline

HEADER = 0.6
"""A `def` line is run at import, not by a test: its defaults inherit this share of the suspicion of its body."""

MENTIONED = 0.8
"""Share of suspicion that code outside of functions inherits from the lines that mention its name."""

UNKNOWN = 0.5
"""The same where nothing is known of any line."""


class SuspectTree:
    """Editable sources and the suspicion of their lines."""

    def __init__(self, files: Mapping[str, str], suspects: Mapping[str, Mapping[int, float]]) -> None:
        """Score *files* by *suspects*: path -> line -> suspiciousness; if empty, all lines are equal."""
        self.files = dict(sorted(files.items()))
        self.suspects = suspects
        self.outlines = {path: found for path, text in self.files.items() if (found := build_outline(text))}

    def list_units(self) -> Iterator[tuple[str, Unit, Mapping[int, float]]]:
        """Yield each suspicious unit, with the suspicion of each of its lines in the file."""
        for path, found in self.outlines.items():
            rows = self.files[path].split("\n")
            scores = self.suspects.get(path, {})
            for unit in found.units:
                if not self.suspects:
                    yield path, unit, _spread_score(unit, 1.0 if unit.function else UNKNOWN)
                elif unit.function:
                    if mine := _score_statements(self.files[path], unit, scores):
                        yield path, unit, mine
                elif top := max((s for line, s in scores.items() if _is_mentioned(rows, line, unit.name)), default=0.0):
                    yield path, unit, _spread_score(unit, top * MENTIONED)


def _spread_score(unit: Unit, score: float) -> dict[int, float]:
    return dict.fromkeys(range(unit.first, unit.last + 1), score)


def _is_mentioned(rows: list[str], line: int, name: str) -> bool:
    return bool(name) and line <= len(rows) and re.search(rf"\b{re.escape(name)}\b", rows[line - 1]) is not None


def _score_statements(source: str, unit: Unit, scores: Mapping[int, float]) -> dict[int, float]:
    """Return the suspicion of each line of a function; empty if it has none."""
    found: dict[int, float] = {}
    shift = unit.first - 1 - unit.shell_lines
    for node in ast.walk(ast.parse(unit.shell + source[unit.start : unit.end])):
        if isinstance(node, ast.stmt):
            lines = [line + shift for line in _get_own_lines(node)]
            found.update(dict.fromkeys(lines, max(scores.get(line, 0.0) for line in lines)))
    inside = [score for line, score in found.items() if line >= unit.first]
    top = max(inside, default=0.0)
    if not top:
        return {}
    head = range(unit.first, unit.first + source.count("\n", unit.start, unit.body))
    return {**found, **dict.fromkeys(head, top * HEADER)}


def _get_own_lines(node: ast.stmt) -> range:
    """Return the lines of a simple statement, or of the head of a compound one."""
    body = getattr(node, "body", None)
    inner = body if isinstance(body, list) else getattr(node, "cases", [])
    below = [getattr(part, "lineno", None) or part.pattern.lineno for part in inner[:1]]
    last = max(node.lineno, below[0] - 1) if below else node.end_lineno or node.lineno
    return range(node.lineno, last + 1)
