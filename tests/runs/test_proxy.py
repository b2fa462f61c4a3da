"""What goes through the proxy: the key stays here, every call is capped and counted, and a stranger hears nothing."""

from __future__ import annotations

import base64
import json
import resource
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given as given_that
from hypothesis import strategies as st

from jumar.core.run.strategy import Request
from jumar.core.state.settings import Price, Route
from jumar.errors import BadInput
from jumar.models.metered_forward import ForwardedModel, ForwardedReply
from jumar.models.wire.prices import OwnPrices
from jumar.models.wire.request_formats import (
    CHAT,
    FORMS,
    MESSAGES,
    RESPONSES,
    ForwardedRequest,
    ForwardRefusal,
    RequestFormat,
    find_form,
    parse_request,
)
from jumar.ports import Answer, Ask
from jumar.runs.external.model_proxy import (
    BODY_BYTES,
    CONNECTIONS,
    VALUES,
    ProxyEndpoints,
    ProxyRequest,
    build_error,
    open_listeners,
    serve,
)
from support.processes import fake_provider as wire

KEY = "sk-the-key-of-the-person"
TOKEN = "the-token-of-the-run"  # noqa: S105  of a test
CAP = 500
BARE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without certificates, which take longer to read than all else here."""

Json = dict[str, Any]
HELLO = [{"role": "user", "content": "hello"}]

IMAGE = "data:image/gif;base64," + base64.b64encode(b"GIF89a" + bytes(90)).decode()
Made = Callable[[str], Json]
CALLED_IMAGES: list[Made] = [
    lambda text: {"role": "user", "type": "image", "content": text},
    lambda text: {"role": "user", "type": "input_image", "content": [{"type": "input_text", "text": text}]},
    lambda text: {
        "role": "user",
        "content": [{"type": "image", "x": {"type": "image", "x": {"type": "image", "t": text}}}],
    },
    lambda text: {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": text}}]},
    lambda text: {"role": "user", "content": [{"type": "image_url", "image_url": {"url": text}}]},
    lambda text: {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}, "text": text}]},
    lambda text: {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{text}"}]},
    lambda text: {"type": "local_shell_call", "action": {"env": {"type": "input_image", "image_url": text}}},
    lambda text: {"type": "function_call_output", "output": [{"type": "input_image", "image_url": IMAGE, "x": text}]},
    lambda text: {"role": "user", "content": [{"type": "tool_result", "content": text, "source": {"data": IMAGE}}]},
]
"""Turns with a text in a place that may be taken for an image's."""

NAMES = ("role", "type", "content", "source", "data", "image_url", "url", "output", "text", "x")
FIELDS = sorted({"input_tokens", *CHAT.fields, *RESPONSES.fields, *MESSAGES.fields, *RESPONSES.refused})

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["image", "input_image", IMAGE]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=25,
)


def model(url: str, name: str = "openai:gpt-run", price: Price | None = None) -> ForwardedModel:
    route = Route(model=name, max_output_tokens=CAP, base_url=url)
    return ForwardedModel(route, KEY, OwnPrices(price or Price(input=1.0, output=10.0, cached=0.1)))


def ask(seconds: float | None = None) -> Ask:
    return Ask(
        request=Request("mid", "proxy"), messages=(), tree="", files={}, red=(), green=(), localisation=None,
        position=0, refused=frozenset(), seed=0, seconds=seconds,
    )  # fmt: skip


class Desk:
    """Answers knocks by asking *model* at once, and keeps what came of it."""

    def __init__(self, asked_model: ForwardedModel, seconds: float | None = None) -> None:
        self.model, self.seconds = asked_model, seconds
        self.answers: list[Answer] = []
        self.reserved: list[float] = []
        self._turn = anyio.Lock()

    async def answer(self, knock: ProxyRequest) -> ForwardedReply:
        assert knock.form is not None
        wish = self.model.build_request(knock.form, knock.body, knock.headers)
        if isinstance(wish, ForwardRefusal):
            return build_error(wish.status, "refused", wish.why)
        async with self._turn:
            self.model.pending = wish
            self.reserved.append(self.model.worst(ask()).tokens)
            self.answers.append(await self.model.complete(ask(self.seconds)))
            assert self.model.given is not None
            return self.model.given


@asynccontextmanager
async def proxied(desk: Desk) -> AsyncIterator[tuple[httpx2.AsyncClient, ProxyEndpoints]]:
    async with open_listeners(TOKEN) as (listener, doors), anyio.create_task_group() as tasks:
        tasks.start_soon(serve, listener, doors, desk.answer, "gpt-run")
        headers = {"authorization": f"Bearer {TOKEN}", "x-api-key": TOKEN}
        async with httpx2.AsyncClient(base_url=doors.root, headers=headers, trust_env=False, verify=BARE) as client:
            yield client, doors
        tasks.cancel_scope.cancel()


