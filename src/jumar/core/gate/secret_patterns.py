"""Finds secrets, which no written file may hold: keys to other people's services, known by their exact formats.

Only what a checksum, a marker or the structure of a key bears out counts: placeholders, examples and names of variables
are honest code. A run's own keys are no business of this module: they are struck out wherever they are met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

RULE = "secret-in-write"


class Secret(NamedTuple):
    """A secret that a text holds."""

    kind: str
    text: str
    """A part of it that stands on one line: where a file had that before, the secret is not new."""


class _Format(NamedTuple):
    kind: str
    marks: tuple[str, ...]
    """One of these stands in every such text: most files hold none, and looking for them costs nothing."""
    pattern: re.Pattern[str]
    """Its first group is what has to look as if it came out of a generator."""
    holds: Callable[[str], bool] = lambda _: True


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _has_valid_checksum(token: str) -> bool:
    """Return whether the last six characters are the checksum of the others, as GitHub and npm make them.

    Format: github.blog/engineering/behind-githubs-new-authentication-token-formats
    """
    payload, said = token.rpartition("_")[2][:-6], token[-6:]
    value, digits = _compute_crc32(payload.encode()), ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = _DIGITS[digit] + digits
    return digits == said


def _compute_crc32(data: bytes) -> int:
    """Compute CRC-32 as zlib does, which the core does not import."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 & -(value & 1))
    return value ^ 0xFFFFFFFF


_FORMATS = (
    _Format(
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        re.compile(r"\bgh[pousr]_([A-Za-z0-9]{36})\b"),
        _has_valid_checksum,
    ),
    _Format("a GitHub token", ("github_pat_",), re.compile(r"\bgithub_pat_([A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b")),
    _Format("an npm token", ("npm_",), re.compile(r"\bnpm_([A-Za-z0-9]{36})\b"), _has_valid_checksum),
    _Format("a PyPI token", ("pypi-AgEI",), re.compile(r"\bpypi-AgEIcHlwaS5vcmc([\w-]{50,})")),
    _Format("a GitLab token", ("glpat-",), re.compile(r"\bglpat-([\w-]{20})(?![\w-])")),
    _Format(
        "an OpenAI key",
        ("T3BlbkFJ",),
        re.compile(r"\bsk-((?:proj-|svcacct-|admin-)?[\w-]{20,80}T3BlbkFJ[\w-]{20,80})(?![\w-])"),
    ),
    _Format("an Anthropic key", ("sk-ant-",), re.compile(r"\bsk-ant-(?:api|admin)\d\d-([\w-]{93}AA)(?![\w-])")),
    _Format("a Hugging Face token", ("hf_",), re.compile(r"\bhf_([A-Za-z]{34})\b")),
    _Format("a Google key", ("AIza",), re.compile(r"\bAIza([\w-]{35})(?![\w-])")),
    _Format(
        "a Slack token",
        ("xoxa-", "xoxb-", "xoxp-", "xoxr-"),
        re.compile(r"\bxox[abpr]-(\d{10,13}-\d{10,13}-(?:\d{10,13}-)?[A-Za-z0-9]{24,32})\b"),
    ),
    _Format("a Stripe key", ("k_live_",), re.compile(r"\b[sr]k_live_([A-Za-z0-9]{24,99})\b")),
    _Format("a SendGrid key", ("SG.",), re.compile(r"\bSG\.([\w-]{22}\.[\w-]{43})(?![\w-])")),
    _Format("a DigitalOcean token", ("_v1_",), re.compile(r"\bdo[opr]_v1_([0-9a-f]{64})\b")),
    _Format(
        "a Shopify token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        re.compile(r"\bshp(?:at|ca|pa|ss)_([0-9a-fA-F]{32})\b"),
    ),
)

_AWS_ID = re.compile(r"\b(?:AKIA|ASIA)([A-Z2-7]{16})\b")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")

_PRIVATE = re.compile(
    r"-----BEGIN ((?:RSA |EC |DSA |OPENSSH |ENCRYPTED )?PRIVATE KEY|PGP PRIVATE KEY BLOCK)-----"
    r"((?:\s|[A-Za-z0-9+/=]|[A-Za-z-]+: [^\n]*\n){80,20000}?)-----END \1-----"
)
_BODY = re.compile(r"[A-Za-z0-9+/=]{16,}")
_BEGINS = ("MI", "b3BlbnNzaC1rZXktdjE", "lQ", "lI", "lF", "xc", "xV", "xY")
"""DER sequences of some length, OpenSSH's own format, OpenPGP packets of secret keys: all in base64."""

_PRETENDS = re.compile(
    r"example|sample|dummy|fake|placeholder|redacted|changeme|your|insert|secret|token|xxxx|test|0000|1234567|abcdefg",
    re.IGNORECASE,
)
_DISTINCT = 3
"""A generated text has at least one distinct character in so many, up to its alphabet."""


def find_secrets(text: str, *, fixture: bool = False) -> Iterator[Secret]:
    """Yield the secrets that *text* holds.

    In a *fixture* (a file of tests) a private key may have been made for a test.
    """
    for form in (form for form in _FORMATS if any(mark in text for mark in form.marks)):
        for found in form.pattern.finditer(text):
            if _looks_random(found[1]) and form.holds(found[0]):
                yield Secret(form.kind, found[0])
    marked = "AKIA" in text or "ASIA" in text
    if marked and any(_looks_random(found[1]) for found in _AWS_ID.finditer(text)):
        # The id alone opens nothing: beside it stands the key, in both cases and with digits.
        for found in _AWS_SECRET.finditer(text):
            if _looks_random(found[1]) and any(c.isdigit() for c in found[1]) and found[1] != found[1].lower():
                yield Secret("an AWS key", found[1])
    if fixture or "PRIVATE KEY" not in text:
        return
    for found in _PRIVATE.finditer(text.replace("\\n", "\n").replace("\\r", "")):
        body = _BODY.findall(found[2])
        # One row of a real key in some thousands holds such a word by chance; two in succession do not.
        row = next(filter(_looks_random, body[len(body) // 2 :][:2]), "")
        if row and body[0].startswith(_BEGINS):
            yield Secret("a private key", row)


def _looks_random(text: str) -> bool:
    """Return whether *text* looks as if a generator made it, not a person."""
    least = min(len(text) // _DISTINCT, 10)
    return len(set(text)) >= least and not _PRETENDS.search(text)
