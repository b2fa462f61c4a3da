"""Reads why tests failed from what the runner printed of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jumar.core.quoting import make_one_line, strip_control_sequences

REASON_CHARACTERS = 160
"""Most characters of a reason: a line on the screen, with the test's id before it."""

ERROR_LINE = re.compile(r"^E[ \t]+(.*)$", re.MULTILINE)
"""A line in which pytest says what went wrong; the lines around it show code."""

ERROR_BLOCK = re.compile(r"(?:^E(?:[ \t].*)?(?:\n|\Z))+", re.MULTILINE)
"""Lines of pytest on one exception; of exceptions that follow from each other, the last one ended the test."""

CAPTURED = re.compile(r"^--- Captured [\w ]+ ---$", re.MULTILINE)
"""The line after which stands what a test in Python printed: it states nothing, whatever it looks like."""

STATEMENTS = (
    re.compile(r"^thread '.*' panicked at .+:\n(.+(?:\n +left: .*\n *right: .*)?)", re.MULTILINE),
    re.compile(r"^note: ((?:test did not panic|panic did not contain).*)$", re.MULTILINE),
    re.compile(r"^((?:panic|fatal error): .*?)(?: \[recovered.*\])?$", re.MULTILINE),
    re.compile(r"^ +([^\s:]+\.go:\d+: (?:\n\s+Error Trace:.*\n(?:.*\n)*?\s+Error:\s+)?.*\S)", re.MULTILINE),
    re.compile(r"^(--- FAIL: .+)$", re.MULTILINE),
    re.compile(r"\A# .*\n(\S+\.go:\d+:\d+: .*)$", re.MULTILINE),
    re.compile(r"^(Error: .+)\s*\Z", re.MULTILINE),
)
"""Forms in which libtest and Go state a failure, the surest first. Of several in one form the last ended the test."""

TRACE = re.compile(r"\s+Error Trace:[\s\S]*Error:\s+")
"""The lines in which a table of testify names places, before it says what is wrong."""

FRAME = re.compile(r"^\S+:\d+: in .*$|^\s+.*$", re.MULTILINE)
"""A line of a traceback: a place, or indented code."""

MODULE = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*(?::|$))")
"""The module in front of an exception's name."""

SYNTAX_PLACE = re.compile(r'File "(?:.*[/\\])?(.+)", line (\d+)')
"""First line on a file that does not compile; what is wrong with it is the last one."""


def find_message(excerpt: str) -> str:
    """Return the lines of *excerpt*, a test's output, that state the failure; all of it if none do."""
    marked = "\n".join(ERROR_LINE.findall(_leave_out_captured(excerpt)))
    indented = "\n--- FAIL: " in f"\n{excerpt}"  # Go says what is wrong in such lines
    return (marked or ("" if indented else FRAME.sub("", excerpt).strip()) or excerpt).strip()


def find_reason(excerpt: str) -> str:
    """Return one line of *excerpt*, a test's output, that states the failure; empty if there is none."""
    blocks = ERROR_BLOCK.findall(_leave_out_captured(excerpt))
    said = find_message(blocks[-1]) if blocks else _find_statement(excerpt) or find_message(excerpt)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines:
        return ""
    place = SYNTAX_PLACE.fullmatch(lines[0])
    line = f"{lines[-1]} ({place[1]}, line {place[2]})" if place else MODULE.sub("", lines[0])
    return make_one_line(line, REASON_CHARACTERS)


def _find_statement(excerpt: str) -> str:
    """Return the line in which libtest or Go states the failure that *excerpt* is of; empty if there is none."""
    found = next((said for form in STATEMENTS if (said := form.findall(excerpt))), [""])
    return ", ".join(part.strip() for part in TRACE.sub(" ", found[-1]).splitlines() if part.strip())


def _leave_out_captured(excerpt: str) -> str:
    """Return what pytest itself says in *excerpt*; all of it where that is nothing."""
    return CAPTURED.split(excerpt, maxsplit=1)[0].strip() or excerpt


def find_import_error(output: str, tests: Sequence[str]) -> str:
    """Return why none of *tests* could be imported, as *output* that models are shown says; empty if one could be."""
    told = split_output(output, tests)
    if not told or any(f"\nIMPORT_ERROR {strip_control_sequences(test)}\n" not in output for test in told):
        return ""
    return find_reason(next(iter(told.values())))


def split_output(output: str, tests: Sequence[str]) -> dict[str, str]:
    """Return the part of *output*, as models are shown it, that is about each of *tests*; some may have none.

    The form is that of `jumar.core.prompts.feedback.build_feedback`. What a test prints may look like it: the first
    part with a name counts.
    """
    names = {strip_control_sequences(test): test for test in tests}
    heads = [m for m in re.finditer(r"^[A-Z_]+ (.+)$", output, re.MULTILINE) if m[1] in names]
    found: dict[str, str] = {}
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(output)
        found.setdefault(names[head[1]], output[head.end() : end].strip())
    return found
