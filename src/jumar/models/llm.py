"""Model of a provider, called through its own client. Every answer and fault is a value, and every try is billed."""

from __future__ import annotations

import ssl
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace

from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply
from jumar.core.state.settings import Route
from jumar.models.wire.faults import DROPPED, CallFault, classify_fault
from jumar.models.wire.http_client import ModelEndpoint, check_installed, open_client
from jumar.models.wire.jsonl import MOST_TOKENS, MOST_USD
from jumar.models.wire.messages import Transcript, build_reply, convert_tools
from jumar.models.wire.prices import PriceList
from jumar.models.wire.providers import PLACEHOLDER, find_provider
from jumar.models.wire.redaction import clean_to_one_line
from jumar.ports import Answer, Ask

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

LONGEST_SECONDS = 600.0
"""For one call, where the run has no less left."""

SHORTEST_SECONDS = 0.01
"""Zero would mean no cap to some clients."""

SEEDS = 2**31
"""Seeds that every provider takes."""

REFUSED = "content_filter"
"""The client's word for an answer that the provider or the model withheld."""

CUT = "length"
"""Its word for an answer that ended with the tokens it may have."""


class LlmModel:
    """Model of *route*, asked with *key* and billed by *tariff*. *secrets* are redacted beside the key.

    Raises:
        BadInput: if the provider is unknown or the clients are not installed.
    """

    def __init__(self, route: Route, key: str, tariff: PriceList, secrets: tuple[str, ...] = ()) -> None:
        check_installed()
        self.name = route.model
        self._route, self._key, self._tariff = route, key, tariff
        self._provider = find_provider(route.model)
        self._transcript = Transcript()
        self._secrets = tuple(s for s in {key: 0, **dict.fromkeys(secrets, 0)} if s != PLACEHOLDER)

    def worst(self, ask: Ask) -> Cost:
        """Return an upper bound of the call's cost: see `Transcript.bound_tokens`; all output, nothing cached."""
        prompt, output = (
            self._transcript.bound_tokens(ask.messages, ask.tools, ask.measured),
            self._route.max_output_tokens,
        )
        return Cost(self._tariff.worst(prompt, output), prompt + output)

    async def complete(self, ask: Ask) -> Answer:
        """Return the answer to *ask*, from one request. Being cancelled closes the connection."""
        from pydantic_ai.direct import model_request  # noqa: PLC0415  0.5 s, and not part of the core install
        from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415  as above

        line = self._build_endpoint(ask)
        said, terms = self._transcript.convert(ask.messages), self._build_parameters(ask)
        parameters = ModelRequestParameters(function_tools=convert_tools(ask.tools))
        try:
            with anyio.move_on_after(line.seconds):
                async with open_client(line, self._context) as client:
                    response = await model_request(
                        client, said, model_settings=terms, model_request_parameters=parameters, instrument=False
                    )
                return self._build_answer(response)
        except Exception as raised:  # noqa: BLE001  the clients raise whatever an answer that is none makes them raise
            return self._build_failure(classify_fault(raised))
        return self._build_failure(CallFault("timeout", f"no answer within {line.seconds:g} seconds", billed=True))

    def _build_endpoint(self, ask: Ask) -> ModelEndpoint:
        return ModelEndpoint(
            provider=self._provider,
            model=self._route.model.partition(":")[2],
            base_url=self._route.base_url,
            key=self._key,
            seconds=LONGEST_SECONDS
            if ask.seconds is None
            else max(SHORTEST_SECONDS, min(LONGEST_SECONDS, ask.seconds)),
        )

    def _build_parameters(self, ask: Ask) -> Any:
        """Return the request parameters beside the prompt. A seed is sent if the provider takes one."""
        terms: dict[str, object] = {"max_tokens": self._route.max_output_tokens}
        if self._route.temperature is not None:
            # The client leaves it out for models that take none, with a warning that nobody would see.
            warnings.filterwarnings("error", message=DROPPED)
            terms["temperature"] = self._route.temperature
        if self._provider.wire == "anthropic":
            # The breakpoint moves with the conversation and stands outside it: the messages stay as they were.
            # A further one after the rules and tools is there for the other rollouts of the same task.
            terms |= {"anthropic_cache": True, "anthropic_cache_instructions": True}
            return terms
        if self.name.startswith("openrouter:anthropic/"):
            terms["cache"] = True
        if self._provider.name == "ollama":
            # It does not know the newer word for it, which the client uses.
            terms["extra_body"] = {"max_tokens": self._route.max_output_tokens}
        if ask.seed:
            terms["seed"] = ask.seed % SEEDS
        return terms

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Certificates, read once: that takes longer than the rest of jumar's part of a call. Plain http needs none."""
        import httpx2  # noqa: PLC0415  not part of the core install

        if (self._route.base_url or self._provider.base_url).startswith("http://"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx2.create_ssl_context()

    def _build_answer(self, response: ModelResponse) -> Answer:
        usage = response.usage
        hits = max(usage.cache_read_tokens, usage.details.get("prompt_cache_hit_tokens", 0))
        total, output = _limit_tokens(usage.input_tokens), _limit_tokens(usage.output_tokens)
        cached = max(0, min(hits, total))
        reply = replace(build_reply(response, self._secrets), cut=response.finish_reason == CUT)
        refused = response.finish_reason == REFUSED
        said = bool(reply.content or reply.tool_calls or reply.opaque)
        if not (said or total or output or response.finish_reason):
            return self._build_failure(
                CallFault("malformed", "the answer is no completion: there is nothing in it", billed=True)
            )
        why = (response.provider_details or {}).get("refusal") or "the answer was withheld"
        return Answer(
            reply=reply,
            input_tokens=total,
            cached_tokens=cached,
            output_tokens=output,
            usd=max(
                self._tariff.cost(total, cached, output, max(0, usage.cache_write_tokens)), self._get_charge(response)
            ),
            error="refusal" if refused else "",
            detail=clean_to_one_line(str(why), self._secrets) if refused else "",
            assumed=total == 0 or (output == 0 and said),
        )

    def _get_charge(self, response: ModelResponse) -> float:
        """Return the cost that OpenRouter reports, which depends on its routing; 0 if a person set the price."""
        told = (response.provider_details or {}).get("cost")
        if self._provider.name != "openrouter" or self._route.price is not None or not isinstance(told, int | float):
            return 0.0
        return float(told) if 0 <= told <= MOST_USD else 0.0

    def _build_failure(self, fault: CallFault) -> Answer:
        return Answer(
            reply=Reply(),
            error=fault.error,
            detail=clean_to_one_line(fault.detail, self._secrets),
            retry_after=fault.retry_after,
            assumed=fault.billed,
        )


def _limit_tokens(tokens: int) -> int:
    """Return *tokens* as reported, or none for an impossible number: then nothing was reported."""
    return tokens if 0 <= tokens <= MOST_TOKENS else 0
