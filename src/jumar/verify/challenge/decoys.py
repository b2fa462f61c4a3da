"""Makes decoys of test files: what lies on the disk in a challenge, where the process has loaded another text.

Code under test may open any file of its room, in more ways than anybody lists. So nothing true is there: each constant
of a test file is another one of its kind, in every file of a challenge, whatever its coins say.
"""

from __future__ import annotations

import ast
import re
import string
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from jumar.verify.challenge.literals import find_own_characters
from jumar.verify.challenge.source_edits import Edits, ParsedSource, SourceEdit, parse_source

DIGITS = "123456789"
"""Digits without zero, which may not come first."""

BASES = {"0x": string.hexdigits, "0o": string.octdigits, "0b": "01"}
"""Beginnings of numbers that are not decimal, and their digits."""


def make_decoy(source: ParsedSource, ways: Iterable[Edits], random: Random) -> bytes | None:
    """Return *source* with other constants, on the same lines; None: that cannot be written down.

    They are drawn without regard to the old ones, so that nothing can be guessed from them. Of the *ways* to falsify
    its tests, which change exceptions as well, come in as many as fit beside that.
    """
    taken = sorted(_scramble(source, random))
    for edits in ways:
        if not any(_is_overlapping(taken, edit) for edit in edits):
            for edit in edits:
                insort(taken, edit)
    try:
        made = source.apply_edits(taken)
        parse_source(made.decode(source.encoding))
    except (SyntaxError, ValueError):
        return None
    return made


def _is_overlapping(taken: Sequence[SourceEdit], edit: SourceEdit) -> bool:
    """Return whether *edit* overlaps one of those *taken*, which are in order and apart from each other."""
    after = bisect_right(taken, edit)
    near = taken[max(0, after - 1) : after + 1]
    return any(other.start < edit.end and edit.start < other.end for other in near)


def _scramble(source: ParsedSource, random: Random) -> Iterator[SourceEdit]:
    for node in _list_constants(source.tree):
        text = source.get_segment(node)
        if isinstance(node.value, bool):
            yield source.replace_node(node, str(random.random() < 0.5))  # noqa: PLR2004  a fair coin
        elif isinstance(node.value, str | bytes):
            yield source.replace_node(node, _scramble_text(text, random))
        elif isinstance(node.value, int | float | complex):
            yield source.replace_node(node, _scramble_number(text, random))


def _list_constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants in *node*, but for pieces of formatted texts, which have no place of their own."""
    if isinstance(node, ast.Constant):
        yield node
    elif not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _list_constants(child)


def _scramble_number(text: str, random: Random) -> str:
    start, digits = text[:2].lower(), BASES.get(text[:2].lower())
    if digits:
        return start + re.sub("[0-9a-fA-F]", lambda _: random.choice(digits), text[2:])
    number, exponent, rest = re.fullmatch(r"([\d_.]*)([eE][-+]?)?(.*)", text).groups("")  # type: ignore[union-attr]
    return re.sub(r"\d", lambda _: random.choice(DIGITS), number) + exponent + rest


def _scramble_text(text: str, random: Random) -> str:
    new = list(text)
    for place in find_own_characters(text):
        if text[place].isalnum():
            kinds = {text[place].isdigit(): DIGITS, text[place].isupper(): string.ascii_uppercase}
            new[place] = random.choice(kinds.get(True, string.ascii_lowercase))
    return "".join(new)