def posted(desk: Desk, path: str, body: Json | bytes, headers: dict[str, str] | None = None) -> httpx2.Response:
    """The answer to one request through the proxy."""

    async def go() -> httpx2.Response:
        async with proxied(desk) as (client, _):
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await client.post(path, content=raw, headers=headers)

    return anyio.run(go)


def sse(*events: Json | str, named: bool = False) -> wire.Step:
    """A stream of server-sent events."""
    lines = []
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event)
        head = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        lines.append(f"{head}data: {text}\n\n")
    return wire.Step(raw="".join(lines).encode(), headers={"Content-Type": "text/event-stream"})


def delta(finish: str | None = None, **content: Any) -> Json:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish}]}


USAGE = {"prompt_tokens": 40, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 30}}
CHUNKS = (
    delta(role="assistant", content="Hel"),
    delta(content="lo"),
    delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": '{"comm'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": 'and": "ls"}'}}]),
    delta("tool_calls"),
)
STARTED = {"input_tokens": 5, "cache_read_input_tokens": 30, "output_tokens": 1}
CALLED: Json = {"type": "tool_use", "id": "t1", "name": "bash", "input": {}}
LETTER: tuple[Json, ...] = (
    {"type": "message_start", "message": {"usage": STARTED}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": CALLED},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"command"'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ': "ls"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)  # fmt: skip
RESPONSE: Json = {
    "id": "resp_1",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "f1", "name": "bash", "arguments": '{"command": "ls"}'},
    ],
    "usage": {"input_tokens": 35, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 30}},
}


class TestARequest:
    """It reaches the provider with the person's key, and nothing else of the agent's."""

    def test_goes_on_with_our_key_to_our_model_and_nothing_else_of_the_agent_s_headers(self) -> None:
        with wire.Server([wire.reply("hi", tokens=wire.Tokens(100, 20, 40))]) as server:
            desk = Desk(model(server.url))
            body = {"model": "gpt-of-the-agent", "messages": HELLO, "temperature": 0.5}
            answer = posted(desk, "/v1/chat/completions", body, {"cookie": "a=b", "openai-organization": "org"})
        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"] == "hi"
        sent = server.requests[0]
        assert sent.body == {"model": "gpt-run", "messages": HELLO, "temperature": 0.5, "max_tokens": CAP}
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert TOKEN not in str(sent)
        assert not {"cookie", "openai-organization", "x-api-key"} & sent.headers.keys()
        told_of = desk.answers[0]
        assert (told_of.input_tokens, told_of.cached_tokens, told_of.output_tokens) == (100, 40, 20)
        assert told_of.usd == pytest.approx((60 * 1.0 + 40 * 0.1 + 20 * 10.0) / 1e6)
        assert told_of.reply.content == "hi"

    def test_on_anthropic_s_wire_says_how_its_body_is_to_be_read(self) -> None:
        with wire.Server(
            [wire.reply("hi", ("bash", {"command": "ls"}), tokens=wire.Tokens(100, 20, 40, 10))]
        ) as server:
            desk = Desk(model(server.url, "anthropic:claude-run"))
            body = {"model": "claude-x", "messages": HELLO, "max_tokens": 64_000}
            headers = {"anthropic-version": "2024-01-01", "anthropic-beta": "b1,b2"}
            answer = posted(desk, "/v1/messages?beta=true", body, headers)
        sent = server.requests[0]
        assert sent.path == "/v1/messages"
        assert sent.body == {"model": "claude-run", "messages": HELLO, "max_tokens": CAP}
        assert sent.headers["x-api-key"] == KEY
        assert "authorization" not in sent.headers
        assert (sent.headers["anthropic-version"], sent.headers["anthropic-beta"]) == ("2024-01-01", "b1,b2")
        assert answer.json()["content"][1]["name"] == "bash"
        (told_of,) = desk.answers
        assert (told_of.input_tokens, told_of.cached_tokens, told_of.output_tokens) == (100, 40, 20)
        assert told_of.reply.tool_calls[0].arguments == {"command": "ls"}

    def test_of_openai_s_responses_is_forwarded_too(self) -> None:
        with wire.Server([wire.Step(raw=json.dumps(RESPONSE).encode())]) as server:
            desk = Desk(model(server.url))
            answer = posted(desk, "/v1/responses", {"model": "x", "input": "hello", "store": False})
        assert answer.json() == RESPONSE
        assert server.requests[0].body == {
            "model": "gpt-run",
            "input": "hello",
            "store": False,
            "max_output_tokens": CAP,
        }
        (told_of,) = desk.answers
        assert (told_of.input_tokens, told_of.cached_tokens, told_of.output_tokens) == (35, 30, 7)
        assert (told_of.reply.content, told_of.reply.tool_calls[0].name) == ("Hello", "bash")

    def test_on_the_other_wire_is_told_which_one_it_is(self) -> None:
        with wire.Server() as server:
            answer = posted(
                Desk(model(server.url, "anthropic:claude-run")), "/v1/chat/completions", {"messages": HELLO}
            )
        assert answer.status_code == 404
        assert "POST /v1/messages" in answer.json()["error"]["message"]
        assert not server.requests

    def test_of_a_provider_on_no_such_wire_is_refused_before_anything_runs(self) -> None:
        with pytest.raises(BadInput, match="google another"):
            model("", "google:gemini-3")


