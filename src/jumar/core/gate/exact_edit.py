"""Replaces text that occurs exactly once in a file. A merely close match is shown, never changed."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

import msgspec

SHOWN = 5
"""Line numbers of matches that are told at most."""
QUOTED = 12
"""Lines of the closest region that are quoted at most."""
WIDTH = 160
"""Characters of a line that are compared and quoted at most."""
CANDIDATES = 40
"""Lines that are compared letter by letter at most: the cost of a refusal has a bound."""
CLOSE = 0.6
"""The likeness, from 0 to 1, below which nothing is called close (difflib's own bound for a close match)."""


class EditRefused(msgspec.Struct, frozen=True):
    """An edit that was not made."""

    reason: str
    """One sentence for the model, which may end in quoted lines."""


def replace_once(text: str, old: str, new: str) -> str | EditRefused:
    """Return *text* with its one occurrence of *old* replaced by *new*, character for character, or why not.

    Occurrences that overlap count as several. The cost is linear in the lengths, also of a refusal.
    """
    if not old:
        return EditRefused("`old` is empty, which is nowhere and everywhere; use write_file to write a whole file")
    if old == new:
        return EditRefused("`old` and `new` are the same: the edit changes nothing")
    at = text.find(old)
    if at < 0:
        return EditRefused(_explain_absent(text, old))
    if text.find(old, at + 1) < 0:
        return text[:at] + new + text[at + len(old) :]
    return EditRefused(_explain_several(text, old, at))


def _explain_several(text: str, old: str, at: int) -> str:
    lines: list[int] = []
    line, seen = 1, 0
    while at >= 0 and len(lines) <= SHOWN:
        line += text.count("\n", seen, at)
        lines.append(line)
        seen, at = at, text.find(old, at + 1)
    places = sorted(set(lines[:SHOWN]))
    shown = ", ".join(map(str, places)) + (" and more" if len(lines) > SHOWN else "")
    where = f"lines {shown}" if len(places) > 1 else f"line {shown}, more than once"
    return f"`old` is not unique: it begins in {where}; add surrounding lines until it occurs once"


def _explain_absent(text: str, old: str) -> str:
    """Explain that *old* does not occur, and show what it may have meant."""
    if not text.strip():
        return "`old` does not occur: the file is empty; use write_file"
    if not old.strip():
        return "`old` is nothing but blanks and does not occur like this; quote the lines around them"
    lines = text.split("\n")
    region = _find_ignoring_spacing(lines, old)
    if region:
        first, last = region
        how = _describe_difference("\n".join(lines[first : last + 1]), old)
        found = _quote_lines(lines, first, last)
        return f"`old` does not occur; {_format_lines(first, last)} would match but for {how}:\n{found}"
    closest = _find_closest(lines, old)
    if closest is None:
        return "`old` does not occur, nor anything like it; read the file and quote it exactly"
    first, last = closest
    return (
        f"`old` does not occur; the closest text is {_format_lines(first, last)}:\n{_quote_lines(lines, first, last)}"
    )


def _format_lines(first: int, last: int) -> str:
    return f"lines {first + 1} to {last + 1}" if last > first else f"line {first + 1}"


def _quote_lines(lines: list[str], first: int, last: int) -> str:
    shown = range(first, min(last + 1, first + QUOTED))
    quoted = "\n".join(f"{n + 1}: {_clip(lines[n])}" for n in shown)
    return quoted + (f"\n(and {last - shown[-1]} lines more)" if last > shown[-1] else "")


def _clip(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}..."


def _strip_spacing(text: str) -> str:
    """Return *text* without any whitespace and in lower case."""
    return "".join(text.split()).casefold()


def _find_ignoring_spacing(lines: list[str], old: str) -> tuple[int, int] | None:
    """Return the first and last line of an occurrence of *old* that differs in whitespace and case alone."""
    parts = [_strip_spacing(line) for line in lines]
    wanted = _strip_spacing(old)
    at = "".join(parts).find(wanted)
    if at < 0:
        return None
    ends = list(accumulate(map(len, parts)))
    first = next(n for n, end in enumerate(ends) if end > at)
    last = next(n for n, end in enumerate(ends) if end >= at + len(wanted))
    return first, last


def _describe_difference(region: str, old: str) -> str:
    """Describe how *region* differs from *old*, if that is only in whitespace or case."""
    if old.replace("\r", "") in region.replace("\r", ""):
        return "line endings"
    if "".join(old.split()) not in "".join(region.split()):
        return "upper and lower case" if old.casefold() in region.casefold() else "case and whitespace"
    if _map_lines(old, str.rstrip) in _map_lines(region, str.rstrip):
        return "trailing whitespace"
    return "indentation" if _map_lines(old, str.strip) in _map_lines(region, str.strip) else "whitespace"


def _map_lines(text: str, trim: Callable[[str], str]) -> str:
    return "\n".join(trim(line) for line in text.strip("\n").split("\n"))


def _find_closest(lines: list[str], old: str) -> tuple[int, int] | None:
    """Return the region that shares most lines with *old*.

    If it shares none, the one around the line most like one of it.
    """
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    size = min(len(wanted), len(lines))
    places = {line: n for n, line in reversed(list(enumerate(wanted))) if any(map(str.isalnum, line))}
    shifts = Counter(n - places[bare] for n, line in enumerate(lines) if (bare := line.strip()) in places)
    if shifts:
        first = max(0, min(shifts.most_common(1)[0][0], len(lines) - size))
        return first, first + size - 1
    offset, key = max(enumerate(wanted), key=lambda item: min(len(item[1]), WIDTH))
    near = _find_most_similar_line(lines, key)
    if near is None:
        return None
    first = max(0, min(near - offset, len(lines) - size))
    return first, first + size - 1


def _find_most_similar_line(lines: list[str], wanted: str) -> int | None:
    """Return the number of the line most like *wanted*, among those that share most words with it."""
    words = set(re.findall(r"\w+", wanted[:WIDTH]))
    common = ((len(words.intersection(re.findall(r"\w+", line[:WIDTH]))), -n) for n, line in enumerate(lines))
    candidates = sorted((pair for pair in common if pair[0]), reverse=True)[:CANDIDATES]
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:WIDTH])
    best: tuple[float, int] = (0.0, 0)
    for _, minus in candidates:
        matcher.set_seq1(lines[-minus].strip()[:WIDTH])
        best = max(best, (matcher.ratio(), minus))
    return -best[1] if best[0] >= CLOSE else None


def reapply_edit(before: bytes | None, after: bytes | None, now: bytes | None) -> bytes | EditRefused | None:
    """Apply the edit that made *after* of *before* to *now*; None stands for no file.

    What was replaced, with as many whole lines around it as make it stand once in *before*, must stand once in *now*.
    """
    if now == before:
        return after
    if before is None or after is None or now is None:
        return EditRefused("the file was made or deleted by another edit")
    same = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    most = min(len(before), len(after)) - same
    tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    start, end = before.rfind(b"\n", 0, same) + 1, _find_line_end(before, len(before) - tail)
    while before.count(before[start:end]) != 1 and (start, end) != (0, len(before)):
        start, end = before.rfind(b"\n", 0, max(0, start - 1)) + 1, _find_line_end(before, end)
    old = before[start:end]
    if not old or now.count(old) != 1:
        return EditRefused("what it replaces is not there without the other edit")
    return now.replace(old, before[start:same] + after[same : len(after) - tail] + before[len(before) - tail : end])


def _find_line_end(text: bytes, at: int) -> int:
    """Return the end of the line that *at* lies in; if that line ends at *at*, the end of the next one."""
    found = text.find(b"\n", at)
    return len(text) if found < 0 else found + 1
