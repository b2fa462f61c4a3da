"""Model of a provider for an external agent: forwards its requests, metered, with the key that only this side holds."""

from __future__ import annotations

import json
import ssl
from collections import deque
from collections.abc import Mapping
from functools import cached_property

import anyio
import msgspec

from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply
from jumar.core.state.settings import Route
from jumar.errors import BadInput, Infra
from jumar.models.llm import LONGEST_SECONDS, SHORTEST_SECONDS
from jumar.models.wire.decode import DecodedReply, build_reply, decode_answer, strip_usage
from jumar.models.wire.faults import CallFault
from jumar.models.wire.http_client import CONNECT_SECONDS, check_installed
from jumar.models.wire.jsonl import MOST_USD
from jumar.models.wire.messages import MOST_BYTES_PER_TOKEN, PER_REQUEST
from jumar.models.wire.prices import PriceList
from jumar.models.wire.providers import PLACEHOLDER, find_provider, is_local
from jumar.models.wire.redaction import MASK, SHORTEST, clean_to_one_line
from jumar.models.wire.request_formats import (
    CHAT,
    FORMS,
    ForwardedRequest,
    ForwardRefusal,
    RequestFormat,
    parse_request,
)
from jumar.ports import Answer, Ask

ANSWER_BYTES = 64 << 20
"""A longer answer is none."""

KEPT = 8
"""Conversations whose newest measure is remembered."""

PASSED = ("content-type", "retry-after", "retry-after-ms")
"""Headers of an answer that the agent is given."""

VERSION = "2023-06-01"
"""Of Anthropic's wire, where the agent does not say."""

AGENTS_OWN = ("anthropic-version", "anthropic-beta")
"""Headers of the agent's that are sent on: they say how the body is to be read."""

ERROR_STATUS = {"timeout": 504, "connection": 502, "malformed": 502}
"""HTTP status for the agent where the provider itself gave none."""


