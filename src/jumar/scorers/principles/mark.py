"""Marks in a judge's answer: those whose quotes are in the code count, any other one is void."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from jumar.scorers.principles.principle import Principle

QUOTE_CHARACTERS = 6
"""Shorter quotes, such as a bracket, are in any code."""

QUOTES = 5
"""Quotes that are read of one mark."""


class PrincipleMark(msgspec.Struct, frozen=True):
    """The judge's mark for one principle."""

    principle: str
    mark: int | None
    """0, 1 or 2; None: the score is void."""
    quotes: tuple[str, ...] = ()
    """Lines of the code that it rests on."""
    places: tuple[str, ...] = ()
    """`path:line` of each quote."""
    why: str = ""
    """Reason that it is void."""


class _Mark(msgspec.Struct):
    principle: str
    mark: Annotated[int, msgspec.Meta(ge=0, le=2)]
    quotes: list[str] = []


class _Answer(msgspec.Struct):
    marks: list[dict[str, Any]]


def read_marks(answer: str, principles: Sequence[Principle], files: Mapping[str, str]) -> tuple[PrincipleMark, ...]:
    """Return a mark for each of *principles* as *answer* gives them; *files* is the judged code, path -> text."""
    given = _parse(answer)
    if given is None:
        return tuple(
            PrincipleMark(p.name, None, why="the judge's answer is no JSON object of marks") for p in principles
        )
    return tuple(_check(principle.name, given.get(principle.name, []), files) for principle in principles)


def find_quote(quote: str, files: Mapping[str, str]) -> str:
    """Return `path:line` of *quote* in *files*; empty: it is not there. Indentation is ignored."""
    wanted = [line.strip() for line in quote.splitlines() if line.strip()]
    if sum(map(len, wanted)) < QUOTE_CHARACTERS:
        return ""
    for path, text in files.items():
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        for start in range(len(lines) - len(wanted) + 1):
            if all(_is_quoted(part, lines[start + n][1]) for n, part in enumerate(wanted)):
                return f"{path}:{lines[start][0]}"
    return ""


def _is_quoted(part: str, line: str) -> bool:
    """Return whether *part* quotes *line*: one word of it could be in any code."""
    return part in line and 2 * len(part) >= len(line)


def take_majority(principle: str, marks: Sequence[PrincipleMark]) -> PrincipleMark:
    """Return the mark that more than half of the valid ones of *marks* give for *principle*; void: there is none."""
    valid = [mark for mark in marks if mark.mark is not None]
    if not valid:
        return marks[0] if marks else PrincipleMark(principle, None, why="it was not judged")
    value, count = Counter(mark.mark for mark in valid).most_common(1)[0]
    if 2 * count <= len(valid):
        told = ", ".join(str(mark.mark) for mark in valid)
        return PrincipleMark(principle, None, why=f"the judge gave {told}: no mark has a majority")
    return next(mark for mark in valid if mark.mark == value)


def _parse(answer: str) -> dict[str, list[_Mark]] | None:
    found = re.search(r"\{.*\}", answer, re.DOTALL)
    try:
        decoded = msgspec.json.decode(found[0] if found else "", type=_Answer)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
    given: dict[str, list[_Mark]] = {}
    for each in decoded.marks:
        try:
            mark = msgspec.convert(each, _Mark)
        except msgspec.ValidationError:
            continue
        given.setdefault(mark.principle, []).append(mark)
    return given


def _check(principle: str, given: Sequence[_Mark], files: Mapping[str, str]) -> PrincipleMark:
    if len(given) != 1:
        why = "the judge gave several marks for it" if given else "the judge gave no mark of 0, 1 or 2 for it"
        return PrincipleMark(principle, None, why=why)
    mark = given[0]
    quotes = tuple(mark.quotes[:QUOTES])
    places = tuple(find_quote(quote, files) for quote in quotes)
    if not quotes:
        return PrincipleMark(principle, None, why="the judge quoted no line for it")
    if missing := [quote for quote, place in zip(quotes, places, strict=True) if not place]:
        return PrincipleMark(
            principle, None, quotes, why=f"the judge quoted what is not in the code: {missing[0][:120]!r}"
        )
    return PrincipleMark(principle, mark.mark, quotes, places)
