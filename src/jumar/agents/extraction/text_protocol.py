"""Plain-text action protocol: an action is a closed fence labelled as one. Nothing else is ever performed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from jumar.agents.extraction.extract import THOUGHTS, extract_prose, strip_reasoning
from jumar.agents.tools.catalogue import ToolSpec
from jumar.agents.tools.tool_calls import EXCERPT, is_encodable
from jumar.core.state.reply import ToolCall

WORD = "action"
"""The first word of the info string of an action's fence."""

MAIN = {
    "write_file": "text",
    "search": "pattern",
    "run_command": "command",
    "escalate": "reason",
    "final": "message",
    "run_tests": "test_ids",
    "replace_in_files": "pattern",
    "submit_plan": "steps",
}
"""Argument of each action that is the body of its block. The body of `edit_file` has two sections."""

OPEN, MIDDLE, CLOSE = "<" * 7, "=" * 7, ">" * 7

EXAMPLES = {
    "list_files": "```action list_files path=src\n```",
    "read_file": "```action read_file path=src/app.py start=1 end=80\n```",
    "search": "```action search path=src\ndef \\w+_total\n```",
    "write_file": "```action write_file path=src/new.py\nLIMIT = 10\n```",
    "edit_file": (
        f"```action edit_file path=src/app.py\n{OPEN} old\n    return a - b\n{MIDDLE}\n"
        f"    return a + b\n{CLOSE} new\n```"
    ),
    "delete_file": "```action delete_file path=src/old.py\n```",
    "run_tests": "```action run_tests\ntests/test_app.py::test_sum\n```",
    "edit_claim": "```action edit_claim test_id=tests/test_app.py::test_sum edit_target=src/app.py\n```",
    "submit_plan": (
        "```action submit_plan\n"
        '[{"title": "sum", "test_id": "tests/test_app.py::test_sum", "test_file_path": "tests/test_app.py"}]\n```'
    ),
    "set_mode": "```action set_mode mode=refactor\n```",
    "run_command": "```action run_command\npython -c 'import app; print(app.total([1, 2]))'\n```",
    "replace_in_files": "```action replace_in_files replacement=new_total paths=src/**/*.py\n\\bold_total\\b\n```",
    "escalate": (
        "```action escalate test_id=tests/test_app.py::test_sum\n"
        "The task asks for 0 on an empty list, this test for None.\n```"
    ),
    "final": "```action final\nThe sum is right now.\n```",
}
"""One block for each action."""

UNTOLD = "it cannot be told where the reply's reasoning ends; put the actions after it, and its tag before them"
"""An action within reasoning is a thought of one: where it might be, none is performed."""

INFO = 4_000
"""Characters of an action's first line: words of any length take time that grows with its square."""


def describe_actions(offers: Iterable[ToolSpec]) -> str:
    """Describe how to ask for *offers* in plain text, with one example each."""
    shown = "\n\n".join(f"{offer.name}: {offer.about}\n\n{EXAMPLES[offer.name]}" for offer in offers)
    return (
        "You act by fenced blocks in your reply. The first line of a block is ```action NAME key=value ..., its body "
        "is the text, pattern, message or command itself. Where the body holds ``` use a longer fence, such as ````. "
        "A block stands at the left margin. Several blocks are performed in their order; what came of them is told in "
        f"the next message. These are the actions, with an example each:\n\n{shown}"
    )


def parse_calls(content: str, offers: Sequence[ToolSpec]) -> tuple[ToolCall | str, ...]:
    """Return every action in *content*, in order, as a call of one of *offers*.

    A sentence stands for a block that is none.
    """
    if not is_encodable(content) or "\0" in content:
        return ("the reply holds characters that cannot stand in a text file",)
    answer = _strip_reasoning(content)
    if answer is None:
        return (UNTOLD,)
    # Time is linear without these rules, and what they would find is no fence.
    parser = MarkdownIt("commonmark").disable(["inline", "html_block", "reference"])
    fences = [token for token in parser.parse(answer) if token.type == "fence"]
    return tuple(_parse_call(token, offers) for token in fences if token.info.split()[:1] == [WORD])