class ForwardedReply(msgspec.Struct, frozen=True):
    """HTTP response that the proxy hands to an agent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ForwardedModel:
    """Model of *route*, asked with *key* and billed by *tariff*. *secrets* are redacted beside the key.

    It answers one request at a time: the one in `pending`. What the agent is to be answered lies in `given` then.

    Raises:
        BadInput: if the provider's wire is none that agents speak, or the clients are not installed.
    """

    def __init__(self, route: Route, key: str, tariff: PriceList, secrets: tuple[str, ...] = ()) -> None:
        check_installed()
        self.name = route.model
        self.pending: ForwardedRequest | None = None
        self.given: ForwardedReply | None = None
        self._route, self._key, self._tariff = route, key, tariff
        self._provider = find_provider(route.model)
        self._secrets = tuple(s for s in {key: 0, **dict.fromkeys(secrets, 0)} if s != PLACEHOLDER)
        self._measured: deque[tuple[str, tuple[str, ...], int]] = deque(maxlen=KEPT)
        if self._provider.wire not in {form.wire for form in FORMS}:
            raise BadInput(
                f"agents outside jumar cannot be given {route.model}: they speak OpenAI's or Anthropic's wire, and "
                f"{self._provider.name} another; name its compatible server with --model openai:NAME --base-url URL"
            )

    def build_request(
        self, form: RequestFormat, body: bytes, headers: Mapping[str, str]
    ) -> ForwardedRequest | ForwardRefusal:
        """Return the request to send for an agent's request, or the refusal. *headers* have lower-case names."""
        if form.wire != self._provider.wire:
            other = "POST /v1/messages" if self._provider.wire == "anthropic" else "POST /v1/chat/completions"
            return ForwardRefusal(404, f"the model of this run is {self.name}, which is asked with {other}")
        told = parse_request(form, body, self.name, self._route.max_output_tokens, self._route.base_url)
        if isinstance(told, ForwardRefusal):
            return told
        own = {"content-type": "application/json", "accept-encoding": "identity"}
        if form.wire == "openai":
            own["authorization"] = f"Bearer {self._key}"
        else:
            own |= {"x-api-key": self._key, "anthropic-version": VERSION}
            own |= {name: headers[name] for name in AGENTS_OWN if headers.get(name, "").isascii() and name in headers}
        return msgspec.structs.replace(told, headers=own)

    def worst(self, ask: Ask) -> Cost:  # noqa: ARG002  the port's signature
        """Return an upper bound of the pending request's cost: every output token, nothing cached.

        A token covers at least one byte. Of a conversation that goes on, only what is new has to be estimated.
        """
        request = self._get_pending()
        prompt = request.overhead + sum(turn.tokens for turn in request.turns)
        for head, known, tokens in self._measured:
            count, size = len(known), sum(turn.size for turn in request.turns[: len(known)])
            same = head == request.head and known == tuple(turn.digest for turn in request.turns[:count])
            if same and size <= tokens * MOST_BYTES_PER_TOKEN:
                prompt = min(prompt, tokens + sum(turn.tokens for turn in request.turns[count:]) + PER_REQUEST)
        return Cost(self._tariff.worst(prompt, request.max_output), prompt + request.max_output)

    async def complete(self, ask: Ask) -> Answer:
        """Return the answer to the pending request, from one request to the provider."""
        import httpx2  # noqa: PLC0415  not part of the core install

        request, self.given = self._get_pending(), None
        seconds = LONGEST_SECONDS if ask.seconds is None else max(SHORTEST_SECONDS, min(LONGEST_SECONDS, ask.seconds))
        try:
            with anyio.move_on_after(seconds):
                return self._judge(request, await self._exchange(request, seconds))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL) as raised:
            return self._build_failure(CallFault("connection", str(raised) or type(raised).__name__))
        except httpx2.TimeoutException as raised:
            return self._build_failure(CallFault("timeout", str(raised) or "no answer in time", billed=True))
        except (httpx2.TransportError, httpx2.DecodingError) as raised:
            return self._build_failure(CallFault("connection", str(raised) or type(raised).__name__, billed=True))
        return self._build_failure(CallFault("timeout", f"no answer within {seconds:g} seconds", billed=True))

    def _get_pending(self) -> ForwardedRequest:
        if self.pending is None:
            raise Infra("there is no request of an agent to answer")
        return self.pending

    async def _exchange(self, request: ForwardedRequest, seconds: float) -> ForwardedReply:
        import httpx2  # noqa: PLC0415  as above

        base_url = (self._route.base_url or self._provider.base_url).rstrip("/")
        if request.form.wire == "anthropic":
            base_url = base_url.removesuffix("/v1")
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        async with (
            httpx2.AsyncClient(timeout=timeout, verify=self._context, trust_env=not is_local(base_url)) as http,
            http.stream(
                "POST", base_url + request.form.path, content=request.body, headers=dict(request.headers)
            ) as response,
        ):
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > ANSWER_BYTES:
                    raise httpx2.DecodingError("the answer does not end")
            kept = {name: response.headers[name] for name in PASSED if name in response.headers}
            return ForwardedReply(response.status_code, kept, bytes(body))

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Certificates, read once. Plain http needs none."""
        import httpx2  # noqa: PLC0415  as above

        if (self._route.base_url or self._provider.base_url).startswith("http://"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx2.create_ssl_context()

    def _judge(self, request: ForwardedRequest, given: ForwardedReply) -> Answer:
        self.given = msgspec.structs.replace(given, body=self._redact(given.body))
        if given.status != 200:  # noqa: PLR2004  HTTP's OK
            return self._build_failure(_classify_status(given))
        streamed = request.stream and "event-stream" in given.headers.get("content-type", "")
        answer = decode_answer(request.form, given.body, stream=streamed)
        if answer is None or not answer.whole:
            why = "the answer is no completion" if answer is None else "the answer broke off"
            return self._build_failure(CallFault("malformed" if answer is None else "connection", why, billed=True))
        if answer.failed:
            return self._build_failure(CallFault("server", answer.failed, billed=True))
        if streamed and request.form is CHAT and not request.usage_wanted:
            self.given = msgspec.structs.replace(self.given, body=strip_usage(self.given.body))
        if answer.input_tokens:
            turns = tuple(turn.digest for turn in request.turns)
            self._measured.appendleft((request.head, turns, answer.input_tokens))
        return self._build_answer(answer)

    def _build_answer(self, answer: DecodedReply) -> Answer:
        tokens = (answer.input_tokens, answer.cached_tokens, answer.output_tokens, answer.written_tokens)
        spoke = bool(answer.content or answer.calls)
        return Answer(
            reply=build_reply(answer, self._secrets),
            input_tokens=answer.input_tokens,
            cached_tokens=answer.cached_tokens,
            output_tokens=answer.output_tokens,
            usd=max(self._tariff.cost(*tokens), self._get_charge(answer.charged)),
            error="refusal" if answer.refused else "",
            detail=clean_to_one_line(answer.refused, self._secrets),
            assumed=answer.input_tokens == 0 or (answer.output_tokens == 0 and spoke),
        )

    def _get_charge(self, told: object) -> float:
        """Return the cost that OpenRouter reports, which depends on its routing; 0 if a person set the price."""
        if self._provider.name != "openrouter" or self._route.price is not None or not isinstance(told, int | float):
            return 0.0
        return float(told) if 0 <= told <= MOST_USD else 0.0

    def _build_failure(self, fault: CallFault) -> Answer:
        detail = clean_to_one_line(fault.detail, self._secrets)
        if self.given is None or self.given.status == 200:  # noqa: PLR2004  HTTP's OK
            status = ERROR_STATUS.get(fault.error, 502)
            body = {"type": "error", "error": {"type": fault.error, "message": detail, "code": fault.error}}
            self.given = ForwardedReply(status, {"content-type": "application/json"}, json.dumps(body).encode())
        return Answer(
            reply=Reply(), error=fault.error, detail=detail, retry_after=fault.retry_after, assumed=fault.billed
        )

    def _redact(self, body: bytes) -> bytes:
        """Return *body* without keys: a provider may quote one."""
        for secret in self._secrets:
            if len(secret) >= SHORTEST:
                body = body.replace(secret.encode(), MASK.encode())
        return body


def _classify_status(given: ForwardedReply) -> CallFault:
    """Return the fault of an answer with another status than 200. It costs nothing."""
    try:
        error = json.loads(given.body).get("error")
    except (ValueError, AttributeError, RecursionError):
        error = None
    told = error if isinstance(error, dict) else {"message": error}
    words = str(told.get("message") or given.body[:300].decode("utf-8", "replace") or "no reason was given")
    kinds = {str(told.get("code")), str(told.get("type"))}
    known = {408: "timeout", 413: "context", 429: "rate_limit"}
    error_name = "server" if given.status >= 500 else known.get(given.status, "rejected")  # noqa: PLR2004  HTTP's own
    if kinds & {"context_length_exceeded", "exceed_context_size_error"} or "prompt is too long" in words:
        error_name = "context"
    elif kinds & {"insufficient_quota", "billing_error"}:
        error_name = "rejected"
    elif "content_filter" in kinds:
        error_name = "refusal"
    return CallFault(error_name, f"HTTP {given.status}: {words}", _read_retry_after(given.headers))


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asked to wait; None if it did not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers.get(name, "")) / unit), 1e9)
        except ValueError:
            continue
    return None
