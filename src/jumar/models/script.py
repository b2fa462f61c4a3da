"""A model that answers from a file: JSON lines, one reply a call. It calls no provider and reads no prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply, ToolCall
from jumar.errors import BadInput
from jumar.models.wire.jsonl import SCRIPT, Tokens, Usd, build_exhausted_reply, decode_line, number_lines, read_once
from jumar.ports import Answer, Ask


class ScriptedUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Token counts that a scripted reply reports."""

    input_tokens: Tokens = 0
    cached_tokens: Tokens = 0
    output_tokens: Tokens = 0


class ScriptLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a script; every key but `content`, `tool_calls` or `error` may be absent."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: ScriptedUsage = ScriptedUsage()
    usd: Usd = 0.0
    error: Literal["", "timeout", "rate_limit", "server", "refusal"] = ""


class ScriptModel:
    """Replays *lines*; the position comes from the journal, so that a resumed run gets the same replies."""

    def __init__(self, lines: tuple[ScriptLine, ...], name: str = "script") -> None:
        self.name = name
        self._lines = lines

    def worst(self, ask: Ask) -> Cost:
        """Return the cost of the next line."""
        line = self.get_line(ask.position)
        if line is None:
            return Cost()
        return Cost(line.usd, line.usage.input_tokens + line.usage.output_tokens)

    async def complete(self, ask: Ask) -> Answer:
        """Return the line at the run's position; when the script is used up, `final`."""
        line = self.get_line(ask.position)
        if line is None:
            return Answer(reply=build_exhausted_reply(SCRIPT, ask.position))
        calls = tuple(
            ToolCall(call.name, call.arguments, call.id or f"call_{ask.position}_{n}")
            for n, call in enumerate(line.tool_calls)
        )
        return Answer(
            reply=Reply(line.content, calls),
            input_tokens=line.usage.input_tokens,
            cached_tokens=line.usage.cached_tokens,
            output_tokens=line.usage.output_tokens,
            usd=line.usd,
            error=line.error,
        )

    def get_line(self, position: int) -> ScriptLine | None:
        """Return the reply to the call at *position*; None when the script is used up.

        A provider that failed last stays down: its further failures cost nothing.
        """
        if position < len(self._lines):
            return self._lines[position]
        return ScriptLine(error=self._lines[-1].error) if self._lines and self._lines[-1].error else None


def read_script(path: Path) -> bytes:
    """Return the bytes of the script at *path*, read once (it may be a pipe).

    Raises:
        BadInput: if it cannot be read.
    """
    return read_once(path, "script")


def parse_script(data: bytes, name: str) -> ScriptModel:
    """Return the model that answers with the lines of *data*; *name* is what the journal calls it.

    Raises:
        BadInput: if a line is not a reply; the sentence names the line.
    """
    lines = []
    for number, text in number_lines(data, name):
        line = decode_line(text, ScriptLine, f"line {number} of {name} is no reply")
        if not (line.content or line.tool_calls or line.error):
            raise BadInput(f"line {number} of {name} has neither content nor tool_calls nor error")
        lines.append(line)
    return ScriptModel(tuple(lines), name)
