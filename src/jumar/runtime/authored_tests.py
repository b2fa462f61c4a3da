"""Protects the test files that a run wrote: green tests stay as they are, and new ones are added beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate
from jumar.runtime.dependencies import RunDependencies

IMPORTS = re.compile(
    rb'\s*(?:import\b|from\b.*\bimport\b|use\b|(?:const|let|var)\b.*=\s*(?:await\s+import|require)\b|(?:\w+\s+)?"[^"]*"\s*$)'
)
"""A line that only brings names in, in one of the languages there are runners for: new tests need other names."""

DEFINED = re.compile(rb"\b(?:def|func|fn)\s+(\w+)")
"""Definition of a test that bears a name of its own."""


def check_rewrite(parts: RunDependencies, path: str, old: bytes, new: bytes, state: RunState) -> str:
    """Return why *path* may not change from *old* to *new*: it loses or bends a test of the run; empty: it may."""
    if path not in state.gate_state.authored or state.best is None:
        return ""
    if state.run.settings.suite.single and state.best.green_ids:
        return f"{path} holds tests that are green, and a test command tells no more: write new tests in a new file"
    before, after = _map_tests(parts, path, old), _map_tests(parts, path, new)
    green = {i: text for i, text in before.items() if i in state.best.green_ids}
    if changed := sorted(i for i, text in green.items() if after.get(i) != text):
        return f"{changed[0]} is green: the text of its test stays as it is; write new tests beside it"
    if gone := sorted(i for i in before if i in state.gate_state.joined and i not in after):
        return f"{gone[0]} was seen red and is expected from then on: change it while it is red, but keep its name"
    if not green or state.gate_state.mode is not Gate.STRICT:
        return ""
    return _explain_bent(_list_other_lines(parts, path, old), _list_other_lines(parts, path, new), green)


def _explain_bent(before: list[bytes], after: list[bytes], green: Mapping[str, bytes]) -> str:
    """Return why the lines around *green* tests may not change so; empty: only lines or imports were added."""
    first = next(iter(green))
    kept = [line for line in before if not IMPORTS.match(line)]
    added, place = [], 0
    for line in after:
        if place < len(kept) and line == kept[place]:
            place += 1
        elif not IMPORTS.match(line):
            added.append(line)
    if place < len(kept):
        there = kept[place].decode("utf-8", "replace").strip()
        return f"{first} is green, and what stands around it stays ({there!r}): add lines, or write a new test file"
    for test_id, text in green.items():
        defined = DEFINED.search(text)
        name = defined[1] if defined else test_id.rpartition("::")[2].encode()
        if any(re.search(rb"(?<!\w)" + re.escape(name) + rb"(?!\w)", line) for line in added):
            return f"{test_id} is green and stays what it is: {name.decode()!r} may not be named anew in its file"
    return ""


def _list_other_lines(parts: RunDependencies, path: str, source: bytes) -> list[bytes]:
    """Return the lines of *source* that belong to no test, without their ends and without empty ones."""
    tests = {n for site in parts.sites(path, source) for n in range(site.start - 1, site.end)}
    return [line.rstrip() for n, line in enumerate(source.splitlines()) if n not in tests and line.strip()]


def _map_tests(parts: RunDependencies, path: str, source: bytes) -> dict[str, bytes]:
    """Return the lines of each test, by its id."""
    lines = source.splitlines(keepends=True)
    return {site.id: b"".join(lines[site.start - 1 : site.end]) for site in parts.sites(path, source)}
