"""Redacts keys in everything that a provider sends, and makes it valid text before it is kept."""

from __future__ import annotations

import re

MASK = "[key]"

SHORTEST = 8
"""Characters: a shorter key is a placeholder, and striking it out would tear ordinary words."""

LONGEST_DETAIL = 300
"""Characters of a fault that are kept: what the provider says first tells what is wrong."""

LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk)-[\w-]{16,}|\bAIza[\w-]{30,}|(?<=Bearer )[\w.~+/=-]{16,}")
"""Shapes of keys that a message may quote although they are not ours: OpenAI's and its kin, Google's, bearer tokens."""


def clean(text: str, secrets: tuple[str, ...]) -> str:
    """Return *text* without *secrets*, as valid UTF-8: half a surrogate pair becomes a question mark."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_json(value: object, secrets: tuple[str, ...]) -> object:
    """Return *value*, as decoded from JSON, with every text in it clean."""
    if isinstance(value, str):
        return clean(value, secrets)
    if isinstance(value, dict):
        return {clean(str(k), secrets): clean_json(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(v, secrets) for v in value]
    return value


def clean_to_one_line(text: str, secrets: tuple[str, ...]) -> str:
    """Return the beginning of *text* on one line, without control characters and anything that looks like a key."""
    plain = "".join(c if c.isprintable() else " " for c in clean(text, secrets))
    line = LOOKS_LIKE_A_KEY.sub(MASK, " ".join(plain.split()))
    return line if len(line) <= LONGEST_DETAIL else f"{line[: LONGEST_DETAIL - 1]}…"
