"""Models of providers, over their real clients, against a server on loopback: answers, faults, money and keys."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.run.strategy import Message, Request, Tool
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Price, Route, Settings
from jumar.errors import BadInput
from jumar.models.llm import LlmModel
from jumar.models.router import build_routes, collect_keys
from jumar.models.wire.messages import MALFORMED, Transcript, bound_tokens
from jumar.models.wire.prices import find_tariff
from jumar.models.wire.providers import DEFAULT_MAX_OUTPUT, PLACEHOLDER, PROVIDERS, find_key, find_provider, is_local
from jumar.models.wire.redaction import LONGEST_DETAIL, clean, clean_to_one_line
from jumar.ports import Answer, Ask
from jumar.testing import check_model
from support.judging.samples import sampled
from support.processes import fake_provider as wire

pytestmark = pytest.mark.slow
"""Real clients and servers: the first call of a process alone takes a second."""

KEY = "sk-test-0123456789abcdefghij"
OPENAI, ANTHROPIC, GOOGLE = "openai:tiny", "anthropic:claude-sonnet-5-5", "google:gemini-3.8-flash"
WIRES = (OPENAI, ANTHROPIC, GOOGLE)
DIALECTS = (*WIRES, "deepseek:deepseek-v4-pro", "openrouter:anthropic/claude-sonnet-5.5", "ollama:qwen3-coder")
PRICE = Price(input=1.0, output=2.0, cached=0.1)
READ = Tool(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}, "start": {"type": "integer"}}, "required": ["path"]},
)
OPENING = (Message("system", "You mend programs."), Message("user", "Mend this."))


def asking(*messages: Message, **changes: Any) -> Ask:
    ask = Ask(
        request=Request("mid", "write"),
        messages=messages or OPENING,
        tree="",
        files={},
        red=(),
        green=(),
        localisation=None,
        position=0,
        refused=frozenset(),
        seed=0,
        seconds=None,
        tools=(READ,),
    )
    return msgspec.structs.replace(ask, **changes)


def model_of(
    server: wire.Server, name: str, *, price: Price | None = PRICE, temperature: float | None = None
) -> LlmModel:
    route = Route(model=name, max_output_tokens=500, base_url=server.url, price=price, temperature=temperature)
    return LlmModel(route, KEY, find_tariff(route))


def answered(name: str, *steps: wire.Step, **changes: Any) -> tuple[Answer, wire.Server]:
    """The answer to the usual question, and the server that gave it. The contract of every model is held."""
    with wire.Server(steps) as server:
        return anyio.run(check_model, model_of(server, name), asking(**changes)), server


def texts(value: object) -> str:
    return msgspec.json.encode(value).decode()


def said(messages: list[Any]) -> str:
    """What a prompt holds: marks of where to cache, which OpenRouter has on messages, are no part of it."""
    for message in messages:
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            part.pop("cache_control", None)
        if isinstance(parts, list) and [p.keys() for p in parts] == [{"type", "text"}]:
            message["content"] = parts[0]["text"]
    return texts(messages).removesuffix("]")


class TestAnswers:
    """What comes back."""

    @pytest.mark.parametrize("name", DIALECTS)
    def test_text_calls_and_usage_come_back(self, name: str) -> None:
        step = wire.reply("I look.", ("read_file", {"path": "a.py"}), tokens=wire.Tokens(1000, 50, 400))
        answer, server = answered(name, step)
        assert (answer.error, answer.assumed, answer.reply.content) == ("", False, "I look.")
        assert [(c.name, c.arguments) for c in answer.reply.tool_calls] == [("read_file", {"path": "a.py"})]
        assert (answer.input_tokens, answer.cached_tokens, answer.output_tokens) == (1000, 400, 50)
        assert answer.usd == pytest.approx((600 * 1.0 + 400 * 0.1 + 50 * 2.0) / 1e6)
        assert len(server.requests) == 1

    def test_anthropic_s_cache_writes_are_part_of_the_prompt_and_cost_more(self) -> None:
        answer, _ = answered(ANTHROPIC, wire.reply("x", tokens=wire.Tokens(1000, 0, 400, written=100)))
        assert (answer.input_tokens, answer.cached_tokens) == (1000, 400)
        assert answer.usd == pytest.approx((500 + 100 * 1.25 + 400 * 0.1) / 1e6)

    def test_deepseek_s_cache_hits_are_found_where_it_reports_them(self) -> None:
        body = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "deepseek-v4-pro",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95,
                      "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 26},
        }  # fmt: skip
        answer, _ = answered("deepseek:deepseek-v4-pro", wire.garbled(msgspec.json.encode(body)))
        assert (answer.input_tokens, answer.cached_tokens, answer.output_tokens) == (90, 64, 5)

    def test_openrouter_s_own_bill_counts_where_it_is_higher(self) -> None:
        body = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "a/b", "provider": "dear",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.25},
        }  # fmt: skip
        name = "openrouter:anthropic/claude-sonnet-5.5"
        with wire.Server([wire.garbled(msgspec.json.encode(body))] * 2) as server:
            route = Route(model=name, max_output_tokens=500, base_url=server.url)
            table = find_tariff(msgspec.structs.replace(route, base_url=""))
            told = anyio.run(LlmModel(route, KEY, table).complete, asking())
            own = anyio.run(model_of(server, name).complete, asking())
        assert table.cost(10, 0, 5) < 0.001
        assert told.usd == 0.25
        assert own.usd == pytest.approx(20 / 1e6), "a person's price is the price"

    @pytest.mark.parametrize("cost", ["1e305", "1e400", "-1e305", "-0.25", "NaN", "Infinity", "-Infinity", '"dear"'])
    def test_a_bill_that_is_none_counts_as_the_table_has_it(self, cost: str) -> None:
        usage = f'{{"prompt_tokens": 10000, "completion_tokens": 50, "total_tokens": 10050, "cost": {cost}}}'
        raw = b"""{"id": "1", "object": "chat.completion", "created": 1, "model": "a/b", "provider": "dear",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
            "usage": %s}""" % usage.encode()
        with wire.Server([wire.garbled(raw)]) as server:
            route = Route(model="openrouter:anthropic/claude-sonnet-5.5", max_output_tokens=500, base_url=server.url)
            table = find_tariff(msgspec.structs.replace(route, base_url=""))
            answer = anyio.run(LlmModel(route, KEY, table).complete, asking())
        if answer.error:  # nothing could be read: then the call costs what was set aside
            assert (answer.error, answer.assumed, answer.usd) == ("malformed", True, 0.0)
        else:
            assert answer.usd == table.cost(10000, 0, 50) > 0

    @pytest.mark.parametrize("name", WIRES)
    def test_an_empty_answer_is_an_ordinary_one(self, name: str) -> None:
        answer, _ = answered(name, wire.reply("", tokens=wire.Tokens(100, 0)))
        assert (answer.error, answer.reply.content, answer.reply.tool_calls, answer.assumed) == ("", "", (), False)
        assert answer.input_tokens == 100

    @pytest.mark.parametrize("name", WIRES)
    def test_a_refusal_is_billed(self, name: str) -> None:
        answer, _ = answered(name, wire.refused())
        assert (answer.error, answer.input_tokens, answer.output_tokens) == ("refusal", 100, 20)
        assert answer.usd == pytest.approx(140 / 1e6)
        assert answer.detail

    def test_a_prompt_that_google_blocks_is_a_refusal(self) -> None:
        body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
        answer, _ = answered(GOOGLE, wire.garbled(msgspec.json.encode(body)))
        assert (answer.error, answer.input_tokens, answer.assumed) == ("refusal", 9, False)

    @pytest.mark.parametrize("name", WIRES)
    def test_what_was_not_measured_is_assumed(self, name: str) -> None:
        answer, _ = answered(name, wire.reply("done", tokens=None))
        assert answer.assumed

    @pytest.mark.parametrize("name", WIRES)
    @pytest.mark.parametrize(
        ("tokens", "usd"),
        [(wire.Tokens(5_000_000, 0), 5.0), (wire.Tokens(0, 50), 0.0001)],
        ids=["no output", "no input"],
    )
    def test_what_was_measured_is_told_even_where_the_rest_is_assumed(
        self, name: str, tokens: wire.Tokens, usd: float
    ) -> None:
        answer, _ = answered(name, wire.reply("done", tokens=tokens))
        assert answer.assumed
        assert (answer.input_tokens, answer.output_tokens) == (tokens.input, tokens.output)
        assert answer.usd == pytest.approx(usd)

    @pytest.mark.parametrize("name", WIRES)
    @pytest.mark.parametrize("slip", [-500, 2**51, 10**30])
    def test_counts_that_no_call_can_have_are_none(self, name: str, slip: int) -> None:
        answer, _ = answered(name, wire.reply("done", tokens=wire.Tokens(slip, 50)))
        assert answer.assumed
        assert (answer.input_tokens, answer.output_tokens) in ((0, 50), (0, 0))
        answer, _ = answered(name, wire.reply("done", tokens=wire.Tokens(100, slip)))
        assert answer.assumed
        assert (answer.input_tokens, answer.output_tokens) in ((100, 0), (0, 0))

    @pytest.mark.parametrize(
        "raw", ['{"path": ', "[1, 2]", '"x"', "nonsense", '{"path": NaN}', '{"p": "\\ud800"}', "null"]
    )
    def test_arguments_that_are_no_object_are_kept_as_they_came(self, raw: str) -> None:
        answer, _ = answered(OPENAI, wire.reply("", ("read_file", raw)))
        assert answer.reply.tool_calls[0].arguments == {MALFORMED: raw}

    def test_arguments_that_nobody_could_write_down_are_kept_as_text(self) -> None:
        deep = "[" * 3000 + "]" * 3000
        answer, _ = answered(OPENAI, wire.reply("", ("read_file", f'{{"path": {deep}}}')))
        assert list(answer.reply.tool_calls[0].arguments) == [MALFORMED]

    def test_a_call_without_arguments_has_none(self) -> None:
        answer, _ = answered(OPENAI, wire.reply("", ("final", "")))
        assert answer.reply.tool_calls[0].arguments == {}

    @pytest.mark.parametrize("name", WIRES)
    def test_text_that_utf_8_cannot_hold_is_mended(self, name: str) -> None:
        answer, _ = answered(name, wire.reply("half \ud83d of a face"))
        assert answer.reply.content == "half ? of a face"


class TestRequests:
    """What is sent."""

    def test_openai_s_wire_is_chat_completions(self) -> None:
        _, server = answered(OPENAI, seed=7)
        (sent,) = server.requests
        assert sent.path == "/v1/chat/completions"
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert (sent.body["model"], sent.body["max_tokens"], sent.body["seed"]) == ("tiny", 500, 7)
        assert sent.body["tools"] == [
            {"type": "function", "function": {"name": READ.name, "description": READ.description,
                                              "parameters": READ.parameters}}
        ]  # fmt: skip

    @pytest.mark.parametrize("name", [OPENAI, GOOGLE, "anthropic:claude-haiku-4-5"])
    def test_a_temperature_is_sent_where_somebody_chose_one(self, name: str) -> None:
        with wire.Server(()) as server:
            anyio.run(check_model, model_of(server, name, temperature=0.3), asking())
        body = texts(server.requests[0].body)
        assert '"temperature":0.3' in body
        _, plain = answered(name)
        assert "temperature" not in texts(plain.requests[0].body)

    def test_a_model_that_takes_no_temperature_is_not_asked_without_it(self) -> None:
        with wire.Server(()) as server:
            answer = anyio.run(model_of(server, "anthropic:claude-sonnet-5-5", temperature=0.3).complete, asking())

        assert (answer.error, server.requests) == ("rejected", [])
        assert "takes no temperature" in answer.detail

    def test_the_room_for_output_has_the_name_the_server_knows(self) -> None:
        for name, known in (("openai:gpt-6-luna", "max_completion_tokens"), ("ollama:qwen3", "max_tokens")):
            _, server = answered(name)
            assert server.requests[0].body[known] == 500

    def test_anthropic_caches_the_conversation_from_outside_it(self) -> None:
        _, server = answered(ANTHROPIC, seed=7)
        (sent,) = server.requests
        assert (sent.path, sent.headers["authorization"]) == ("/v1/messages", f"Bearer {KEY}")
        assert sent.body["max_tokens"] == 500
        assert sent.body["cache_control"]["type"] == "ephemeral"
        assert "cache_control" not in texts(sent.body["messages"])
        assert "seed" not in sent.body

    def test_google_s_wire_is_generate_content(self) -> None:
        _, server = answered(GOOGLE, seed=7)
        (sent,) = server.requests
        assert sent.path == "/v1beta/models/gemini-3.8-flash:generateContent"
        assert sent.headers["x-goog-api-key"] == KEY
        assert sent.body["generationConfig"]["maxOutputTokens"] == 500
        assert sent.body["generationConfig"]["seed"] == 7

    def test_no_seed_is_sent_where_none_was_chosen(self) -> None:
        _, server = answered(OPENAI)
        assert "seed" not in server.requests[0].body

    @pytest.mark.parametrize("name", DIALECTS)
    def test_a_conversation_is_sent_in_order_and_only_grows(self, name: str) -> None:
        with wire.Server(
            [wire.reply("Look.", ("read_file", {"path": "a"}), thinking="hmm"), wire.reply("Done.")]
        ) as server:
            model = model_of(server, name)
            first = anyio.run(model.complete, asking())
            (call,) = first.reply.tool_calls
            turn = (
                Message("assistant", first.reply.content, first.reply.tool_calls, first.reply.opaque),
                Message("tool", "print(1)", call_id=call.id, name=call.name),
                Message("user", "Go on."),
            )
            second = anyio.run(model.complete, asking(*OPENING, *turn))
        assert second.reply.content == "Done."
        before, after = (said(r.body["contents" if name == GOOGLE else "messages"]) for r in server.requests)
        assert after.startswith(before)
        more = after[len(before) :]
        assert more.index("Look.") < more.index("print(1)") < more.index("Go on.")

    def test_what_the_model_thought_goes_back_untouched(self) -> None:
        for name, thought in (
            (ANTHROPIC, {"type": "thinking", "thinking": "hmm", "signature": "signed hmm"}),
            ("deepseek:deepseek-v4-pro", "hmm"),
        ):
            with wire.Server([wire.reply("Look.", ("read_file", {"path": "a"}), thinking="hmm")]) as server:
                model = model_of(server, name)
                reply = anyio.run(model.complete, asking()).reply
                # As a journal keeps it.
                reply = msgspec.json.decode(msgspec.json.encode(reply), type=type(reply))
                said = Message("assistant", reply.content, reply.tool_calls, reply.opaque)
                result = Message("tool", "print(1)", call_id=reply.tool_calls[0].id, name="read_file")
                anyio.run(model.complete, asking(*OPENING, said, result))
            sent = server.requests[1].body["messages"]
            turn = next(m for m in sent if m["role"] == "assistant")
            found = turn["content"][0] if name == ANTHROPIC else turn["reasoning_content"]
            assert found == thought

    def test_another_model_s_opaque_parts_are_left_out(self) -> None:
        alien = Message(
            "assistant", "Look.", (ToolCall("final", {}, "c1"),), {"parts": [{"part_kind": "text", "content": 99}]}
        )
        (turn,) = Transcript().convert((alien,))
        assert [type(p).__name__ for p in turn.parts] == ["TextPart", "ToolCallPart"]
        counters = msgspec.structs.replace(alien, opaque={"candidates": 3})
        assert [type(p).__name__ for p in Transcript().convert((counters,))[0].parts] == ["TextPart", "ToolCallPart"]

    def test_a_late_system_message_goes_as_the_user_s(self) -> None:
        _, server = answered(ANTHROPIC, messages=(*OPENING, Message("system", "Hurry.")))
        body = server.requests[0].body
        assert "Hurry." in texts(body["messages"])
        assert "Hurry." not in texts(body["system"])


FAULTS: tuple[tuple[str, wire.Step, str, bool], ...] = (
    ("rate limit", wire.rate_limited(), "rate_limit", False),
    ("server", wire.failing(500), "server", False),
    ("overloaded", wire.failing(529, code="overloaded_error"), "server", False),
    ("gateway", wire.failing(502), "server", False),
    ("bad key", wire.failing(401, "no such key"), "rejected", False),
    ("no such model", wire.failing(404), "rejected", False),
    ("bad request", wire.failing(400), "rejected", False),
    ("too large", wire.failing(413), "context", False),
    ("patience", wire.failing(408), "timeout", False),
    ("redirect", wire.failing(307, headers={"Location": "http://127.0.0.1:9/"}), "rejected", False),
    ("dropped", wire.dropped(), "connection", True),
    ("dropped midway", wire.dropped("within"), "connection", True),
    ("half json", wire.garbled(), "malformed", True),
    ("no json", wire.Step(raw=b"<html>hello", headers={"Content-Type": "text/html"}), "malformed", True),
    ("empty body", wire.garbled(b""), "malformed", True),
    ("an empty object", wire.garbled(b"{}"), "malformed", True),
    ("a list", wire.garbled(b"[]"), "malformed", True),
    ("null", wire.garbled(b"null"), "malformed", True),
    ("no utf-8", wire.garbled(b'{"id": "\xff\xfe"}'), "malformed", True),
)


class TestFaults:
    """What goes wrong."""

    @pytest.mark.parametrize("name", WIRES)
    @pytest.mark.parametrize(("step", "error", "billed"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
    def test_a_fault_is_a_value_that_is_asked_for_once(
        self,
        name: str,
        step: wire.Step,
        error: str,
        billed: bool,  # noqa: FBT001  a column of the table
    ) -> None:
        answer, server = answered(name, step)
        assert (answer.error, answer.assumed, answer.usd) == (error, billed, 0.0)
        assert answer.detail
        assert len(server.requests) == 1, "the client's own retries are off"

    @pytest.mark.parametrize(
        ("name", "code", "message"),
        [
            (OPENAI, "context_length_exceeded", "too many"),
            (OPENAI, "", "This model's maximum context length is 8192 tokens"),
            (ANTHROPIC, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"),
            (GOOGLE, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum number of tokens allowed (1)"),
        ],
    )
    def test_a_prompt_that_is_too_long_is_told_apart(self, name: str, code: str, message: str) -> None:
        answer, _ = answered(name, wire.failing(400, message, code))
        assert answer.error == "context"

    def test_an_empty_account_is_no_rate_limit(self) -> None:
        answer, _ = answered(OPENAI, wire.failing(429, "pay first", "insufficient_quota"))
        assert answer.error == "rejected", "waiting does not help"

    @pytest.mark.parametrize("name", WIRES)
    @pytest.mark.parametrize(
        ("headers", "low", "high"),
        [
            ({"Retry-After": "3"}, 3, 3),
            ({"Retry-After": "1.5"}, 1.5, 1.5),
            ({"retry-after-ms": "1500"}, 1.5, 1.5),
            ({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=9), usegmt=True)}, 3600, 32400),
            ({"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}, 0, 0),
        ],
    )
    def test_the_wait_that_was_asked_for_is_told(
        self, name: str, headers: dict[str, str], low: float, high: float
    ) -> None:
        answer, _ = answered(name, wire.failing(429, headers=headers))
        assert answer.retry_after is not None
        assert low <= answer.retry_after <= high

    @pytest.mark.parametrize("wait", ["soon", "nan", "inf", "-1", ""])
    def test_a_wait_that_is_none_is_not_told(self, wait: str) -> None:
        answer, _ = answered(OPENAI, wire.failing(503, headers={"Retry-After": wait}))
        assert answer.retry_after in (None, 0.0)

    @pytest.mark.parametrize("name", WIRES)
    def test_nobody_there_costs_nothing(self, name: str) -> None:
        with wire.Server() as server:
            model = model_of(server, name)
        answer = anyio.run(check_model, model, asking())
        assert (answer.error, answer.assumed) == ("connection", False)

    @pytest.mark.parametrize("name", WIRES)
    def test_no_answer_in_time_may_be_billed(self, name: str) -> None:
        with wire.Server([wire.reply("ready"), wire.slow(threading.Event())]) as server:
            anyio.run(check_model, model_of(server, name), asking())  # what is loaded for the first call takes a second
            answer = anyio.run(check_model, model_of(server, name), asking(seconds=0.5))
            assert (answer.error, answer.assumed) == ("timeout", True)
            assert server.gone.wait(10)

    def test_no_time_at_all_is_no_time(self) -> None:
        answer, _ = answered(OPENAI, wire.slow(threading.Event()), seconds=0.0)
        assert answer.error in ("timeout", "connection")

    @pytest.mark.parametrize("name", WIRES)
    def test_a_call_in_flight_is_cancelled_and_hangs_up(self, name: str) -> None:
        async def story(server: wire.Server) -> bool:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(model_of(server, name).complete, asking())
                    await anyio.to_thread.run_sync(server.arrived.wait, 10)
                    scope.cancel()
            return await anyio.to_thread.run_sync(server.gone.wait, 5)

        with wire.Server([wire.slow(threading.Event())]) as server:
            assert anyio.run(story, server)
        gc.collect()  # a socket left open is a ResourceWarning now, and warnings are errors

    def test_a_bug_of_ours_is_no_fault_of_the_provider(self) -> None:
        with wire.Server() as server, pytest.raises(AttributeError):
            anyio.run(model_of(server, OPENAI).complete, asking(tools=("no tool",)))


class TestKeys:
    """What nobody may read."""

    @pytest.mark.parametrize("name", WIRES)
    @pytest.mark.parametrize(
        "step",
        [
            wire.failing(401, f"no such key: {KEY}"),
            wire.reply(
                f"your key is {KEY}", ("read_file", {"path": f"/{KEY}", KEY: [{"x": KEY}]}), thinking=f"hm {KEY}"
            ),
            wire.refused(f"not with {KEY}"),
            wire.Step(raw=f"<html>{KEY}".encode(), headers={"Content-Type": "text/html"}),
        ],
        ids=["detail", "reply", "refusal", "page"],
    )
    def test_no_key_is_in_what_a_provider_says(self, name: str, step: wire.Step) -> None:
        answer, _ = answered(name, step)
        assert KEY not in texts(answer)
        assert "Traceback" not in answer.detail

    def test_other_keys_of_the_run_are_struck_out_too(self) -> None:
        route = Route(model=OPENAI, max_output_tokens=10, price=PRICE)
        other = "another-key-of-this-run"
        with wire.Server([wire.failing(400, f"{other} {KEY} sk-proj-abcdefghijklmnopqrstuv")]) as server:
            route = msgspec.structs.replace(route, base_url=server.url)
            answer = anyio.run(LlmModel(route, KEY, find_tariff(route), (other,)).complete, asking())
        assert answer.detail == "HTTP 400: [key] [key] [key]"

    def test_what_a_provider_says_fits_on_one_line(self) -> None:
        answer, _ = answered(OPENAI, wire.failing(400, "no\nway\x1b[31m " + "x" * 1000))
        assert answer.detail.startswith("HTTP 400: no way [31m xxx")
        assert len(answer.detail) == LONGEST_DETAIL

    def test_a_key_at_the_cut_is_no_half_key(self) -> None:
        said = clean_to_one_line("x" * (LONGEST_DETAIL - 5) + KEY, (KEY,))
        assert KEY[:3] not in said

    def test_a_placeholder_is_not_struck_out(self) -> None:
        assert clean("no-key was sent", (PLACEHOLDER,)) == "no-key was sent"

    @given(st.text(), st.text(min_size=8))
    def test_a_struck_out_key_is_gone(self, around: str, key: str) -> None:
        cleaned = clean(f"{around}{key}{around}", (key,))
        assert key not in cleaned or key in "[key]" or key in f"{around}[key]{around}"


PLANTED = "planted-4711"

VARIABLES = {
    **{f"{sdk}_CUSTOM_HEADERS": f"X-Own: {PLANTED}\nAuthorization: Bearer {PLANTED}\nUser-Agent: {PLANTED}"
       for sdk in ("OPENAI", "ANTHROPIC")},
    **dict.fromkeys(
        ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
         "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN",
         "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_SCOPE",
         "ANTHROPIC_WEBHOOK_SIGNING_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT",
         "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY",
         "OPENROUTER_APP_URL", "OPENROUTER_APP_TITLE", "OLLAMA_API_KEY"),
        PLANTED,
    ),
    **dict.fromkeys(
        ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL",
         "OLLAMA_BASE_URL", "HTTP_PROXY", "ALL_PROXY"),
        f"http://127.0.0.1:9/{PLANTED}",
    ),
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_USE_ENTERPRISE": "true",
    "GOOGLE_GENAI_CLIENT_MODE": "replay",
    "GOOGLE_GENAI_REPLAY_ID": PLANTED,
    "GOOGLE_API_USE_MTLS_ENDPOINT": "always",
}  # fmt: skip
"""What the clients read from the environment, by their sources."""


class TestEnvironment:
    """What a request holds that nobody passed in: nothing."""

    @pytest.mark.parametrize("name", DIALECTS)
    def test_nothing_of_the_environment_is_sent(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        _, plain = answered(name, wire.reply("x"))
        for variable, value in VARIABLES.items():
            monkeypatch.setenv(variable, value)
        answer, server = answered(name, wire.reply("x"))
        assert answer.reply.content == "x"
        (sent,) = server.requests
        assert PLANTED not in texts([sent.path, dict(sent.headers), sent.body])
        own = {"host": "", "content-length": ""}
        assert {**sent.headers, **own} == {**plain.requests[0].headers, **own}
        assert (sent.path, sent.body) == (plain.requests[0].path, plain.requests[0].body)
        assert KEY in sent.headers["x-goog-api-key" if name == GOOGLE else "authorization"]


class TestWorst:
    """What is set aside."""

    @given(st.lists(st.text(max_size=200), max_size=6))
    def test_it_is_no_less_than_the_bytes(self, said: list[str]) -> None:
        messages = tuple(Message("user", text) for text in said)
        assert bound_tokens(messages, (), (0, 0)) >= sum(len(t.encode("utf-8", "replace")) for t in said)

    @given(st.text(max_size=200), st.dictionaries(st.text(), st.text(), max_size=3))
    def test_calls_results_and_thoughts_count(self, text: str, arguments: dict[str, str]) -> None:
        plain = Message("assistant", text)
        full = Message("assistant", text, (ToolCall("read_file", dict(arguments), "c1"),), {"parts": [{"x": text}]})
        size = sum(len((k + v).encode("utf-8", "replace")) for k, v in arguments.items())
        assert bound_tokens((full,), (), (0, 0)) >= bound_tokens((plain,), (), (0, 0)) + size + len(
            text.encode("utf-8", "replace")
        )

    @given(st.text(max_size=300), st.text(max_size=300), st.integers(100, 10_000))
    def test_only_what_follows_the_measured_part_is_estimated(self, old: str, new: str, tokens: int) -> None:
        messages = (Message("user", old), Message("user", new))
        bound = bound_tokens(messages, (READ,), (1, tokens))
        assert bound == bound_tokens((Message("user", "other"), messages[1]), (READ,), (1, tokens))
        assert bound >= tokens + len(new.encode("utf-8", "replace"))
        assert bound_tokens(messages, (READ,), (2, tokens)) >= tokens

    @pytest.mark.parametrize("measured", [(0, 0), (5, 100), (-1, 100), (1, 0)])
    def test_a_measure_that_cannot_be_is_not_used(self, measured: tuple[int, int]) -> None:
        assert bound_tokens(OPENING, (READ,), measured) == bound_tokens(OPENING, (READ,), (0, 0))

    @pytest.mark.parametrize(
        "text", ["def solve(n):\n    return n + 1\n", "She went home. ", "\u6f22\u5b57\u4eee\u540d", "\U0001f600"]
    )
    def test_a_measure_of_what_was_not_in_the_cache_is_no_bound(self, text: str) -> None:
        many = text * 1000
        messages = (Message("user", many), Message("user", "Go on."))
        size = len(many.encode())
        for counted in (40, size // 13):
            assert bound_tokens(messages, (READ,), (1, counted)) == bound_tokens(messages, (READ,), (0, 0)) > size
        for counted in (size // 5, size // 12 + 1):
            assert counted <= bound_tokens(messages, (READ,), (1, counted)) < counted + 1000

    def test_thoughts_that_a_provider_does_not_count_make_no_measure_small(self) -> None:
        messages = (Message("assistant", "Look.", (), {"parts": [{"signature": "x" * 10_000}]}), Message("user", "Go."))
        assert bound_tokens(messages, (), (1, 10)) < 1000

    def test_it_is_all_of_the_output_and_nothing_from_the_cache(self) -> None:
        with wire.Server() as server:
            worst = model_of(server, OPENAI).worst(asking())
            dearer = model_of(server, ANTHROPIC).worst(asking())
        prompt = bound_tokens(OPENING, (READ,), (0, 0))
        assert worst.tokens == prompt + 500
        assert worst.usd == pytest.approx((prompt * 1.0 + 500 * 2.0) / 1e6)
        assert dearer.usd == pytest.approx((prompt * 1.25 + 500 * 2.0) / 1e6), "all of it might be written to the cache"


class TestProviders:
    """Who there is to ask."""

    def test_every_provider_has_a_model_for_every_tier(self) -> None:
        for provider in PROVIDERS:
            assert set(provider.models) == set(DEFAULT_MAX_OUTPUT)
            assert find_provider(f"{provider.name}:{provider.models['mid']}") is provider

    @pytest.mark.parametrize("model", ["nobody:x", "gpt-6", "", ":x", "openai:", "openai: ", "openrouter:gpt"])
    def test_what_is_no_model_is_refused(self, model: str) -> None:
        with pytest.raises(BadInput):
            find_provider(model)

    @pytest.mark.parametrize(
        "base_url",
        [
            "ftp://x",
            "x",
            "http://",
            "http://me:secret@x/v1",
            "http://me@x",
            "file:///etc",
            "http://[::1",
            "http://x:y/",
            "http://x/v1?a=b",
        ],
    )
    def test_what_is_no_base_url_is_refused(self, base_url: str) -> None:
        with pytest.raises(BadInput) as refusal:
            find_key(find_provider("openai:x"), {}, base_url)
        assert "secret" not in str(refusal.value)

    def test_keys_are_found_in_order_and_missed_by_name(self) -> None:
        google = find_provider("google:x")
        assert find_key(google, {"GEMINI_API_KEY": "b", "GOOGLE_API_KEY": " a\n"}) == "a"
        assert find_key(google, {"GEMINI_API_KEY": "b", "GOOGLE_API_KEY": ""}) == "b"
        with pytest.raises(BadInput, match="GOOGLE_API_KEY or GEMINI_API_KEY"):
            find_key(google, {})
        with pytest.raises(BadInput, match="OPENAI_API_KEY holds"):
            find_key(find_provider("openai:x"), {"OPENAI_API_KEY": "k\u00e9y"})

    def test_a_server_of_one_s_own_needs_no_key(self) -> None:
        assert find_key(find_provider("openai:x"), {}, "http://localhost:8080/v1") == PLACEHOLDER
        assert find_key(find_provider("ollama:x"), {}) == PLACEHOLDER

    @pytest.mark.parametrize(
        ("base_url", "local"),
        [
            ("http://localhost:1/v1", True), ("http://127.0.0.1/v1", True), ("http://127.9.9.9", True),
            ("http://[::1]:8080", True), ("http://a.localhost", True), ("http://localhost.example", False),
            ("http://127.0.0.1.example", False), ("http://10.0.0.1", False),
            ("https://api.openai.com/v1", False), ("", False),
        ],
    )  # fmt: skip
    def test_only_this_machine_is_local(self, base_url: str, local: bool) -> None:  # noqa: FBT001  a column of the table
        assert is_local(base_url) is local


class TestRouter:
    """Which tier asks whom."""

    SETTINGS = Settings(
        routes={
            "cheap": Route(model="openai:gpt-6-luna", max_output_tokens=8192),
            "mid": Route(model="anthropic:claude-sonnet-5-5", max_output_tokens=16384),
            "frontier": Route(model="anthropic:claude-opus-5-5", max_output_tokens=16384),
        }
    )
    ENVIRON: ClassVar = {"OPENAI_API_KEY": "openai-key", "ANTHROPIC_API_KEY": "anthropic-key", "HOME": "/home/me"}

    def test_a_tier_has_one_model(self) -> None:
        by_tier = build_routes(self.SETTINGS, self.ENVIRON)
        assert by_tier("cheap").name == "openai:gpt-6-luna"
        assert by_tier("mid") is by_tier("mid")

    def test_the_frontier_route_is_a_model_like_any_other(self) -> None:
        assert build_routes(self.SETTINGS, self.ENVIRON)("frontier").name == "anthropic:claude-opus-5-5"

    def test_an_unknown_tier_is_refused(self) -> None:
        with pytest.raises(BadInput, match="known are cheap, mid"):
            build_routes(self.SETTINGS, self.ENVIRON)("best")

    def test_only_the_key_that_is_needed_must_be_there(self) -> None:
        by_tier = build_routes(self.SETTINGS, {"OPENAI_API_KEY": "openai-key"})
        assert by_tier("cheap").name == "openai:gpt-6-luna"
        with pytest.raises(BadInput, match="ANTHROPIC_API_KEY"):
            by_tier("mid")

    def test_the_keys_of_the_run_are_known(self) -> None:
        assert collect_keys(self.SETTINGS, self.ENVIRON) == ("anthropic-key", "openai-key")

    @pytest.mark.parametrize(
        "route",
        [
            Route(model="openai:gpt-6-luna", max_output_tokens=0),
            Route(model="openai:gpt-6-luna", max_output_tokens=1, base_url="gopher://x"),
            Route(model="openai:nobody-knows-this", max_output_tokens=1),
            Route(model="nobody:x", max_output_tokens=1, price=PRICE),
        ],
    )
    def test_a_route_that_leads_nowhere_is_refused(self, route: Route) -> None:
        with pytest.raises(BadInput):
            build_routes(Settings(routes={"mid": route}), self.ENVIRON)("mid")


@pytest.mark.slow
def test_importing_the_model_imports_no_client() -> None:
    heavy = ("pydantic_ai", "pydantic", "openai", "anthropic", "google.genai", "genai_prices", "httpx2")
    modules = "sys, jumar.models.llm, jumar.models.router, jumar.models.recording, jumar.models.replay"
    code = f"import {modules}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("missing", sampled(["pydantic_ai", "anthropic", "genai_prices"], "anthropic"))
def test_a_missing_extra_is_named(missing: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
from jumar.core.state.settings import Route, Settings
from jumar.errors import BadInput
from jumar.models.router import build_routes
settings = Settings(routes={{"mid": Route(model="openai:gpt-4o", max_output_tokens=1)}})
try:
    build_routes(settings, {{"OPENAI_API_KEY": "k"}})("mid")
except BadInput as refusal:
    print(refusal)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'jumar[llm]'" in done.stdout
