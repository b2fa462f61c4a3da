"""Types of the providers' JSON answers, with only the fields read here. Other JSON is no answer."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]


class Details(msgspec.Struct, frozen=True):
    """Breakdown of a token count."""

    cached_tokens: int | None = None


class UsageCounts(msgspec.Struct, frozen=True):
    """Token counts of all request formats: each has some of them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: Details | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Function(msgspec.Struct, frozen=True):
    """A called function, or a piece of one."""

    name: str | None = None
    arguments: str | None = None


class CompletionToolCall(msgspec.Struct, frozen=True):
    """A call of a chat completion, or a piece of one."""

    index: int = 0
    id: str | None = None
    function: Function = Function()


class CompletionMessage(msgspec.Struct, frozen=True):
    """A message of a chat completion, or a piece of one."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CompletionToolCall] | None = None


class Choice(msgspec.Struct, frozen=True):
    """An answer of a chat completion, or a piece of one."""

    message: CompletionMessage | None = None
    delta: CompletionMessage | None = None
    finish_reason: str | None = None


class Chat(msgspec.Struct, frozen=True):
    """A chat completion, or a piece of one. https://platform.openai.com/docs/api-reference/chat."""

    choices: list[Choice] = []
    usage: UsageCounts | None = None


class Block(msgspec.Struct, frozen=True):
    """A part of a message of Anthropic's, or of an item of OpenAI's responses."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    arguments: Any = None
    call_id: str | None = None
    content: list[Block] | None = None


class Incomplete(msgspec.Struct, frozen=True):
    """Reason why a response ended early."""

    reason: str | None = None


class Response(msgspec.Struct, frozen=True):
    """A response of OpenAI's. https://platform.openai.com/docs/api-reference/responses."""

    output: list[Block]
    usage: UsageCounts | None = None
    status: str | None = None
    incomplete_details: Incomplete | None = None
    error: Json | None = None


class AnthropicMessage(msgspec.Struct, frozen=True):
    """A message of Anthropic's. https://docs.anthropic.com/en/api/messages."""

    content: list[Block]
    stop_reason: str | None = None
    usage: UsageCounts | None = None
