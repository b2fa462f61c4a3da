"""Decodes a provider's answer and its usage, whole or streamed. Data that does not parse is no answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from jumar.core.state.reply import Reply, ToolCall
from jumar.models.wire.jsonl import MOST_TOKENS
from jumar.models.wire.messages import JSON_OBJECT, MALFORMED
from jumar.models.wire.redaction import clean, clean_json
from jumar.models.wire.request_formats import CHAT, MESSAGES, RequestFormat
from jumar.models.wire.response_types import (
    AnthropicMessage,
    Chat,
    Choice,
    CompletionMessage,
    CompletionToolCall,
    Details,
    Function,
    Incomplete,
    Response,
    UsageCounts,
)

Json = dict[str, Any]
Shape = TypeVar("Shape")


class DecodedReply(msgspec.Struct, frozen=True, kw_only=True):
    """Content of an answer and the usage that it reports."""

    content: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Of each tool call its name, its arguments as text, and its id."""
    input_tokens: int = 0
    """All of the prompt, cached tokens included."""
    cached_tokens: int = 0
    written_tokens: int = 0
    """Tokens of the prompt that were written to the provider's cache."""
    output_tokens: int = 0
    charged: object = None
    """Cost that the answer itself reports."""
    cut: bool = False
    """True if the answer ended at its token limit."""
    refused: str = ""
    """Reason why the answer was withheld; empty if it was not."""
    failed: str = ""
    """Error reported by a stream that had begun well; empty if there is none."""
    whole: bool = True
    """True if the answer came to its end."""


def decode_answer(form: RequestFormat, data: bytes, *, stream: bool) -> DecodedReply | None:
    """Decode the answer *data* to a request of *form*; None if it is no such answer."""
    try:
        if not stream:
            return _decode_whole(form, json.loads(data))
        events = tuple(_parse_events(data))
        return (
            _join_chunks(events)
            if form is CHAT
            else _join_message(events)
            if form is MESSAGES
            else _join_response(events)
        )
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, msgspec.ValidationError):
        return None


def build_reply(answer: DecodedReply, secrets: tuple[str, ...]) -> Reply:
    """Return *answer* in the form that the journal keeps."""
    calls = tuple(
        ToolCall(clean(name, secrets), _decode_arguments(text, secrets), clean(call_id, secrets))
        for name, text, call_id in answer.calls
    )
    return Reply(clean(answer.content, secrets), calls, cut=answer.cut)


def strip_usage(data: bytes) -> bytes:
    """Return the stream *data* of a chat completion without the event that has no choices.

    Not every client can read it.
    """
    events = data.replace(b"\r\n", b"\n").split(b"\n\n")
    return b"\n\n".join(event for event in events if not _is_only_usage(event))


def _is_only_usage(event: bytes) -> bool:
    try:
        piece = json.loads(event.partition(b"data:")[2])
    except ValueError:
        return False
    return isinstance(piece, dict) and piece.get("choices") == [] and bool(piece.get("usage"))


