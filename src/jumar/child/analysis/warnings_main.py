"""Finds suspicious code in the sources of its config, and reports each place: `["warning", path, line, what]` for each.

What it parses is hostile: it only builds syntax trees, runs nothing, and may die of one; then that is known. An oddity
that the task had before is none.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from jumar.child.analysis import empty_tests, hard_coded_answers, judge_detection, test_literals
from jumar.child.channel import join

if TYPE_CHECKING:
    Finding = tuple[str, int, str]
    """Key of a finding, its line, and the text of the warning."""

FAULTS = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
"""Exceptions that parsing or walking hostile source may raise."""


def main() -> None:
    """Serve one request: find the suspicious code in the files of one config."""
    config, send, _ = join()
    send(["hello"])
    sys.setrecursionlimit(3000)
    judged = dict(parse_files(config["tests"], lambda *_: None))
    data = {path: text for path, text in config["tests"].items() if not path.endswith(".py")}
    index = test_literals.index_values(judged, data)
    finders = (
        judge_detection.build_finder(tuple(config["tests"])),
        hard_coded_answers.build_finder(index),
        lambda tree: hard_coded_answers.find_closed_tables(tree, index),
    )
    known: Counter[str] = Counter()
    for _, tree in parse_files(config["before"], lambda *_: None):
        with contextlib.suppress(*FAULTS):
            known.update(same for finder in finders for same, _, _ in finder(tree))
    warn = lambda path, line, what: send(["warning", path, line, what])  # noqa: E731  it is handed on
    for path, tree in parse_files(config["after"], warn):
        for finder in finders:
            report(path, finder(tree), known, warn)
    for path, tree in parse_files(config["own"], warn):
        report(path, empty_tests.find_empty_tests(tree), Counter(), warn)
    send(["end", 0])
    os._exit(0)


def parse_files(texts: Mapping[str, str], warn: Callable[[str, int, str], None]) -> Iterable[tuple[str, ast.Module]]:
    """Return the Python files among *texts* with their trees; what does not parse is warned of and left out."""
    for path, text in texts.items():
        if path.endswith(".py"):
            try:
                yield path, ast.parse(text.encode("latin-1"))
            except FAULTS as error:
                warn(path, 1, f"cannot be parsed, so nothing was looked for in it ({type(error).__name__})")


def report(path: str, findings: Iterable[Finding], known: Counter[str], warn: Callable[[str, int, str], None]) -> None:
    """Warn of those *findings* that are more than were *known* before; each line says the same thing once."""
    said = set()
    try:
        for same, line, what in findings:
            if known[same] > 0:
                known[same] -= 1
            elif (line, what) not in said:
                said.add((line, what))
                warn(path, line, what)
    except FAULTS as error:
        warn(path, 1, f"could not be looked at ({type(error).__name__})")
