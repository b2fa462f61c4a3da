"""Opens one connection per call, without the environment's settings: not shared, kept alive, retried or redirected."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from jumar.errors import BadInput
from jumar.models.wire.providers import OPENAI, Provider, is_local

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model as Client

CONNECT_SECONDS = 15.0
"""For the connection alone: a server that takes longer is not there."""

ONLY_COMPLETION_TOKENS = ("gpt-5", "gpt-6", "o1", "o3", "o4")
"""Names of models that refuse `max_tokens`, the older word, which every compatible server knows."""


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """URL, headers and limits of a call to a model."""

    provider: Provider
    model: str
    """Name at the provider."""
    base_url: str
    """Empty is the provider's own."""
    key: str
    seconds: float


def check_installed() -> None:
    """Refuse to continue if the clients are not installed.

    Raises:
        BadInput: naming the extra that brings them.
    """
    if any(find_spec(module) is None for module in ("pydantic_ai", "openai", "anthropic", "genai_prices")):
        raise BadInput("models of providers need the extra llm: pip install 'jumar[llm]'")


@asynccontextmanager
async def open_client(line: ModelEndpoint, context: ssl.SSLContext) -> AsyncIterator[Client]:
    """Yield the client for one call over *line*; its connection is closed when the block ends in any way."""
    import httpx2  # noqa: PLC0415  not part of the core install

    base_url = _build_base_url(line)
    timeout = httpx2.Timeout(line.seconds, connect=min(CONNECT_SECONDS, line.seconds))
    # A proxy of the environment has nothing to do with a server on this machine.
    async with httpx2.AsyncClient(
        timeout=timeout, verify=context, trust_env=not is_local(base_url), follow_redirects=False
    ) as http:
        match line.provider.wire:
            case "openai":
                yield _open_openai(line, base_url, http)
            case "anthropic":
                yield _open_anthropic(line, base_url, http)
            case "google":
                yield _open_google(line, base_url, http, context)


def _build_base_url(line: ModelEndpoint) -> str:
    """Return the base URL, without the version that two of the clients add by themselves."""
    base_url = (line.base_url or line.provider.base_url).rstrip("/")
    if line.provider.wire == "openai":
        return base_url
    return base_url.removesuffix("/v1beta" if line.provider.wire == "google" else "/v1").removesuffix("/v1")


def _open_openai(line: ModelEndpoint, base_url: str, http: httpx2.AsyncClient) -> Client:
    """Open a client of chat completions, in the dialect of the provider."""
    from openai import AsyncOpenAI  # noqa: PLC0415  not part of the core install
    from pydantic_ai.models.ollama import OllamaModel  # noqa: PLC0415  as above
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  as above
    from pydantic_ai.models.openrouter import OpenRouterModel  # noqa: PLC0415  as above
    from pydantic_ai.providers.deepseek import DeepSeekProvider  # noqa: PLC0415  as above
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415  as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  as above
    from pydantic_ai.providers.openrouter import OpenRouterProvider  # noqa: PLC0415  as above

    client = AsyncOpenAI(api_key=line.key, base_url=base_url, http_client=http, max_retries=0, timeout=http.timeout)
    # The environment may name an account, which nobody here chose to be known by.
    client.organization = client.project = None
    _strip(client)
    match line.provider.name:
        case "deepseek":
            return OpenAIChatModel(line.model, provider=DeepSeekProvider(openai_client=client))
        case "openrouter":
            return OpenRouterModel(line.model, provider=OpenRouterProvider(openai_client=client))
        case "ollama":
            return OllamaModel(line.model, provider=OllamaProvider(openai_client=client))
        case _ if base_url != OPENAI:
            return _add_compatible(line, client)
        case _:
            return OpenAIChatModel(line.model, provider=OpenAIProvider(openai_client=client))


def _add_compatible(line: ModelEndpoint, client: AsyncOpenAI) -> Client:
    """Return a server that speaks OpenAI's wire and is not OpenAI."""
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  as above
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415  as above
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415  as above

    newer = line.model.rpartition("/")[2].startswith(ONLY_COMPLETION_TOKENS)
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=newer)
    return OpenAIChatModel(
        line.model, provider=OpenAICompatibleProvider("compatible", openai_client=client, profile=profile)
    )


def _open_anthropic(line: ModelEndpoint, base_url: str, http: httpx2.AsyncClient) -> Client:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  not part of the core install
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  as above
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415  as above

    client = AsyncAnthropic(api_key=line.key, base_url=base_url, http_client=http, max_retries=0, timeout=http.timeout)
    _strip(client)
    return AnthropicModel(line.model, provider=AnthropicProvider(anthropic_client=client))


def _strip(client: AsyncOpenAI | AsyncAnthropic) -> None:
    """Remove the headers that *client* found in the environment (`OPENAI_CUSTOM_HEADERS` and the like).

    They may hold a secret, and go wherever a base URL leads. Public ways only add to them.
    """
    if client._custom_headers:  # noqa: SLF001  see above; read first, so that another name fails instead of leaking
        client._custom_headers = {}  # noqa: SLF001  as above


def _open_google(line: ModelEndpoint, base_url: str, http: httpx2.AsyncClient, context: ssl.SSLContext) -> Client:
    from google.genai import Client as Gemini  # noqa: PLC0415  not part of the core install
    from google.genai.client import DebugConfig  # noqa: PLC0415  as above
    from google.genai.types import HttpOptions, HttpRetryOptions  # noqa: PLC0415  as above
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415  as above
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415  as above

    # Without a context it reads all certificates anew, three times, for connections that are never made.
    options = HttpOptions(
        base_url=base_url,
        httpx_async_client=http,
        client_args={"verify": context},
        async_client_args={"verify": context, "ssl": context},
        timeout=round(line.seconds * 1000),
        retry_options=HttpRetryOptions(attempts=1),
    )
    # Whatever is left out here is read from the environment: it may name recordings to be answered from.
    asked = DebugConfig(client_mode="", replays_directory="", replay_id="")
    client = Gemini(vertexai=False, api_key=line.key, http_options=options, debug_config=asked)
    return GoogleModel(line.model, provider=GoogleProvider(client=client))
