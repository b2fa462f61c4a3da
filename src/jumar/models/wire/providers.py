"""Table of providers: the request format, the variables of the key, and the usual models of each."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from jumar.core.prompts.suggestion import build_suggestion
from jumar.errors import BadInput

Wire = Literal["openai", "anthropic", "google"]
"""Chat completions, messages, generateContent: the three request formats there are."""

DEFAULT_MAX_OUTPUT: Mapping[str, int] = {"cheap": 16_384, "mid": 8_192, "frontier": 16_384}
"""Tier -> tokens a reply may have where nobody chose."""

PLACEHOLDER = "no-key"
"""Sent to a server that needs no key, because the clients insist on one."""


HIGHEST_TEMPERATURE = 2.0
"""Highest temperature that any provider takes; some take less, and say so themselves."""

OPENAI = "https://api.openai.com/v1"
"""Base URL of OpenAI itself: every other place only speaks its wire."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Wire, base URL, keys and models of a provider."""

    name: str
    wire: Wire
    base_url: str
    """The provider's own; a route's `base_url` wins."""
    keys: tuple[str, ...]
    """Environment variables that may hold the key; the first one that is set counts."""
    models: Mapping[str, str]
    """Tier -> the model that is asked where nobody chose."""
    needs_key: bool = True


PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        wire="openai",
        base_url=OPENAI,
        keys=("OPENAI_API_KEY",),
        models={"cheap": "gpt-6-luna", "mid": "gpt-6.1-terra", "frontier": "gpt-6.1-sol"},
    ),
    Provider(
        name="anthropic",
        wire="anthropic",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        models={"cheap": "claude-haiku-5-5", "mid": "claude-sonnet-5-5", "frontier": "claude-opus-5-5"},
    ),
    Provider(
        name="google",
        wire="google",
        base_url="https://generativelanguage.googleapis.com",
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        models={"cheap": "gemini-3.5-flash-lite", "mid": "gemini-3.8-flash", "frontier": "gemini-3.1-pro-preview"},
    ),
    Provider(
        name="deepseek",
        wire="openai",
        base_url="https://api.deepseek.com",
        keys=("DEEPSEEK_API_KEY",),
        models={"cheap": "deepseek-flash", "mid": "deepseek-v4-pro", "frontier": "deepseek-v4-pro"},
    ),
    Provider(
        name="openrouter",
        wire="openai",
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        models={
            "cheap": "anthropic/claude-haiku-5.5",
            "mid": "anthropic/claude-sonnet-5.5",
            "frontier": "anthropic/claude-opus-5.5",
        },
    ),
    Provider(
        name="ollama",
        wire="openai",
        base_url="http://localhost:11434/v1",
        keys=("OLLAMA_API_KEY",),
        models={"cheap": "qwen3-coder", "mid": "qwen3-coder", "frontier": "qwen3-coder"},
        needs_key=False,
    ),
)


def find_provider(model: str) -> Provider:
    """Return the provider of *model*, `PROVIDER:NAME`.

    Raises:
        BadInput: if there is no such provider (the known ones are listed) or no name of a model.
    """
    kind, _, name = model.partition(":")
    known = {provider.name: provider for provider in PROVIDERS}
    if kind not in known:
        raise BadInput(f"unknown provider {kind!r} of the model {model!r}; {build_suggestion(kind, known)}")
    if not name.strip():
        raise BadInput(f"the model {model!r} has no name; write one such as {kind}:{known[kind].models['mid']}")
    if kind == "openrouter" and "/" not in name:
        raise BadInput(f"a model of openrouter is named MAKER/NAME, such as {known[kind].models['mid']}, not {name!r}")
    return known[kind]


def check_temperature(temperature: float, said: str) -> None:
    """Refuse a *temperature* that no provider accepts; *said* is the person's own text.

    Raises:
        BadInput: naming it.
    """
    if not 0 <= temperature <= HIGHEST_TEMPERATURE:
        raise BadInput(f"{said} must be between 0 and {HIGHEST_TEMPERATURE:g}, not {temperature:g}")


def check_base_url(base_url: str) -> None:
    """Refuse a *base_url* to which no request can be sent.

    Raises:
        BadInput: if *base_url* is no http or https URL, or holds a user name or password.
    """
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadInput("the base URL cannot be read; write one such as http://localhost:8080/v1") from None
    if parts.username is not None or parts.password is not None:
        raise BadInput("the base URL holds a user name or password, which the journal would show; leave it out")
    if parts.scheme not in ("http", "https") or not host:
        raise BadInput(f"the base URL {base_url!r} is not http or https; write one such as http://localhost:8080/v1")
    if parts.query or parts.fragment:
        raise BadInput(f"the base URL {base_url!r} has a query or fragment; leave out what follows the path")


def is_local(base_url: str) -> bool:
    """Return whether *base_url* is on this machine: a loopback address, or the name of one."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def find_key(provider: Provider, environ: Mapping[str, str], base_url: str = "") -> str:
    """Return the key to send; `PLACEHOLDER` if none is set and none is needed.

    Raises:
        BadInput: if a key is needed and not set (the variable is named), or is not one line of plain characters.
    """
    if base_url:
        check_base_url(base_url)
    for variable in provider.keys:
        key = environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise BadInput(f"{variable} holds characters that are in no key; set it to the key alone")
        if key:
            return key
    if base_url or not provider.needs_key:
        return PLACEHOLDER
    variables = " or ".join(provider.keys)
    raise BadInput(f"there is no key for {provider.name}: set {variables}, or name a server of your own (--base-url)")