def sent_for(form_name: str, body: Json, name: str = "openai:x", base_url: str = "http://127.0.0.1:1/v1") -> Json:
    """The body that is sent for *body*."""
    form = next(f for f in FORMS if f.name == form_name)
    wish = parse_request(form, json.dumps(body).encode(), name, CAP, base_url)
    assert isinstance(wish, ForwardedRequest), wish
    decoded: Json = json.loads(wish.body)
    return decoded


def part(**content: Any) -> list[Json]:
    """A conversation of one message with one part."""
    return [{"role": "user", "content": [content]}]


def refused_for(form_name: str, body: Json) -> str:
    form = next(f for f in FORMS if f.name == form_name)
    wish = parse_request(form, json.dumps(body).encode(), "openai:x", CAP)
    assert isinstance(wish, ForwardRefusal), json.loads(wish.body)
    assert wish.status == 400
    return wish.why


class TestTheCapOnOutput:
    """No request may have more output than the route allows."""

    @pytest.mark.parametrize(
        ("form", "body", "cap"),
        [
            ("chat", {}, {"max_tokens": 500}),
            ("chat", {"max_tokens": 20}, {"max_tokens": 20}),
            ("chat", {"max_tokens": 9999}, {"max_tokens": 500}),
            ("chat", {"max_completion_tokens": 9999, "max_tokens": 80}, {"max_tokens": 80}),
            ("chat", {"max_tokens": -1}, {"max_tokens": 500}),
            ("chat", {"max_tokens": None}, {"max_tokens": 500}),
            ("chat", {"max_tokens": "many"}, {"max_tokens": 500}),
            ("chat", {"max_tokens": 1e9}, {"max_tokens": 500}),
            ("responses", {}, {"max_output_tokens": 500}),
            ("responses", {"max_output_tokens": 12}, {"max_output_tokens": 12}),
            ("messages", {"max_tokens": 501}, {"max_tokens": 500}),
        ],
    )
    def test_is_the_route_s_or_lower(self, form: str, body: Json, cap: Json) -> None:
        turns = {"input": "hello"} if form == "responses" else {"messages": HELLO}
        sent = sent_for(form, turns | body)
        assert {k: v for k, v in sent.items() if k.startswith("max_")} == cap

    def test_is_written_in_the_newer_word_where_the_older_one_is_refused(self) -> None:
        assert sent_for("chat", {"messages": HELLO, "max_tokens": 9}, "openai:gpt-9", "")["max_completion_tokens"] == 9
        assert sent_for("chat", {"messages": HELLO}, "openai:gpt-5-mini")["max_completion_tokens"] == CAP

    def test_leaves_room_for_an_answer_after_the_thinking(self) -> None:
        body = {"messages": HELLO, "max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 31_999}}
        wish = parse_request(MESSAGES, json.dumps(body).encode(), "anthropic:x", 8192)
        assert isinstance(wish, ForwardedRequest)
        assert json.loads(wish.body)["thinking"] == {"type": "enabled", "budget_tokens": 4096}
        assert sent_for("messages", body)["thinking"] == {"type": "disabled"}


class TestWhatCouldPassACap:
    """Whatever costs more than is set aside, or is not metered, is left out or refused."""

    @pytest.mark.parametrize(
        ("form", "extra"),
        [
            ("chat", {"n": 5}),
            ("chat", {"service_tier": "priority"}),
            ("chat", {"models": ["dear/one"], "plugins": [{"id": "web"}], "provider": {}, "web_search_options": {}}),
            ("chat", {"prediction": {"type": "content", "content": "x"}, "modalities": ["audio"]}),
            ("responses", {"service_tier": "priority", "truncation": "auto"}),
            ("messages", {"service_tier": "auto", "speed": "fast", "inference_geo": "us", "context_management": {}}),
        ],
    )
    def test_is_left_out(self, form: str, extra: Json) -> None:
        turns: Json = {"input": "hello"} if form == "responses" else {"messages": HELLO}
        assert not extra.keys() & sent_for(form, turns | extra).keys()

    @pytest.mark.parametrize(
        ("form", "body", "why"),
        [
            ("responses", {"input": "go on", "previous_response_id": "resp_1"}, "previous_response_id"),
            ("responses", {"input": "hi", "conversation": "conv_1"}, "conversation"),
            ("responses", {"input": "hi", "background": True}, "background"),
            ("responses", {"input": "hi", "prompt": {"id": "p"}}, "prompt"),
            ("responses", {"input": "hi", "tools": [{"type": "web_search"}]}, "'web_search'"),
            ("responses", {"input": [{"type": "item_reference", "id": "m1"}]}, "'item_reference'"),
            ("responses", {"input": [*HELLO, {"id": "m1"}]}, "by its id alone"),
            ("responses", {"input": part(type="input_file", file_id="f")}, "'input_file'"),
            ("responses", {"input": part(type="input_image", file_id="f")}, "'input_image'"),
            ("chat", {"messages": part(type="file", file={"file_id": "f"})}, "'file'"),
            ("chat", {"messages": HELLO, "tools": [{"type": "code_interpreter"}]}, "'code_interpreter'"),
            ("chat", {"messages": HELLO, "tools": ["x"]}, "tools of the provider"),
            ("messages", {"messages": HELLO, "tools": [{"type": "web_search_20250305", "name": "w"}]}, "web_search"),
            ("messages", {"messages": HELLO, "mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
            ("messages", {"messages": part(type="document", source={"type": "url", "url": "u"})}, "'document'"),
            ("messages", {"messages": part(type="tool_result", content=[{"type": "document"}])}, "'document'"),
            ("chat", {"messages": 7}, "`messages`"),
            ("chat", {"messages": [{"role": "user", "content": "x", "type": []}, {"type": ["image"]}]}, "no text"),
            ("messages", {"messages": part(type={"image": 1})}, "a `type` in `messages` is no text"),
            ("messages", {"messages": HELLO, "tools": [{"type": [1]}]}, "tools of the provider"),
        ],
    )  # fmt: skip
    def test_is_refused_with_a_reason(self, form: str, body: Json, why: str) -> None:
        assert why in refused_for(form, body)

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"messages": "' + b"\xff" + b'"}'])
    def test_cannot_hide_in_a_body_that_is_none(self, raw: bytes) -> None:
        assert isinstance(parse_request(CHAT, raw, "openai:x", CAP), ForwardRefusal)

    @pytest.mark.parametrize("depth", [300, 3_000, 100_000])
    @pytest.mark.parametrize("form", FORMS)
    def test_cannot_hide_so_deep_that_nobody_can_look(self, form: RequestFormat, depth: int) -> None:
        raw = b'{"%s": [{"role": "user", "content": %s%s}]}' % (form.turns.encode(), b"[" * depth, b"]" * depth)
        told = parse_request(form, raw, "openai:x", CAP)
        assert (
            isinstance(told, ForwardRefusal) if depth > 1_000 else isinstance(told, ForwardedRequest | ForwardRefusal)
        )

    def test_tools_that_run_with_the_agent_are_its_own_business(self) -> None:
        tools = [{"type": "function", "function": {"name": "bash"}}]
        assert sent_for("chat", {"messages": HELLO, "tools": tools})["tools"] == tools
        own = [{"name": "bash", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]
        assert sent_for("messages", {"messages": HELLO, "tools": own})["tools"] == own

    def test_caches_are_kept_for_the_usual_time_whose_price_is_known(self) -> None:
        text = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
        sent = sent_for("messages", {"system": [text], "messages": [{"role": "user", "content": [text]}]})
        assert sent["system"][0]["cache_control"] == {"type": "ephemeral"}
        assert sent["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}

    def test_a_path_that_no_client_posts_to_is_no_form(self) -> None:
        paths = ("/v1/chat/completions", "/chat/completions/", "/v1/responses", "/v1/messages")
        assert [find_form(p) for p in paths] == [CHAT, CHAT, RESPONSES, MESSAGES]
        assert find_form("/v1/messages/count_tokens") is find_form("/v1/files") is find_form("/v1/v1/messages") is None


class TestWhatIsSetAside:
    """It is never less than the call will cost."""

    @pytest.mark.slow
    @given_that(st.lists(st.text(max_size=200), min_size=1, max_size=5), st.text(max_size=100))
    def test_is_no_less_than_the_bytes_that_are_said(self, texts: list[str], system: str) -> None:
        turns = [{"role": "user", "content": text} for text in texts]
        wish = parse_request(MESSAGES, json.dumps({"system": system, "messages": turns}).encode(), "anthropic:x", CAP)
        assert isinstance(wish, ForwardedRequest)
        said = sum(len(t.encode("utf-8", "replace")) for t in (*texts, system))
        forwarded = model("http://127.0.0.1:1", "anthropic:x")
        forwarded.pending = wish
        assert forwarded.worst(ask()).tokens >= said + CAP

    def test_counts_an_image_by_what_images_cost_and_not_by_its_bytes(self) -> None:
        def tokens(size: int) -> int:
            picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(size)).decode()
            image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
            body = json.dumps({"messages": [{"role": "user", "content": [image]}]}).encode()
            forwarded = model("http://127.0.0.1:1")
            wish = parse_request(CHAT, body, "openai:x", CAP)
            assert isinstance(wish, ForwardedRequest)
            forwarded.pending = wish
            return forwarded.worst(ask()).tokens

        assert tokens(10) == tokens(1_000_000) > 16_000

    @pytest.mark.parametrize("form", [CHAT, RESPONSES, MESSAGES], ids=lambda form: form.name)
    @pytest.mark.parametrize("make", CALLED_IMAGES)
    def test_counts_each_byte_of_text_that_is_called_an_image(self, form: RequestFormat, make: Made) -> None:
        text = "word " * 40_000
        wish = parse_request(form, json.dumps({form.turns: [make(text)]}).encode(), "openai:x", CAP)
        assert isinstance(wish, ForwardedRequest)
        assert sum(turn.tokens for turn in wish.turns) >= len(text)

    @pytest.mark.slow
    @given_that(
        st.sampled_from([CHAT, RESPONSES, MESSAGES]), ANY_JSON, st.dictionaries(st.sampled_from(FIELDS), ANY_JSON)
    )
    def test_is_said_of_any_body_or_it_is_refused(self, form: RequestFormat, turns: object, more: Json) -> None:
        raw = json.dumps({**more, form.turns: turns}).encode()
        wish = parse_request(form, raw, "openai:x", CAP)
        if isinstance(wish, ForwardedRequest):
            pictures = raw.count(IMAGE.encode())
            assert all(turn.tokens > turn.size - pictures * len(IMAGE) for turn in wish.turns)
            assert wish.overhead > 0
        else:
            assert wish.status == 400

    def test_of_a_conversation_that_goes_on_is_what_was_counted_and_what_is_new(self) -> None:
        long = {"role": "user", "content": "word " * 4000}
        answer = {"role": "assistant", "content": "yes"}
        with wire.Server([wire.reply("yes", tokens=wire.Tokens(4010, 1))] * 3) as server:
            desk = Desk(model(server.url))
            posted(desk, "/v1/chat/completions", {"messages": [long]})
            posted(desk, "/v1/chat/completions", {"messages": [long, answer, *HELLO]})
            posted(desk, "/v1/chat/completions", {"messages": [long, answer, *HELLO], "tools": [], "temperature": 1})
            posted(desk, "/v1/chat/completions", {"messages": [{**long, "content": "other " * 4000}, answer]})
        first, second, third, fourth = desk.reserved
        assert first > 20_000
        assert second < 6_000
        assert third > 20_000, "another request is not the same conversation"
        assert fourth > 20_000

    def test_does_not_believe_a_server_that_counts_next_to_nothing(self) -> None:
        long = {"role": "user", "content": "word " * 4000}
        with wire.Server([wire.reply("yes", tokens=wire.Tokens(3, 1))] * 2) as server:
            desk = Desk(model(server.url))
            posted(desk, "/v1/chat/completions", {"messages": [long]})
            posted(desk, "/v1/chat/completions", {"messages": [long, *HELLO]})
        assert desk.reserved[1] > 20_000


class TestAStream:
    """It is read to its end, counted, and handed on."""

    def test_of_a_chat_completion_is_handed_on_without_the_usage_that_we_asked_for(self) -> None:
        step = sse(*CHUNKS, {"choices": [], "usage": USAGE}, "[DONE]")
        with wire.Server([step, step]) as server:
            desk = Desk(model(server.url))
            plain = posted(desk, "/v1/chat/completions", {"messages": HELLO, "stream": True})
            own = {"messages": HELLO, "stream": True, "stream_options": {"include_usage": True}}
            wanted = posted(desk, "/v1/chat/completions", own)
        assert server.requests[0].body["stream_options"] == {"include_usage": True}
        assert plain.headers["content-type"] == "text/event-stream"
        assert plain.content == sse(*CHUNKS, "[DONE]").raw
        assert wanted.content == step.raw
        for told_of in desk.answers:
            assert (told_of.input_tokens, told_of.cached_tokens, told_of.output_tokens) == (40, 30, 7)
            assert told_of.reply.content == "Hello"
            assert told_of.reply.tool_calls[0].arguments == {"command": "ls"}
            assert not told_of.assumed

    def test_of_anthropic_s_messages_is_handed_on_as_it_came(self) -> None:
        step = sse(*LETTER, named=True)
        with wire.Server([step]) as server:
            desk = Desk(model(server.url, "anthropic:claude-run"))
            answer = posted(desk, "/v1/messages", {"messages": HELLO, "stream": True, "max_tokens": 9})
        assert answer.content == step.raw
        (told_of,) = desk.answers
        assert (told_of.input_tokens, told_of.cached_tokens, told_of.output_tokens) == (35, 30, 7)
        assert told_of.reply.content == "Hello"
        (call,) = told_of.reply.tool_calls
        assert (call.name, call.arguments, call.id) == ("bash", {"command": "ls"}, "t1")

    def test_of_openai_s_responses_is_handed_on_as_it_came(self) -> None:
        step = sse({"type": "response.created"}, {"type": "response.completed", "response": RESPONSE}, named=True)
        with wire.Server([step]) as server:
            desk = Desk(model(server.url))
            answer = posted(desk, "/v1/responses", {"input": "hello", "stream": True})
        assert answer.content == step.raw
        assert desk.answers[0].output_tokens == 7

    @pytest.mark.parametrize(
        ("path", "name", "step", "error"),
        [
            ("/v1/chat/completions", "openai:x", sse(*CHUNKS[:2]), "connection"),
            ("/v1/chat/completions", "openai:x", sse(CHUNKS[0], {"error": {"message": "overloaded"}}), "server"),
            ("/v1/chat/completions", "openai:x", sse("{nonsense"), "malformed"),
            ("/v1/messages", "anthropic:x", sse(*LETTER[:5]), "connection"),
            ("/v1/messages", "anthropic:x", sse(LETTER[0], {"type": "error", "error": {"message": "busy"}}), "server"),
            ("/v1/responses", "openai:x", sse({"type": "response.created"}), "connection"),
        ],
    )
    def test_that_breaks_off_may_be_billed(self, path: str, name: str, step: wire.Step, error: str) -> None:
        turns = {"input": "hello"} if path.endswith("responses") else {"messages": HELLO}
        with wire.Server([step]) as server:
            desk = Desk(model(server.url, name))
            posted(desk, path, {**turns, "stream": True})
        assert (desk.answers[0].error, desk.answers[0].assumed) == (error, True)

    def test_that_reports_no_usage_counts_as_what_was_set_aside(self) -> None:
        with wire.Server([sse(*CHUNKS, "[DONE]")]) as server:
            desk = Desk(model(server.url))
            posted(desk, "/v1/chat/completions", {"messages": HELLO, "stream": True})
        assert desk.answers[0].assumed
        assert desk.answers[0].error == ""


class TestAFault:
    """It is a value for the kernel and an answer for the agent."""

    @pytest.mark.parametrize(
        ("step", "error", "billed", "status"),
        [
            (wire.failing(500, "oops"), "server", False, 500),
            (wire.failing(529, "overloaded", "overloaded_error"), "server", False, 529),
            (wire.failing(401, "bad key"), "rejected", False, 401),
            (wire.failing(400, "no such field"), "rejected", False, 400),
            (wire.failing(400, "too long", "context_length_exceeded"), "context", False, 400),
            (wire.failing(429, "no money", "insufficient_quota"), "rejected", False, 429),
            (wire.failing(408, "late"), "timeout", False, 408),
            (wire.failing(302, "elsewhere", headers={"Location": "http://127.0.0.1:9/"}), "rejected", False, 302),
            (wire.dropped(), "connection", True, 502),
            (wire.dropped("within"), "connection", True, 502),
            (wire.garbled(), "malformed", True, 502),
            (wire.Step(raw=b"[]"), "malformed", True, 502),
            (wire.Step(raw=b'{"choices": []}'), "malformed", True, 502),
            (wire.refused("I will not"), "refusal", False, 200),
            (wire.reply("hi", tokens=None), "", True, 200),
        ],
    )
    def test_is_a_value_and_the_agent_is_told(self, step: wire.Step, error: str, *, billed: bool, status: int) -> None:
        with wire.Server([step]) as server:
            desk = Desk(model(server.url))
            answer = posted(desk, "/v1/chat/completions", {"messages": HELLO})
        (told_of,) = desk.answers
        assert (told_of.error, told_of.assumed) == (error, billed)
        assert answer.status_code == status
        if status >= 400:
            assert answer.json()["error"]["message"]

    def test_says_when_to_come_back(self) -> None:
        with wire.Server([wire.rate_limited("3"), wire.rate_limited("soon")]) as server:
            desk = Desk(model(server.url))
            answer = posted(desk, "/v1/chat/completions", {"messages": HELLO})
            posted(desk, "/v1/chat/completions", {"messages": HELLO})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
        assert [(a.error, a.retry_after) for a in desk.answers] == [("rate_limit", 3.0), ("rate_limit", None)]

    def test_that_no_server_is_there_costs_nothing(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            desk = Desk(model(f"http://127.0.0.1:{free.getsockname()[1]}/v1"))
            answer = posted(desk, "/v1/chat/completions", {"messages": HELLO})
        assert (desk.answers[0].error, desk.answers[0].assumed, answer.status_code) == ("connection", False, 502)

    @pytest.mark.slow
    def test_that_the_time_is_over_may_be_billed(self) -> None:
        never = threading.Event()
        with wire.Server([wire.slow(never)]) as server:
            desk = Desk(model(server.url), seconds=0.2)
            answer = posted(desk, "/v1/chat/completions", {"messages": HELLO})
            assert server.gone.wait(5), "the connection is closed"
        assert (desk.answers[0].error, desk.answers[0].assumed, answer.status_code) == ("timeout", True, 504)

    def test_that_quotes_the_key_does_not_tell_the_agent(self) -> None:
        with wire.Server(
            [wire.failing(401, f"Incorrect API key provided: {KEY}"), wire.reply(f"it is {KEY}")]
        ) as server:
            desk = Desk(model(server.url))
            answers = [posted(desk, "/v1/chat/completions", {"messages": HELLO}) for _ in range(2)]
        assert all(KEY not in a.text for a in answers)
        assert all(KEY not in repr(a) for a in desk.answers)


class TestTheDoor:
    """It opens to the run's agent alone."""

    def heard(
        self, send: Callable[[httpx2.AsyncClient, ProxyEndpoints], Awaitable[httpx2.Response]]
    ) -> httpx2.Response:
        async def go() -> httpx2.Response:
            async with (
                proxied(Desk(model("http://127.0.0.1:1"))) as (_, doors),
                httpx2.AsyncClient(base_url=doors.root, trust_env=False, verify=BARE) as stranger,
            ):
                return await send(stranger, doors)

        return anyio.run(go)

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"authorization": "Bearer no"},
            {"authorization": TOKEN},
            {"x-api-key": ""},
            {"authorization": "Bearer é"},
        ],
    )
    def test_is_closed_to_whoever_has_not_the_token(self, headers: dict[str, str]) -> None:
        raw = [(k.encode(), v.encode()) for k, v in headers.items()]
        answer = self.heard(lambda c, _: c.post("/v1/messages", json={}, headers=raw))
        assert answer.status_code == 401

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "10.0.0.1:{port}"]
    )
    def test_is_closed_to_whoever_comes_by_another_name(self, host: str) -> None:
        def send(client: httpx2.AsyncClient, doors: ProxyEndpoints) -> Awaitable[httpx2.Response]:
            headers = {"host": host.format(port=doors.port), "x-api-key": TOKEN}
            return client.post("/v1/messages", json={}, headers=headers)

        assert self.heard(send).status_code in (400, 421)

    @pytest.mark.parametrize("path", ["/", "/claim", "/wrong/claim", "/v1/embeddings", "/v1/files", f"/{TOKEN}/other"])
    def test_leads_nowhere_else(self, path: str) -> None:
        answer = self.heard(lambda c, _: c.post(path, json={}, headers={"x-api-key": TOKEN}))
        assert answer.status_code == 404

    def test_names_the_model_of_the_run(self) -> None:
        answer = self.heard(lambda c, _: c.get("/v1/models", headers={"x-api-key": TOKEN}))
        assert [m["id"] for m in answer.json()["data"]] == ["gpt-run"]

    def test_is_on_this_machine_alone(self) -> None:
        async def go() -> None:
            async with proxied(Desk(model("http://127.0.0.1:1"))) as (_, doors):
                await (await anyio.connect_tcp("127.0.0.1", doors.port)).aclose()
                with pytest.raises(OSError, match="failed"):
                    await anyio.connect_tcp("127.0.0.2", doors.port)

        anyio.run(go)

    @pytest.mark.parametrize(
        "noise", [b"", b"\x16\x03\x01\x02\x00", b"GET", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
    )
    def test_survives_noise(self, noise: bytes) -> None:
        async def go() -> None:
            async with proxied(Desk(model("http://127.0.0.1:1"))) as (client, doors):
                async with await anyio.connect_tcp("127.0.0.1", doors.port) as stranger:
                    if noise:
                        await stranger.send(noise)
                assert (await client.get("/v1/models")).status_code == 200

        anyio.run(go)

    @pytest.mark.slow
    def test_keeps_little_of_what_is_sent_to_it(self) -> None:
        """Neither a stranger's gigabyte nor what unfolds to one costs us the memory."""

        async def flood() -> AsyncIterator[bytes]:
            for _ in range(3 * BODY_BYTES >> 20):
                yield b"x" * (1 << 20)

        async def go() -> tuple[int, int, int]:
            async with proxied(Desk(model("http://127.0.0.1:1"))) as (client, _):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                stranger = await client.post(
                    "/v1/messages", content=flood(), headers={"x-api-key": "", "authorization": ""}
                )
                assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (BODY_BYTES >> 10)
                many = await client.post("/v1/chat/completions", content=b"[" + b"0," * (VALUES + 1) + b"0]")
                try:
                    long = (await client.post("/v1/chat/completions", content=flood())).status_code
                except httpx2.TransportError:  # it was answered before all of it was sent
                    long = 413
                return stranger.status_code, many.status_code, long

        assert anyio.run(go) == (401, 413, 413)

    @pytest.mark.slow
    def test_serves_some_connections_at_a_time_and_the_others_afterwards(self) -> None:
        async def go() -> None:
            async with proxied(Desk(model("http://127.0.0.1:1"))) as (client, doors):
                idle = [await anyio.connect_tcp("127.0.0.1", doors.port) for _ in range(CONNECTIONS + 20)]
                with anyio.move_on_after(0.2) as patience:
                    await client.get("/v1/models")
                assert patience.cancelled_caught
                for stranger in idle:
                    await stranger.aclose()
                assert (await client.get("/v1/models")).status_code == 200

        anyio.run(go)

    def test_stays_open_for_the_next_request_of_a_connection(self) -> None:
        async def go() -> None:
            async with proxied(Desk(model("http://127.0.0.1:1"))) as (client, _):
                for _ in range(3):
                    assert (await client.get("/v1/models")).status_code == 200
                assert (await client.post("/v1/messages", content=b"x" * 300_000)).status_code == 404

        anyio.run(go)


@pytest.mark.slow
class TestTheProvidersOwnClients:
    """They take the proxy for the provider."""

    def test_openai_s_reads_what_is_handed_on(self) -> None:
        import openai  # noqa: PLC0415  slow to import

        async def go(url: str) -> list[object]:
            async with proxied(Desk(model(url))) as (_, doors):
                client = openai.AsyncOpenAI(base_url=f"{doors.root}/v1", api_key=TOKEN, max_retries=0)
                messages: Any = HELLO
                async with client:
                    whole = await client.chat.completions.create(model="x", messages=messages)
                    pieces = await client.chat.completions.create(model="x", messages=messages, stream=True)
                    text = "".join([(p.choices[0].delta.content or "") async for p in pieces])
                    with pytest.raises(openai.APIStatusError, match="web_search"):
                        await client.responses.create(model="x", input="hi", tools=[{"type": "web_search"}])
                return [whole.choices[0].message.content, text]

        with wire.Server([wire.reply("hi"), sse(*CHUNKS, {"choices": [], "usage": USAGE}, "[DONE]")]) as server:
            assert anyio.run(go, server.url) == ["hi", "Hello"]

    def test_anthropic_s_reads_what_is_handed_on(self) -> None:
        import anthropic  # noqa: PLC0415  slow to import

        async def go(url: str) -> list[object]:
            async with proxied(Desk(model(url, "anthropic:claude-run"))) as (_, doors):
                client = anthropic.AsyncAnthropic(base_url=doors.root, api_key=TOKEN, max_retries=0)
                messages: Any = HELLO
                async with client:
                    whole = await client.messages.create(model="x", messages=messages, max_tokens=9)
                    async with client.messages.stream(model="x", messages=messages, max_tokens=9) as stream:
                        text = "".join([piece async for piece in stream.text_stream])
                return [whole.content[0].text, text]  # type: ignore[union-attr]  # the script says text

        message: Json = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "x",
            "content": [],
            "stop_reason": None,
        }
        first = {"type": "message_start", "message": {**message, "stop_sequence": None, "usage": STARTED}}
        with wire.Server([wire.reply("hi"), sse(first, *LETTER[1:], named=True)]) as server:
            assert anyio.run(go, server.url) == ["hi", "Hello"]
