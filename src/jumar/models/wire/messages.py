"""Converts messages to the client's types and its response to jumar's. A provider gets its own parts back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from jumar.core.run.strategy import Message, Tool
from jumar.core.state.reply import Reply, ToolCall
from jumar.models.wire.prompt_prefix import is_continuation
from jumar.models.wire.redaction import clean, clean_json

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.tools import ToolDefinition

MALFORMED = "_malformed"
"""The one argument of a call whose arguments are no JSON object: their text."""

PER_MESSAGE = 32
"""Tokens around a message: role, delimiters, ids, whatever a chat template adds."""

PER_REQUEST = 512
"""Tokens of a request whatever it says: the system prompt that some templates bring, the opening of the answer."""

PER_TOOLS = 2048
"""Tokens of the prompt that providers put before tools."""

MOST_BYTES_PER_TOKEN = 12
"""Of a whole prompt: prose takes 4 to 5 bytes a token, code 3, scripts of several bytes a character no more. A server
that counts fewer counted only what was not in its cache, which is no bound on what it counts when that is gone. Text
that does pack tighter, such as long runs of one character, is estimated by its bytes: too much is set aside."""

JSON_OBJECT = msgspec.json.Decoder(dict[str, object])


class Transcript:
    """The prompts of one model, as its client takes them, and their sizes.

    A memo: of a prompt that begins with the whole of the one before only the rest is read. It answers as if it
    remembered nothing.
    """

    def __init__(self) -> None:
        self._newest: tuple[Message, ...] = ()
        self._turns: list[ModelMessage] = []
        """Up to the newest reply."""
        self._parts: list[ModelRequestPart] = []
        """Parts that follow it."""
        self._turned, self._leading = 0, True
        """Number of those messages, and whether all of them are the system's."""
        self._said, self._whole = [0], [0]
        """Bytes of the first n messages: those that every provider counts, and all of them."""

    def convert(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """Return *messages* in the client's types: those between two replies are one request."""
        from pydantic_ai import messages as ai  # noqa: PLC0415  0.5 s, and not part of the core install

        self._follow(messages)
        for message in messages[self._turned :]:
            self._leading = self._leading and message.role == "system"
            if message.role == "assistant":
                reply = _build_response(message)
                self._turns += [ai.ModelRequest(parts=self._parts), reply] if self._parts else [reply]
                self._parts = []
            else:
                self._parts.append(_build_part(message, leading=self._leading))
            self._turned += 1
        return [*self._turns, ai.ModelRequest(parts=[*self._parts])] if self._parts else [*self._turns]

    def bound_tokens(self, messages: Sequence[Message], tools: Sequence[Tool], measured: tuple[int, int]) -> int:
        """Return an upper bound of the tokens that the provider will count for this prompt.

        A token of a byte-pair encoding covers at least one byte, so there are never more of them than bytes. *measured*
        (n, tokens) is what the provider counted for the first n messages and the tools: only the rest is estimated,
        unless so few cannot be all of them.
        """
        self._follow(messages)
        for message in messages[len(self._whole) - 1 :]:
            said, beside = _count_bytes(message), _count_name_bytes(message)
            self._said.append(self._said[-1] + said)
            self._whole.append(self._whole[-1] + said + beside)
        count, tokens = measured
        least = self._said[count] if 0 < count <= len(messages) else math.inf
        if tokens > 0 and least <= tokens * MOST_BYTES_PER_TOKEN:
            return tokens + self._whole[-1] - self._whole[count] + PER_MESSAGE * (len(messages) - count) + PER_REQUEST
        schemas = sum(
            2 * _count_json_bytes(tool.parameters) + _count_json_bytes([tool.name, tool.description]) + PER_MESSAGE
            for tool in tools
        )
        most = self._whole[-1] + PER_MESSAGE * len(messages) + PER_REQUEST
        return most + (schemas + PER_TOOLS if tools else 0)

    def _follow(self, messages: Sequence[Message]) -> None:
        """Forget the messages read so far if *messages* do not continue them."""
        messages = tuple(messages)
        if not is_continuation(self._newest, messages):
            self._turns, self._parts, self._turned, self._leading = [], [], 0, True
            self._said, self._whole = [0], [0]
        self._newest = messages


def bound_tokens(messages: Sequence[Message], tools: Sequence[Tool], measured: tuple[int, int]) -> int:
    """Return an upper bound of the tokens that the provider will count for this prompt; see `Transcript`."""
    return Transcript().bound_tokens(messages, tools, measured)


def _build_part(message: Message, *, leading: bool) -> ModelRequestPart:
    """Return *message* as a part of a request.

    A `system` message that is not among the first ones goes as the user's: not every wire has a place for it.
    """
    from pydantic_ai import messages as ai  # noqa: PLC0415  as above

    if message.role == "tool":
        return ai.ToolReturnPart(message.name, message.content, message.call_id)
    system = message.role == "system" and leading
    return ai.SystemPromptPart(message.content) if system else ai.UserPromptPart(message.content)


def convert_tools(tools: Sequence[Tool]) -> list[ToolDefinition]:
    """Return *tools* in the client's types."""
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415  as above

    return [
        # Strict is what the client would add where a schema allows it: a schema goes out as it is.
        ToolDefinition(
            name=tool.name, parameters_json_schema=tool.parameters, description=tool.description, strict=False
        )
        for tool in tools
    ]


def build_reply(response: ModelResponse, secrets: tuple[str, ...]) -> Reply:
    """Convert *response* to a reply, without *secrets*.

    Thinking, signatures and the like go into `Reply.opaque`: the parts in their order, texts by their length and calls
    by nothing, since both stand in the reply already.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415  as above

    ((dumped),) = ModelMessagesTypeAdapter.dump_python([response], mode="json", warnings=False)
    texts: list[str] = []
    calls: list[ToolCall] = []
    parts: list[dict[str, object]] = []
    for part in dumped["parts"]:
        kept = {k: clean_json(v, secrets) for k, v in part.items() if v is not None}
        if part["part_kind"] == "text":
            texts.append(clean(part["content"], secrets))
            kept["content"] = len(texts[-1])
        elif part["part_kind"] == "tool-call":
            arguments = _convert_arguments(part["args"], secrets)
            calls.append(ToolCall(clean(part["tool_name"], secrets), arguments, clean(part["tool_call_id"], secrets)))
            kept = {k: v for k, v in kept.items() if k not in ("tool_name", "args", "tool_call_id")}
        parts.append(kept)
    plain = all(part.keys() <= {"part_kind", "content"} and part["part_kind"] != "thinking" for part in parts)
    source = {k: dumped[k] for k in ("provider_name", "canonical_system") if dumped.get(k)}
    return Reply("".join(texts), tuple(calls), {} if plain else {"parts": parts, "source": source})


def _build_response(message: Message) -> ModelResponse:
    """Return *message* as a response of the client's types.

    In its own parts where they fit its text and calls, else in plain ones.
    """
    from pydantic_ai import messages as ai  # noqa: PLC0415  as above

    calls: list[dict[str, object]] = [
        {"part_kind": "tool-call", "tool_name": c.name, "args": dict(c.arguments), "tool_call_id": c.id}
        for c in message.tool_calls
    ]
    text = [{"part_kind": "text", "content": message.content}] if message.content else []
    parts, source = _restore_parts(message, calls), message.opaque.get("source")
    whole: dict[str, object] = {"kind": "response", "parts": [*text, *calls] if parts is None else parts}
    whole |= source if isinstance(source, Mapping) else {}
    # The client stamps what has no time; the request it sends does not hold it.
    (response,) = ai.ModelMessagesTypeAdapter.validate_python([whole])
    if not isinstance(response, ai.ModelResponse):
        raise TypeError("a reply is a response")
    return response


def _restore_parts(message: Message, calls: Sequence[dict[str, object]]) -> list[dict[str, object]] | None:
    """Return the parts of the reply as they came, or None if there are none or they contradict it."""
    kept = message.opaque.get("parts")
    if not isinstance(kept, list | tuple):
        return None
    parts, at, call = [], 0, iter(calls)
    for part in kept:
        kind, content = part.get("part_kind"), part.get("content")
        if kind == "text" and isinstance(content, int):
            parts.append({**part, "content": message.content[at : at + content]})
            at += content
        elif kind == "tool-call":
            own = next(call, None)
            if own is None:
                return None
            parts.append({**part, **own})
        else:
            parts.append(dict(part))
    return parts if at == len(message.content) and next(call, None) is None else None


def _convert_arguments(args: object, secrets: tuple[str, ...]) -> dict[str, object]:
    """Return the arguments of a call.

    What is no JSON object that can be written down becomes the one argument `MALFORMED`.
    """
    try:
        decoded = JSON_OBJECT.decode(args or "{}") if isinstance(args, str) else args or {}
        clear = clean_json(decoded, secrets)
        msgspec.json.encode(clear)
    except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, RecursionError):
        clear = None
    return (
        clear if isinstance(clear, dict) else {MALFORMED: clean(args if isinstance(args, str) else repr(args), secrets)}
    )


def _count_name_bytes(message: Message) -> int:
    """Count the bytes of names in *message* and of the provider's opaque parts: some providers do not bill them."""
    return 4 * (len(message.name) + len(message.call_id)) + (_count_json_bytes(message.opaque) if message.opaque else 0)


def _count_bytes(message: Message) -> int:
    """Count the bytes of *message* that every provider bills."""
    calls = sum(_count_json_bytes([c.name, c.arguments, c.id]) for c in message.tool_calls)
    return len(message.content.encode("utf-8", "replace")) + calls


def _count_json_bytes(value: object) -> int:
    """Count the bytes of *value* as JSON, with the least escaping."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))
