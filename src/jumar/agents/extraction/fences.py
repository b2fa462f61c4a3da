"""Parses fences as CommonMark defines them, and the names beside them. An unclosed fence means a reply cut off."""

from __future__ import annotations

from functools import cache

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

VOCABULARY = frozenset({
    "a", "all", "and", "answer", "at", "changed", "code", "complete", "content", "contents", "corrected", "entire",
    "file", "filename", "filepath", "final", "fixed", "for", "full", "here", "here's", "here’s", "implementation",
    "improved", "in", "is", "modified", "my", "name", "new", "now", "of", "path", "revised", "rewritten",
    "solution", "source", "the", "this", "to", "updated", "version", "whole", "with", "your",
})  # fmt: skip
"""The words that may stand beside a path in a line that does nothing but name the block after it."""

DECORATION = " \t`*_#:'\"“”‘’()[]{}<>,;—–-"
"""Characters that models wrap a path in."""


class FenceName(msgspec.Struct, frozen=True):
    """A path as a model wrote it, beside a fence."""

    path: str
    sure: bool
    """The path is marked as code or stands alone; else the line is a sentence that may speak of something else."""


class Fence(msgspec.Struct, frozen=True):
    """One fenced code block of a reply."""

    label: str
    """The first word of the info string in lower case, if it is no path: what language the block claims to be."""
    text: str
    closed: bool
    start: int
    """The line of the opening fence, from 0."""
    end: int
    """The line after the closing fence."""
    names: tuple[FenceName, ...]
    """From the info string, the line or heading before, and the first comment."""
    holds_fence: bool
    """A line of the text could open a fence as long as the block's own: where the block ends is a matter of opinion."""
    excerpt: bool
    """The info string quotes a range of lines (`12:40:app.py`)."""
    markup: str
    """Characters that opened it."""
    nested: bool
    """It stands in a list or a quotation."""


def parse_fences(content: str, targets: tuple[str, ...]) -> list[Fence]:
    r"""Parse the fences of *content*, which has `\n` line ends; *targets* are paths that need not look like one.

    Time is linear in the length of *content*.
    """
    found: list[Fence] = []
    before = heading = ""
    opened = ""
    for token in _build_parser().parse(content):
        if token.type == "heading_open":
            opened = "heading"
        elif token.type == "inline":
            before = token.content.rstrip().rpartition("\n")[2]
            if opened == "heading":
                heading = before
            opened = ""
        elif token.type == "fence" and token.map:
            found.append(_build_fence(token, (before, heading), targets))
            before = ""
    return found


@cache
def _build_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").disable(["inline", "html_block", "reference"])


def _build_fence(token: Token, beside: tuple[str, str], targets: tuple[str, ...]) -> Fence:
    start, end = token.map or (0, 0)
    text = token.content
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    words = _split_words(token.info)
    names = [FenceName(word, sure=True) for word in words if is_path(word) or word in targets]
    names += _find_in_comment(text)
    before, heading = (_find_in_line(line, targets) for line in beside)
    names += before or heading
    label = words[0].lower() if words and not is_path(words[0]) else ""
    return Fence(
        label=label,
        text=text,
        closed=end - start == lines + 2,
        start=start,
        end=end,
        names=tuple(names),
        holds_fence=any(line.lstrip().startswith(token.markup) for line in text.split("\n")),
        excerpt=bool(token.info.strip()[:1].isdigit()),
        markup=token.markup,
        nested=token.level > 0,
    )


def is_path(word: str) -> bool:
    """Return whether *word* can only be the path of a file: a stem, a dot and an extension of letters."""
    name = word.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return bool(
        dot
        and stem.strip(".")
        and extension.isalnum()
        and extension[:1].isalpha()
        and len(extension) <= 10  # noqa: PLR2004  the longest in use, such as .properties
        and all(char.isalnum() or char in "._-/\\@+:~" for char in word)
    )


def _split_words(info: str) -> list[str]:
    """Split the words of *info*: `python title="a.py"`, `python:a.py` or `py {file: a.py}`."""
    for mark in "={},\"'":
        info = info.replace(mark, " ")
    words: list[str] = []
    for word in info.split():
        drive = len(word) > 2 and word[1] == ":" and word[2] in "\\/"  # noqa: PLR2004  C:\
        words += [word] if drive else [part for part in word.split(":") if part]
    return words


def _find_in_comment(text: str) -> list[FenceName]:
    """Return the path in the first line of a block, if that is a comment with nothing else."""
    first = text.lstrip("\ufeff\n").partition("\n")[0].strip()
    for mark in ("#", "//", "/*", "-- ", ";", "<!--"):
        if first.startswith(mark) and not first.startswith("#!"):
            return _find_in_line(first.removeprefix(mark).removesuffix("*/").removesuffix("-->"), ())
    return []


def _find_in_line(line: str, targets: tuple[str, ...]) -> list[FenceName]:
    """Return the path a line names, if it holds exactly one and otherwise only words of the vocabulary."""
    alone = line.strip(DECORATION)
    if alone in targets:
        return [FenceName(alone, sure=True)]
    words = line.split()
    bare = [word.strip(DECORATION).rstrip(".") for word in words]
    at = [n for n, word in enumerate(bare) if is_path(word)]
    if len(at) != 1:
        return []
    others = [word.lower() for n, word in enumerate(bare) if n != at[0] and word]
    if not all(word in VOCABULARY or word.rstrip(".").isdigit() for word in others):
        return []
    marked = any(mark in words[at[0]] for mark in "`*")
    return [FenceName(bare[at[0]], sure=marked or not others)]
