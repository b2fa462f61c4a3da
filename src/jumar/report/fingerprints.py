"""Fingerprints of test failures: equal for the same fault, whatever numbers, paths and addresses differ."""

from __future__ import annotations

import re
from hashlib import sha256

DIGITS = 8
"""Hexadecimal digits of a fingerprint: among 10,000 different failures two share one with a chance of about 1 %."""

VARIABLE = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "ADDRESS"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.@+~-]*[/\\])+[\w.@+-]*"), "PATH"),
    (re.compile(r"(?<![A-Za-z_])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)
"""Parts of a message that differ from run to run, and what stands for them."""


def compute_fingerprint(test_id: str, message: str) -> str:
    """Return the fingerprint of the failure of *test_id* with *message*."""
    text = message
    for pattern, name in VARIABLE:
        text = pattern.sub(name, text)
    return sha256(f"{test_id}\n{text.strip()}".encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]
