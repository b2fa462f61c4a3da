"""What a model may look at: the tree as it was captured, never the disk. Every answer is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

import regex

from jumar.core.prompts import OUTPUT_LIMIT, head_and_tail

ROOM = OUTPUT_LIMIT - 200
"""Characters of one answer; the rest is for what it says beside."""

LINE = 400
"""Characters of a matching line that are shown."""

SEARCH_SECONDS = 2.0
"""For one whole search: a pattern of a model's may take exponential time."""

_FUZZY = re.compile(r"(?<!\\)(?<!\\[NpP])\{(?!\d*,?\d*\})")
"""A brace that opens no number of repeats. `regex` would take some as an approximate match; Python as a brace."""


def listing(paths: Iterable[str], path: str) -> dict[str, object]:
    """Those of *paths* that lie below *path* (all of them for ""), sorted: `{"ok", "files", "more"?}`."""
    found = sorted(p for p in paths if within(p, path))
    if not found and path:
        return _absent(path, "file or folder")
    shown, more = _fitting(found)
    return {"ok": True, "files": shown} | ({"more": more} if more else {})


def lines(files: Mapping[str, bytes], path: str, start: int, end: int) -> dict[str, object]:
    """Lines *start* to *end* of *path*, from 1, both included, 0 for the last: `{"ok", "lines", "text"}`.

    A line ends where a line feed does, as in a traceback. What is too long is cut after a whole line, and `lines` says
    which ones are shown.
    """
    if path not in files:
        return _absent(path, "file")
    try:
        whole = re.findall(r"[^\n]*\n|[^\n]+", files[path].decode())
    except UnicodeDecodeError:
        return _no(f"{path} is no UTF-8 text")
    if not whole:
        return {"ok": True, "lines": "0-0 of 0", "text": ""}
    last = min(end or len(whole), len(whole))
    if not 1 <= start <= last:
        return _no(f"{path} has {len(whole)} lines, counted from 1; {start} to {end or len(whole)} are not there")
    wanted = whole[start - 1 : last]
    shown, more = _fitting(wanted, gap=0)
    if not shown:  # one line alone is too long
        shown, more = [head_and_tail(wanted[0], ROOM)], len(wanted) - 1
    return {"ok": True, "lines": f"{start}-{last - more} of {len(whole)}", "text": "".join(shown)}


def matches(files: Mapping[str, bytes], pattern: str, path: str, seconds: float = SEARCH_SECONDS) -> dict[str, object]:
    """Where the expression *pattern* matches below *path*: `{"ok", "matches": ["path:line: text"], "more"?}`.

    A search that takes longer than *seconds* is given up.
    """
    try:
        wanted = regex.compile(_FUZZY.sub(r"\\{", pattern))
    except regex.error as error:
        return _no(f"{pattern[:LINE]!r} is no regular expression: {error}; put a backslash before special characters")
    if path and not any(within(p, path) for p in files):
        return _absent(path, "file or folder")
    shown, room = list[str](), ROOM
    try:
        for row in _matching(files, wanted, path, _countdown(seconds)):
            room -= len(row) + 1
            if room < 0:
                return {"ok": True, "matches": shown, "more": True}
            shown.append(row)
    except TimeoutError:
        return _no(f"{pattern[:LINE]!r} takes too long; use a simpler expression or a narrower path")
    return {"ok": True, "matches": shown}


def within(path: str, folder: str) -> bool:
    """Whether *path* is *folder* or lies below it; everything lies below ""."""
    inside = folder.rstrip("/")
    return not inside or path == inside or path.startswith(f"{inside}/")


def _matching(
    files: Mapping[str, bytes], wanted: regex.Pattern[str], path: str, left: Callable[[], float]
) -> Iterator[str]:
    for name in sorted(p for p in files if within(p, path)):
        if b"\0" in files[name]:  # nobody searches a binary file by lines
            continue
        for number, line in enumerate(files[name].decode("utf-8", "replace").split("\n"), 1):
            if wanted.search(line.removesuffix("\r"), timeout=left()):
                yield f"{name}:{number}: {line[:LINE].rstrip()}"


def _countdown(seconds: float) -> Callable[[], float]:
    """Tells what is left of *seconds* from now on; raises TimeoutError when nothing is."""
    until = monotonic() + seconds

    def left() -> float:
        now = monotonic()
        if now >= until:
            raise TimeoutError
        return until - now

    return left


def _fitting(rows: list[str], gap: int = 1) -> tuple[list[str], int]:
    """As many of *rows* from the first as there is room for, each with *gap* characters after it; how many are left."""
    room = ROOM
    for count, row in enumerate(rows):
        room -= len(row) + gap
        if room < 0:
            return rows[:count], len(rows) - count
    return rows, 0


def _absent(path: str, what: str) -> dict[str, object]:
    return _no(f"there is no {what} {path!r}; list_files without a path shows what there is")


def _no(reason: str) -> dict[str, object]:
    return {"ok": False, "error": reason}
