"""Read tools of a model: they show the tree as it was captured, never the disk. Every answer is bounded."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

import regex

from jumar.core.prompts.feedback import OUTPUT_LIMIT
from jumar.core.quoting import cut_middle

ROOM = OUTPUT_LIMIT - 200
"""Characters of one answer; the rest is for what it says beside."""

LINE = 400
"""Characters of a matching line that are shown."""

SEARCH_SECONDS = 2.0
"""For one whole search: a pattern of a model's may take exponential time."""

PATTERN, NESTED, REPEATS = 200, 8, 10_000
"""Characters of a pattern, groups within groups, and the product of all its counts. `regex` writes a body with a least
count out twice, on every level, and spends the memory before its time is looked at."""

LINE_SECONDS = 0.1
"""For one line: what a match remembers grows with its time, and is forgotten after the line."""

_TOKEN = re.compile(
    r"""(?P<whole> \\N\{[^}]*\} | \\. | \[\^?\]?(?:\\.|[^\]\\])*\] )  # an escape, a set: nothing in it opens anything
      | (?P<count> \{[0-9]*,?[0-9]*\} )
      | (?P<brace> \{ )                       # of no count: `regex` would take some as an approximate match
      | [()]""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"\(\?(#|[a-wyzA-Z-]*x)")
"""Pattern of a comment, or of the flag that allows one anywhere: a bracket in it would be counted."""


def list_files(paths: Iterable[str], path: str) -> dict[str, object]:
    """List those of *paths* that lie below *path* (all of them for ""), sorted: `{"ok", "files", "more"?}`."""
    found = sorted(p for p in paths if is_within(p, path))
    if not found and path:
        return _build_absent(path, "file or folder")
    shown, more = _select_fitting(found)
    return {"ok": True, "files": shown} | ({"more": more} if more else {})


def read_lines(files: Mapping[str, bytes], path: str, start: int, end: int) -> dict[str, object]:
    """Return lines *start* to *end* of *path*, from 1, both included, 0 for the last: `{"ok", "lines", "text"}`.

    A line ends where a line feed does, as in a traceback. What is too long is cut after a whole line, and `lines` says
    which ones are shown.
    """
    if path not in files:
        return _build_absent(path, "file")
    try:
        whole = re.findall(r"[^\n]*\n|[^\n]+", files[path].decode())
    except UnicodeDecodeError:
        return _build_refusal(f"{path} is no UTF-8 text")
    if not whole:
        return {"ok": True, "lines": "0-0 of 0", "text": ""}
    last = min(end or len(whole), len(whole))
    if not 1 <= start <= last:
        return _build_refusal(
            f"{path} has {len(whole)} lines, counted from 1; {start} to {end or len(whole)} are not there"
        )
    wanted = whole[start - 1 : last]
    shown, more = _select_fitting(wanted, gap=0)
    if not shown:  # one line alone is too long
        shown, more = [cut_middle(wanted[0], ROOM)], len(wanted) - 1
    return {"ok": True, "lines": f"{start}-{last - more} of {len(whole)}", "text": "".join(shown)}


def search_files(
    files: Mapping[str, bytes], pattern: str, path: str, seconds: float = SEARCH_SECONDS
) -> dict[str, object]:
    """Search for the expression *pattern* below *path*: `{"ok", "matches": ["path:line: text"], "more"?}`.

    A search that takes longer than *seconds* is given up.
    """
    wanted = compile_pattern(pattern)
    if isinstance(wanted, str):
        return _build_refusal(wanted)
    if path and not any(is_within(p, path) for p in files):
        return _build_absent(path, "file or folder")
    shown, room = list[str](), ROOM
    try:
        for row in _find_matches(files, wanted, path, _start_countdown(seconds)):
            room -= len(row) + 1
            if room < 0:
                return {"ok": True, "matches": shown, "more": True}
            shown.append(row)
    except (TimeoutError, MemoryError, RecursionError):
        return _build_refusal(f"{pattern!r} takes too long; use a simpler expression or a narrower path")
    return {"ok": True, "matches": shown}


def is_within(path: str, folder: str) -> bool:
    """Return whether *path* is *folder* or lies below it; everything lies below ""."""
    inside = folder.rstrip("/")
    return not inside or path == inside or path.startswith(f"{inside}/")


def compile_pattern(pattern: str) -> regex.Pattern[str] | str:
    """Return *pattern*, compiled, or why it cannot be.

    No expression, or one that could take the machine's memory.

    What Python does not know is refused: the rest that `regex` knows (recursion, approximate matches, sets of strings)
    has no bound on its work.
    """
    if why := _explain_too_complex(pattern):
        return f"{why}; use a simpler expression"
    try:
        with warnings.catch_warnings(action="ignore"):  # both warn of sets that may change their meaning one day
            re.compile(pattern)
            return regex.compile(_TOKEN.sub(_escape_brace, pattern))
    except (re.error, regex.error, ValueError) as error:
        return f"{pattern!r} is no regular expression: {error}; put a backslash before special characters"
    except (RecursionError, MemoryError, OverflowError):
        return f"{pattern!r} is too much to search for; use a simpler expression"


def _explain_too_complex(pattern: str) -> str:
    """Return why *pattern* is too complex to compile; empty: it is not."""
    if len(pattern) > PATTERN:
        return f"the pattern has {len(pattern)} characters, at most {PATTERN} are searched for"
    if _COMMENT.search(pattern):
        return f"{pattern!r} has a comment or the flag x, which no search needs"
    depth = deepest = 0
    repeats = 1
    for token in _TOKEN.finditer(pattern):
        depth += (token[0] == "(") - (token[0] == ")")
        deepest = max(deepest, depth)
        if token["count"]:
            repeats *= max([1, *map(int, re.findall("[0-9]+", token[0]))])
    if deepest > NESTED:
        return f"{pattern!r} has groups {deepest} deep, at most {NESTED} are searched for"
    return f"the counted repeats of {pattern!r} come to more than {REPEATS}" if repeats > REPEATS else ""


def _escape_brace(token: re.Match[str]) -> str:
    return r"\{" if token["brace"] else token[0]


def _find_matches(
    files: Mapping[str, bytes], wanted: regex.Pattern[str], path: str, left: Callable[[], float]
) -> Iterator[str]:
    for name in sorted(p for p in files if is_within(p, path)):
        if b"\0" in files[name]:  # nobody searches a binary file by lines
            continue
        for number, line in enumerate(files[name].decode("utf-8", "replace").split("\n"), 1):
            if wanted.search(line.removesuffix("\r"), timeout=min(left(), LINE_SECONDS)):
                yield f"{name}:{number}: {line[:LINE].rstrip()}"


def _start_countdown(seconds: float) -> Callable[[], float]:
    """Return a function that gives the rest of *seconds*, and raises TimeoutError when they are over."""
    until = monotonic() + seconds

    def left() -> float:
        now = monotonic()
        if now >= until:
            raise TimeoutError
        return until - now

    return left


def _select_fitting(rows: list[str], gap: int = 1) -> tuple[list[str], int]:
    """Return the first *rows* that fit, each with *gap* characters after it, and the number of the others."""
    room = ROOM
    for count, row in enumerate(rows):
        room -= len(row) + gap
        if room < 0:
            return rows[:count], len(rows) - count
    return rows, 0


def _build_absent(path: str, what: str) -> dict[str, object]:
    return _build_refusal(f"there is no {what} {path!r}; list_files without a path shows what there is")


def _build_refusal(reason: str) -> dict[str, object]:
    return {"ok": False, "error": reason}
