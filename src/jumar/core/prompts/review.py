"""Parses a review, which judges structure before any test runs: CLEAN or violations. Unusable text is no violation."""

from __future__ import annotations

import re
from collections.abc import Iterator

DEFAULT_RULES = (
    "Imports resolve: every imported module and name exists, in the standard library or in the files shown.",
    "Required names and signatures exist: all that the tests and the signatures ask for, with those parameters.",
    "Return types: every function returns on every path what its signature and the tests expect.",
    "Logging pattern: messages go out the way the present code does it; no stray print calls.",
    "No forbidden imports: nothing of the tests or a test framework, and nothing that the instruction rules out.",
    "Entry points present: main functions, registrations and exports that other files or the tests use are there.",
)
"""Rules for the review of a draft where the task gives none of its own."""

MOST, LONGEST = 20, 400
"""Violations that are read, and characters of each."""

CLEAN = frozenset({"clean", "no violations", "no violations found"})
CLEARED = CLEAN | {"ok", "pass", "passed"}
"""Words by which a line may say that one rule is kept."""
APPROVAL = "✅✔☑✓🟢👍\ufe0f"
"""Marks that models put beside their approval."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.):])\s+")
_TAG = re.compile(r"<(/?)(\w+)>")
_APPROVES = re.compile(
    r"(?:(?:the|this|your) )?(?:code|draft|files?|implementation|program|it|this|everything|all) "
    r"(?:is|are|looks?) (?:now )?clean"
    r"|(?:there (?:are|were) |(?:i|we) (?:found|find|see) )?no (?:rule )?(?:violations|issues|problems)"
    r"(?: (?:were |was |have been )?found)?"
)
_EXCUSE = re.compile(
    r"(?:i['’]?m|i am) (?:sorry|unable|not able)|sorry\b|i (?:can ?not|(?:can|won)['’]t)\b", re.IGNORECASE
)


def parse_violations(reply: str) -> tuple[str, ...] | None:
    """Return the objections in *reply*, one sentence each; () for a clean draft; None where it says nothing usable.

    A first or last line that is CLEAN and nothing else (in whatever emphasis or case) settles it, whatever else is
    said: the tests judge next, and a needless rewrite costs more than a violation that they will show anyhow.
    Otherwise each line is a violation; where there is a list, each of its items. Lines that clear one rule or say in
    a sentence that all is clean, headings, quoted code, tags, thoughts and excuses are none.
    """
    said = _strip_fence(reply.rpartition("</think>")[2].strip())
    lines = [_strip_tags(line.strip()) for line in _drop_fenced_lines(said)]
    lines = [line for line in lines if line.strip(" \t*_`#>-=.|")]
    if not lines:
        return None
    if _is_clean(lines[0]) or _is_clean(lines[-1]):
        return ()
    cleared = [line for line in lines if _is_clearance(line)]
    lines = [line for line in lines if not (_is_clearance(line) or _is_heading(line) or _EXCUSE.match(line))]
    items = [line for line in lines if _ITEM.match(line)]
    found = tuple(_strip_list_mark(line)[:LONGEST] for line in items or lines)
    return found[:MOST] or (() if cleared else None)


def _strip_fence(said: str) -> str:
    """Return a verdict or list without the fence around it, if the fence holds nothing else."""
    match said.splitlines():
        case [opened, *inner, closed] if _FENCE.match(opened) and _FENCE.match(closed):
            if any(_is_clean(line) or _ITEM.match(line.strip()) for line in inner):
                return "\n".join(inner)
    return said


def _drop_fenced_lines(said: str) -> Iterator[str]:
    """Yield the lines of *said* outside fences; one that is never closed extends to the end."""
    closing = ""
    for line in said.splitlines():
        mark = _FENCE.match(line)
        if closing:
            closing = "" if mark and mark[1].startswith(closing) and line.strip() == mark[1] else closing
        elif mark:
            closing = mark[1]
        else:
            yield line


def _strip_list_mark(line: str) -> str:
    """Return *line* without the mark of a list."""
    return _ITEM.sub("", line, count=1).strip()


def _strip_tags(line: str) -> str:
    """Return *line* without the tags around it: `<answer>CLEAN</answer>`; a tag alone is nothing."""
    opened, closed = _TAG.match(line), line.rpartition("<")
    if opened and opened.end() == len(line):
        return ""
    ends = opened and not opened[1] and closed[1] + closed[2] == f"</{opened[2]}>"
    return line[opened.end() : len(closed[0])].strip() if opened and ends else line


def _normalise_word(text: str) -> str:
    return text.strip(f" \t*_`#>\"'.!{APPROVAL}").casefold()


def _is_clean(line: str) -> bool:
    return _normalise_word(_strip_list_mark(line)) in CLEAN


def _is_clearance(line: str) -> bool:
    """Return whether *line* clears one rule or all: `imports resolve: CLEAN`, `The code is CLEAN.`, and so on."""
    last = _normalise_word(re.split(r"[:–—|]|\s->?\s", line.rstrip("| "))[-1])
    return last in CLEARED or _APPROVES.fullmatch(_normalise_word(_strip_list_mark(line))) is not None


def _is_heading(line: str) -> bool:
    return line.rstrip(" *_").endswith(":") or line.startswith("#")
