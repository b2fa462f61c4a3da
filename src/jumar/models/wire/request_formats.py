"""Limits the requests of foreign agents to a provider: none may cost more than was reserved, or be unmetered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from jumar.models.wire.http_client import ONLY_COMPLETION_TOKENS
from jumar.models.wire.providers import OPENAI, Wire, find_provider
from jumar.models.wire.request_bounds import TurnBound, bound_rest, bound_turn

Json = dict[str, Any]

LEAST_THINKING = 1024
"""Anthropic's least budget for thinking; where there is no room for it, there is none."""

UNCOUNTED = ("stream", "stream_options", "metadata")
"""Fields that no model reads."""

SHARED = "model stream tools tool_choice temperature top_p metadata"
"""Fields that every form has."""


class RequestFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Format of requests of one provider's API."""

    name: Literal["chat", "responses", "messages"]
    wire: Wire
    path: str
    """Below the provider's base URL."""
    turns: str
    """The field that holds the conversation."""
    caps: tuple[str, ...]
    """Fields that cap the output, the newest word for it first."""
    fields: frozenset[str]
    """Fields that are sent on. Anything else is left out: it could ask for another model, a dearer tier, several
    answers."""
    refused: Mapping[str, str] = {}
    """Fields without which the request would mean something else -> why it cannot be made."""


UNSEEN = "the provider would add what it keeps itself, and nobody here can count that; send the whole conversation"

CHAT = RequestFormat(
    name="chat",
    wire="openai",
    path="/chat/completions",
    turns="messages",
    caps=("max_completion_tokens", "max_tokens"),
    fields=frozenset(
        f"{SHARED} messages stop seed parallel_tool_calls user stream_options response_format presence_penalty "
        "frequency_penalty logit_bias logprobs top_logprobs reasoning_effort verbosity prompt_cache_key "
        "safety_identifier functions function_call store "
        # Words of compatible servers.
        "top_k min_p repetition_penalty chat_template_kwargs enable_thinking thinking reasoning include_reasoning "
        "guided_json guided_regex guided_choice guided_grammar max_completion_tokens max_tokens".split()
    ),
)

RESPONSES = RequestFormat(
    name="responses",
    wire="openai",
    path="/responses",
    turns="input",
    caps=("max_output_tokens",),
    fields=frozenset(
        f"{SHARED} input instructions parallel_tool_calls user reasoning text store include "
        "prompt_cache_key safety_identifier stream_options top_logprobs max_tool_calls max_output_tokens".split()
    ),
    refused={
        "previous_response_id": UNSEEN,
        "conversation": UNSEEN,
        "prompt": UNSEEN,
        "background": "an answer that comes later is not metered; ask without background",
    },
)

MESSAGES = RequestFormat(
    name="messages",
    wire="anthropic",
    path="/v1/messages",
    turns="messages",
    caps=("max_tokens",),
    fields=frozenset(
        f"{SHARED} messages system stop_sequences top_k thinking output_config output_format max_tokens".split()
    ),
    refused={
        "mcp_servers": "servers that the provider calls are not metered; take mcp_servers out",
        "container": "containers of the provider are not metered; take container out",
    },
)

FORMS = (CHAT, RESPONSES, MESSAGES)

CLIENT_TOOLS = (
    "function", "custom", "bash_", "text_editor_", "memory_", "computer_", "local_shell", "apply_patch",
)  # fmt: skip
"""Prefixes of the types of tools that run with the agent. All others run with the provider, who bills them apart."""

UNBOUNDED = frozenset({"input_file", "file", "item_reference", "input_audio", "audio", "video_url", "container_upload"})
"""Types of content that may be more tokens than they are bytes, or are kept by the provider."""


class ForwardRefusal(msgspec.Struct, frozen=True):
    """Reason why a request is not forwarded, for its client."""

    status: int
    why: str


class ForwardedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that may be forwarded."""

    form: RequestFormat
    body: bytes
    headers: Mapping[str, str] = {}
    stream: bool
    usage_wanted: bool
    """True if the agent itself asked for the usage in a stream."""
    max_output: int
    head: str
    """Digest of all but the conversation: requests with the same head continue each other."""
    turns: tuple[TurnBound, ...]
    """The turns of the conversation."""
    overhead: int
    """The most tokens that all else can be."""


def find_form(path: str) -> RequestFormat | None:
    """Return the form that clients post to *path*, with or without the version before it."""
    plain = path.partition("?")[0].rstrip("/").removeprefix("/v1")
    return next((form for form in FORMS if form.path.removeprefix("/v1") == plain), None)


def parse_request(
    form: RequestFormat, raw: bytes, model: str, max_output: int, base_url: str = ""
) -> ForwardedRequest | ForwardRefusal:
    """Return the request *raw* in the form in which it may be sent.

    To *model* (`PROVIDER:NAME`), with at most *max_output* tokens to come.
    """
    try:
        return _build_request(form, json.loads(raw), model, max_output, base_url)
    except ValueError:
        return ForwardRefusal(400, "the body is no JSON")
    except RecursionError:  # from the reading of it, or from what is done with it
        return ForwardRefusal(400, "the body is nested too deep")
    except (TypeError, AttributeError, LookupError) as error:
        # Of the agent's body nothing is known: what it has in the wrong place must not end the run, nor others' runs.
        return ForwardRefusal(400, f"the body has something in the wrong place: {error}")


def _build_request(
    form: RequestFormat, body: object, model: str, max_output: int, base_url: str
) -> ForwardedRequest | ForwardRefusal:
    if not isinstance(body, dict) or not isinstance(body.get(form.turns), str | list):
        return ForwardRefusal(400, f"the body is no JSON object with `{form.turns}`")
    if why := _explain_unmetered(form, body):
        return ForwardRefusal(400, why)
    wanted = isinstance(options := body.get("stream_options"), dict) and options.get("include_usage") is True
    kept = _strip_ttl({k: v for k, v in body.items() if k in form.fields and v is not None})
    kept |= {"model": model.partition(":")[2]}
    cap = _cap_output(form, kept, max_output, newer=_needs_newer_cap(model, base_url))
    stream = kept.get("stream") is True
    kept.pop("stream_options", None)
    if stream and form is CHAT:
        kept["stream_options"] = {"include_usage": True}
    turns = kept[form.turns] if isinstance(kept[form.turns], list) else [kept[form.turns]]
    rest = {k: v for k, v in kept.items() if k not in (form.turns, *form.caps, *UNCOUNTED)}
    head, overhead = bound_rest(rest)
    return ForwardedRequest(
        form=form,
        body=json.dumps(kept).encode(),
        stream=stream,
        usage_wanted=wanted,
        max_output=cap,
        head=head,
        turns=tuple(map(bound_turn, turns)),
        overhead=overhead,
    )


def _needs_newer_cap(model: str, base_url: str) -> bool:
    """Return whether *model* refuses the older name of the cap on a chat completion."""
    name = model.partition(":")[2].rpartition("/")[2]
    own = find_provider(model).base_url == OPENAI and (base_url or OPENAI).rstrip("/") == OPENAI
    return own or name.startswith(ONLY_COMPLETION_TOKENS)


def _explain_unmetered(form: RequestFormat, body: Json) -> str:
    """Return why the cost of *body* could not be known, or empty."""
    for name, why in form.refused.items():
        if body.get(name) not in (None, False, [], {}):
            return f"`{name}` is not offered by this proxy: {why}"
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        kind = tool.get("type", "custom") if isinstance(tool, dict) else ""
        if not isinstance(kind, str) or not kind.startswith(CLIENT_TOOLS):
            return f"tools of the provider ({kind!r}) are billed apart and not offered by this proxy; take them out"
    if form is RESPONSES and isinstance(body["input"], list) and any(map(_is_reference, body["input"])):
        return f"an item that is named by its id alone is not offered by this proxy: {UNSEEN}"
    for part in _list_objects(body.get(form.turns)):
        kind = part.get("type") or ""
        if not isinstance(kind, str):
            return f"a `type` in `{form.turns}` is no text: {str(kind)[:50]}"
        source = part.get("source") if isinstance(part.get("source"), dict) else part
        stored = "file_id" in part or (isinstance(source, dict) and "file_id" in source)
        bound = kind != "document" or (isinstance(source, dict) and source.get("type") in ("text", "content"))
        if stored or kind in UNBOUNDED or not bound:
            return f"nobody can say beforehand how many tokens {kind!r} will be; send text or an image instead"
    return ""


def _is_reference(item: object) -> bool:
    """Return whether *item* of a conversation is a mere reference, whose type may be left out."""
    return isinstance(item, dict) and item.get("type") is None and "role" not in item


def _list_objects(value: object) -> Iterator[Json]:
    """Yield all JSON objects in *value*, however deep, but for the arguments of calls and schemas."""
    todo = [value]
    while todo:
        here = todo.pop()
        if isinstance(here, list):
            todo += here
        elif isinstance(here, dict):
            yield here
            todo += [v for k, v in here.items() if k not in ("input", "arguments", "source")]
            if isinstance(source := here.get("source"), dict):
                todo.append(source.get("content"))


def _strip_ttl(value: Any) -> Any:
    """Return *value* with prompt caches of the usual duration alone: longer ones cost more to write."""
    if isinstance(value, dict):
        return {
            k: {"type": "ephemeral"} if k == "cache_control" and isinstance(v, dict) else _strip_ttl(v)
            for k, v in value.items()
        }
    return [_strip_ttl(v) for v in value] if isinstance(value, list) else value


def _cap_output(form: RequestFormat, body: Json, most: int, *, newer: bool) -> int:
    """Cap the output of *body* at *most* tokens, in the field its server knows; return the cap."""
    given = [value for name in form.caps if isinstance(value := body.pop(name, None), int) and value > 0]
    cap = min([most, *given])
    body[form.caps[0 if newer or len(form.caps) == 1 else -1]] = cap
    thinking = body.get("thinking")
    if form is MESSAGES and isinstance(thinking, dict) and isinstance(thinking.get("budget_tokens"), int):
        room = min(thinking["budget_tokens"], cap // 2)
        body["thinking"] = {**thinking, "budget_tokens": room} if room >= LEAST_THINKING else {"type": "disabled"}
    return cap
