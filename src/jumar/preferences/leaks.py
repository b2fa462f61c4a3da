"""Finds words and other signs that show the label of a completion to a reader who does not judge its code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jumar.core.run.strategy import Message

MARKERS = (
    re.compile(r"\b\d+ (?:passed|failed|errors?|xfailed|skipped)\b(?:,| in \d)"),
    re.compile(r"={3,} .*\b(?:passed|failed|FAILURES|ERRORS|short test summary info)\b"),
    re.compile(r"\btest_result\b|\bdriver\.run_tests\b|\bevents\.jsonl\b|\.jumar/"),
    re.compile(r"\b(?:grade [ABCDX](?:\+H)?|verdict: \w+|stop: (?:green|final|attempts))\b"),
    re.compile(r"\b\d+ of \d+ (?:tests? )?pass(?:ed)?\b"),
    re.compile(r"<(?:chosen|rejected|label|reward)>|\b(?:reward|label) ?[:=] ?(?:-?[01]\b|true|false)", re.IGNORECASE),
)
"""Words of test runners, of jumar and of graders that no solution needs."""

OUTCOMES = r"(?:PASSED|FAILED|ERROR|XFAIL|SKIPPED|passed|failed)"

WORD = re.compile(r"[^\W\d]\w{3,}")
"""Words that the statistic looks at, beside names of tools and the end."""

FEWEST_TASKS = 4
"""A word that tells the label tells it in this many tasks at least; in fewer it may be what the task is about."""


def find_leak(completion: Iterable[Message], expected: Iterable[str]) -> str:
    """Return the first words of *completion* that reveal test results; empty: there are none.

    *expected* are the ids of the tests: one beside an outcome is a result.
    """
    tests = "|".join(re.escape(i) for i in sorted({i.rpartition("::")[2] for i in expected}, key=len, reverse=True))
    beside = (
        re.compile(rf"\b{OUTCOMES}\b[^\n]{{0,80}}(?:{tests})|(?:{tests})[^\n]{{0,80}}\b{OUTCOMES}\b") if tests else None
    )
    patterns = (*MARKERS, beside) if beside else MARKERS
    found = (pattern.search(text) for text in _list_texts(completion) for pattern in patterns)
    return next((str(each.group()) for each in found if each is not None), "")


def _list_texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        yield message.content
        for call in message.tool_calls:
            yield from _list_strings(call.arguments)


def _list_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _list_strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_strings(each)


class LabelledText(msgspec.Struct, frozen=True):
    """A completion as the statistic uses it."""

    task: str
    chosen: bool
    completion: tuple[Message, ...]


def find_telltale_signs(examples: Sequence[LabelledText]) -> tuple[str, ...]:
    """Return signs that all completions of one label have, and none of the other, in several tasks.

    Signs are words, names of tools and the message at the end. A trainer would learn the sign in the place of the work.
    What every task asks for stands on both sides.
    """
    sides = {side: [e for e in examples if e.chosen is side] for side in (True, False)}
    if not all(sides.values()) or len({e.task for e in examples}) < FEWEST_TASKS:
        return ()
    counted = {
        side: Counter(sign for e in found for sign in set(_list_signs(e.completion))) for side, found in sides.items()
    }
    return tuple(
        sorted(
            sign
            for side, signs in counted.items()
            for sign, count in signs.items()
            if count == len(sides[side]) and not counted[not side][sign]
        )
    )


def _list_signs(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the words of *messages*, each tool that they call, and who speaks last and what that message calls."""
    yield from WORD.findall("\n".join(_list_texts(messages)))
    for message in messages:
        yield from (f"a call of {call.name}" for call in message.tool_calls)
    for last in messages[-1:]:
        yield f"an end by the {last.role}"
        yield from (f"an end with {call.name}" for call in last.tool_calls)
        if not last.tool_calls:
            yield "an end without a call"