def _parse_events(data: bytes) -> Iterator[Json]:
    """Yield the JSON objects of a stream of server-sent events."""
    for event in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        text = "\n".join(line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:"))
        if text == "[DONE]":
            yield {"type": "done"}
        elif text:
            piece = json.loads(text)
            if not isinstance(piece, dict):
                raise TypeError("an event is an object")
            yield piece


def _decode_whole(form: RequestFormat, body: Json) -> DecodedReply:
    if form is CHAT:
        return _decode_chat(_convert(body, Chat))
    return (
        _decode_message(_convert(body, AnthropicMessage))
        if form is MESSAGES
        else _decode_response(_convert(body, Response))
    )


def _convert(value: object, kind: type[Shape]) -> Shape:
    return msgspec.convert(value, kind, strict=False)


def _decode_chat(chat: Chat, *, whole: bool = True) -> DecodedReply:
    choice = chat.choices[0]
    message = choice.message or CompletionMessage()
    usage = chat.usage or UsageCounts()
    hits = max(
        _limit_tokens((usage.prompt_tokens_details or Details()).cached_tokens),
        _limit_tokens(usage.prompt_cache_hit_tokens),
    )
    withheld = choice.finish_reason == "content_filter"
    return DecodedReply(
        content=message.content or "",
        calls=tuple((c.function.name or "", c.function.arguments or "", c.id or "") for c in message.tool_calls or ()),
        input_tokens=_limit_tokens(usage.prompt_tokens),
        cached_tokens=min(hits, _limit_tokens(usage.prompt_tokens)),
        output_tokens=_limit_tokens(usage.completion_tokens),
        charged=usage.cost,
        cut=choice.finish_reason == "length",
        refused=message.refusal or ("the answer was withheld" if withheld else ""),
        whole=whole,
    )


def _decode_response(response: Response) -> DecodedReply:
    parts = [part for item in response.output if item.type == "message" for part in item.content or ()]
    usage = response.usage or UsageCounts()
    cached = _limit_tokens((usage.input_tokens_details or Details()).cached_tokens)
    why = (response.incomplete_details or Incomplete()).reason
    refusals = [part.refusal for part in parts if part.refusal]
    return DecodedReply(
        content="".join(part.text or "" for part in parts),
        calls=tuple(
            (
                item.name or item.type,
                _encode_arguments(item.arguments if item.input is None else item.input),
                item.call_id,
            )
            for item in response.output
            if item.call_id is not None
        ),
        input_tokens=_limit_tokens(usage.input_tokens),
        cached_tokens=min(cached, _limit_tokens(usage.input_tokens)),
        output_tokens=_limit_tokens(usage.output_tokens),
        cut=why == "max_output_tokens",
        refused=refusals[0] if refusals else "the answer was withheld" if why == "content_filter" else "",
        failed=str((response.error or {}).get("message") or "it failed") if response.status == "failed" else "",
    )


def _decode_message(letter: AnthropicMessage, *, whole: bool = True) -> DecodedReply:
    usage = letter.usage or UsageCounts()
    cached, written = _limit_tokens(usage.cache_read_input_tokens), _limit_tokens(usage.cache_creation_input_tokens)
    return DecodedReply(
        content="".join(block.text or "" for block in letter.content if block.type == "text"),
        calls=tuple(
            (b.name or "", _encode_arguments(b.input), b.id or "") for b in letter.content if b.type == "tool_use"
        ),
        input_tokens=_limit_tokens(usage.input_tokens) + cached + written,
        cached_tokens=cached,
        written_tokens=written,
        output_tokens=_limit_tokens(usage.output_tokens),
        cut=letter.stop_reason == "max_tokens",
        refused="the answer was withheld" if letter.stop_reason == "refusal" else "",
        whole=whole,
    )


def _join_chunks(events: Sequence[Json]) -> DecodedReply:
    """Return a chat completion from its chunks."""
    chat, usage, finish = CompletionMessage(), None, None
    calls: dict[int, CompletionToolCall] = {}
    for event in events:
        if event.get("error"):
            return DecodedReply(failed=_map_error(event["error"]))
        piece = _convert(event, Chat)
        usage = piece.usage or usage
        for choice in piece.choices[:1]:
            delta, finish = choice.delta or CompletionMessage(), choice.finish_reason or finish
            chat = CompletionMessage((chat.content or "") + (delta.content or ""), delta.refusal or chat.refusal)
            for call in delta.tool_calls or ():
                old = calls.get(call.index, CompletionToolCall())
                name = old.function.name or call.function.name
                text = (old.function.arguments or "") + (call.function.arguments or "")
                calls[call.index] = CompletionToolCall(call.index, old.id or call.id, Function(name, text))
    message = CompletionMessage(chat.content, chat.refusal, list(calls.values()))
    return _decode_chat(Chat([Choice(message, finish_reason=finish)], usage), whole=finish is not None)


def _join_response(events: Sequence[Json]) -> DecodedReply:
    """Return a response of OpenAI's from its stream: the last event holds all of it."""
    for event in reversed(events):
        if event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            return _decode_response(_convert(event["response"], Response))
        if event.get("type") == "error":
            return DecodedReply(failed=_map_error(event.get("error") or event))
    return DecodedReply(whole=False)


def _join_message(events: Sequence[Json]) -> DecodedReply:
    """Return a message of Anthropic's from its stream."""
    blocks: dict[int, Json] = {}
    usage: Json = {}
    stop, whole = None, False
    for event in events:
        match event.get("type"):
            case "message_start":
                usage |= _drop_missing(event["message"].get("usage"))
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "input": None}
            case "content_block_delta":
                _add_delta(blocks[event["index"]], event["delta"])
            case "message_delta":
                stop = event["delta"].get("stop_reason") or stop
                usage |= _drop_missing(event.get("usage"))
            case "message_stop":
                whole = True
            case "error":
                return DecodedReply(failed=_map_error(event.get("error")))
    return _decode_message(
        _convert({"content": list(blocks.values()), "stop_reason": stop, "usage": usage}, AnthropicMessage), whole=whole
    )


def _drop_missing(usage: Json | None) -> Json:
    return {name: count for name, count in (usage or {}).items() if count is not None}


def _add_delta(block: Json, delta: Json) -> None:
    for name, field in (("text", "text"), ("partial_json", "input")):
        if isinstance(delta.get(name), str):
            block[field] = (block.get(field) or "") + delta[name]


def _map_error(error: object) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return str(said or "it failed")


def _limit_tokens(tokens: int | None) -> int:
    """Return *tokens* as reported, or none for an impossible number."""
    return tokens if tokens is not None and 0 <= tokens <= MOST_TOKENS else 0


def _encode_arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _decode_arguments(text: str, secrets: tuple[str, ...]) -> dict[str, object]:
    """Return the arguments of a call as an object; any other value becomes the one argument `MALFORMED`."""
    try:
        found = clean_json(JSON_OBJECT.decode(text or "{}"), secrets)
        msgspec.json.encode(found)
    except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {MALFORMED: clean(text, secrets)}
