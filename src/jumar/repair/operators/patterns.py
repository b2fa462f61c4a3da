"""Mutation operators on strings: a regular expression piece by piece, any other text at its ends and spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(
    r"""
    (?P<group>\((?:\?(?:P<\w+>|P=\w+\)|<?[=!]|:|\#|[aiLmsux-]+\)|\())?)
  | (?P<set>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])
  | (?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|\d{1,3}|.))
  | (?P<repeat>(?:[*+?]|\{\d*,?\d*\})[?+]?)
  | (?P<anchor>[\^$])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_CLASSES = {
    r"\d": (r"\D", r"\w", r"[\d.]", r"\S"),
    r"\w": (r"\W", r"[\w-]", r"\S", "."),
    r"\s": (r"\S", " ", r"[\s_]", r"\W"),
}
_GROUPS = {"(": ("(?:",), "(?:": ("(",)}
_SET_ADDITIONS = (r"\s", r"\d", r"\w", ".", ":", "-", "_", "/", ",", "+", "'", '"', "?", "#", "&", "=", " ", "@", "%")
_ATOMS = (r"\b", r"\s*", r"\.?", ":?", "-?", "/?", r"\d*", "^", "$", r"\s+", ".*?", " ?", "[+-]?")
_LONGEST = 1500
"""Longer texts are documents, not patterns."""

Rewriting = tuple[str, str, float]
"""The new text, what was done, and its prior."""


def rewrite_pattern(body: str, *, raw: bool, pattern: bool) -> Iterator[Rewriting]:
    """Yield changes: the texts one small step from *body*, the source text between the quotes."""
    if len(body) > _LONGEST:
        return
    if pattern:
        yield from _rewrite_regex(body)
    else:
        yield from _rewrite_plain(body, raw=raw)


def _rewrite_plain(body: str, *, raw: bool) -> Iterator[Rewriting]:
    if body != body.strip():
        yield body.strip(), "spaces at the ends of the string dropped", 0.4
    yield f"{body} ", "space added to the string", 0.25
    yield f" {body}", "space added to the string", 0.25
    if len(body) > 1:
        yield body[1:], "first character of the string dropped", 0.2
        if raw or body[-2] != "\\":
            yield body[:-1], "last character of the string dropped", 0.2
    for change, what in ((body.lower(), "lower"), (body.upper(), "upper")):
        if change != body and "\\" not in body:
            yield change, f"string in {what} case", 0.2
    yield from _rewrite_format(body)


def _rewrite_format(body: str) -> Iterator[Rewriting]:
    """Yield changes: the conversions of `%` and `format` strings."""
    for match in re.finditer(r"%([-+ 0#]*\d*(?:\.\d+)?)([sdrfgi])", body):
        for kind in "sdrfg":
            if kind != match[2]:
                yield f"{body[: match.start(2)]}{kind}{body[match.end(2) :]}", f"%{match[2]} to %{kind}", 0.4
    for match in re.finditer(r"(?<!%)%0?(\d+)d|:0?(\d+)\}?", body):
        group = 1 if match[1] else 2
        for digits in (int(match[group]) + 1, max(int(match[group]) - 1, 0)):
            yield f"{body[: match.start(group)]}{digits}{body[match.end(group) :]}", "width of the format", 0.35
    for match in re.finditer(r"\.(\d)([fge])", body):
        for digits in (int(match[1]) + 1, max(int(match[1]) - 1, 0)):
            yield f"{body[: match.start(1)]}{digits}{body[match.end(1) :]}", "precision of the format", 0.4


def _rewrite_regex(body: str) -> Iterator[Rewriting]:
    for match in _PIECE.finditer(body):
        before, piece, after = body[: match.start()], match[0], body[match.end() :]
        for new, what, prior in _rewrite_piece(match.lastgroup or "other", piece):
            yield before + new + after, what, prior
        if match.lastgroup in ("set", "escape") or piece in ").":
            yield from _add_repetition(before + piece, after)
        for atom in _ATOMS:
            if not after.startswith(atom) and match.lastgroup != "repeat":
                yield f"{before}{atom}{piece}{after}", f"{atom} added to the pattern", 0.2
    for atom in (r"\b", "$", r"\s*", r"\Z", ".*"):
        yield body + atom, f"{atom} added at the end of the pattern", 0.35


def _add_repetition(before: str, after: str) -> Iterator[Rewriting]:
    """Yield changes: a repetition put on a piece that has none."""
    if after[:1] not in ("*", "+", "?", "{"):
        for repeat, prior in (("?", 0.4), ("+", 0.4), ("*", 0.4)):
            yield before + repeat + after, f"{repeat} added to the pattern", prior


def _rewrite_piece(kind: str, piece: str) -> Iterator[Rewriting]:
    match kind:
        case "repeat":
            changes = (c for c in ("*", "+", "?", "*?", "+?", "") if c != piece)
            yield from ((c, f"repetition {piece} to {c or 'none'}", 0.5) for c in changes)
            yield from _rewrite_count(piece)
        case "set":
            yield from _rewrite_set(piece)
        case "anchor":
            yield "", f"{piece} dropped from the pattern", 0.5
        case "escape":
            yield "", f"{piece} dropped from the pattern", 0.35
            yield from ((c, f"{piece} to {c}", 0.4) for c in _CLASSES.get(piece, ()))
        case "group":
            yield from ((c, "group captures or not", 0.2) for c in _GROUPS.get(piece, ()))
        case _:
            yield from _rewrite_literal(piece)


def _rewrite_literal(piece: str) -> Iterator[Rewriting]:
    if piece == ".":
        yield r"\.", "dot of the pattern escaped", 0.5
    elif piece == "|":
        yield "", "alternatives of the pattern joined", 0.1
    elif piece not in "()#" and not piece.isspace():
        yield "", f"{piece} dropped from the pattern", 0.25
        yield f"{piece}?", f"{piece} made optional", 0.35


def _rewrite_count(piece: str) -> Iterator[Rewriting]:
    numbers = re.findall(r"\d+", piece)
    for number in numbers:
        for new in (int(number) + 1, int(number) - 1):
            if new >= 0:
                yield piece.replace(number, str(new), 1), "count of the pattern", 0.5
    if len(numbers) == 1 and "," not in piece:
        yield piece.replace("}", ",}"), "count of the pattern opened", 0.4
        yield piece.replace("{", "{1,"), "count of the pattern opened", 0.4


def _rewrite_set(piece: str) -> Iterator[Rewriting]:
    inverted = piece.startswith("[^")
    start = 2 if inverted else 1
    yield ("[" if inverted else "[^") + piece[start:], "character set inverted", 0.4
    for match in re.finditer(r"\\.|[^\\\-\]]-[^\\\-\]]|.", piece[start:-1]):
        rest = piece[:start] + piece[start:-1][: match.start()] + piece[start:-1][match.end() :] + "]"
        if len(rest) > start + 1:
            yield rest, f"{match[0]} dropped from the character set", 0.45
    for addition in _SET_ADDITIONS:
        if addition not in piece:
            end = f"{addition}]"
            yield f"{piece[:-1]}{end}", f"{addition} added to the character set", 0.4