def _strip_reasoning(content: str) -> str | None:
    """Return *content* without the reasoning before it; None if its end is missing or ambiguous."""
    found = strip_reasoning(content.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff\u200b"), ())
    if isinstance(found, str):
        return None
    answer, blocks = found
    outside = extract_prose(answer, blocks).lower()
    inside = [block.text.lower() for block in blocks]
    for tag in THOUGHTS:
        # A block that was never closed within reasoning reaches into the answer, and holds the end of the reasoning.
        swallowed = any(text.count(f"</{tag}>") > text.count(f"<{tag}>") for text in inside)
        if swallowed or f"<{tag}>" in outside or f"</{tag}>" in outside:
            return None
    return answer


def _parse_call(token: Token, offers: Sequence[ToolSpec]) -> ToolCall | str:
    start, end = token.map or (0, 0)
    if token.level > 0:
        return "an action stands in a list or a quotation; put its block at the left margin"
    # A fence that is closed spans its opening line, its lines and its closing line.
    if end - start != _count_lines(token.content) + 2:
        return f"the last action's block is not closed by {token.markup}; nothing of it was performed"
    words = _split_words(token.info)
    if isinstance(words, str):
        return words
    if not words:
        return f"an action needs a name: {', '.join(offer.name for offer in offers)}"
    name, *pairs = words
    arguments: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in arguments:
            return f"{pair[:EXCERPT]!r} is no key=value of its own; put quotes around a value with spaces"
        arguments[key] = value
    body = _parse_body(name, token.content, arguments)
    return body if isinstance(body, str) else ToolCall(name, body)


def _split_words(info: str) -> list[str] | str:
    """Return the words of *info* after its first, or why they cannot be read."""
    if len(info) > INFO:
        return f"the first line of an action has at most {INFO} characters; put long texts into the body"
    try:
        return shlex.split(info)[1:]
    except ValueError:
        return f"the quotes in {info.strip()[:EXCERPT]!r} are not closed"


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _parse_body(name: str, text: str, given: dict[str, object]) -> dict[str, object] | str:  # noqa: PLR0911  as they come
    """Return *given* with the body of an action's block, or why the body cannot be read."""
    if name == "edit_file":
        sections = _split_sections(text)
        return sections if isinstance(sections, str) else {**given, **sections}
    main = MAIN.get(name)
    if main is None or (main in given and not text.strip()):
        return given
    if main in given:
        return f"`{main}` of {name} is given twice: in the first line and as the body"
    if main == "steps":
        try:
            return {**given, main: json.loads(text)}
        except (ValueError, RecursionError):
            return f"the body of {name} is no JSON; give a list of steps"
    if main == "test_ids":
        return {**given, main: [line.strip() for line in text.splitlines() if line.strip()]}
    if main != "text":
        text = text.strip("\n")
        return {**given, main: text} if text.strip() or name == "final" else f"the body of {name} is empty"
    return {**given, main: text}


def _split_sections(text: str) -> dict[str, object] | str:
    """Return the two sections of an edit, each of whole lines."""
    lines = text.split("\n")
    marks = [(n, line[:7]) for n, line in enumerate(lines) if _is_mark(line)]
    if [mark for _, mark in marks] != [OPEN, MIDDLE, CLOSE]:
        order = f"{OPEN} old, {MIDDLE}, {CLOSE} new"
        return f"the body of edit_file needs three lines, each once and in this order: {order}; or use write_file"
    (first, _), (middle, _), (last, _) = marks
    if any(line.strip() for line in (*lines[:first], *lines[last + 1 :])):
        return f"the body of edit_file holds text before {OPEN} or after {CLOSE}"
    old, new = lines[first + 1 : middle], lines[middle + 1 : last]
    return {"old": "".join(f"{line}\n" for line in old), "new": "".join(f"{line}\n" for line in new)}


def _is_mark(line: str) -> bool:
    """Return whether *line* opens, divides or closes an edit: the sign seven times, at most followed by a word."""
    sign, rest = line[:7], line[7:].rstrip()
    return (sign in (OPEN, CLOSE) and (not rest or rest[0] == " ")) or (sign == MIDDLE and not rest)
