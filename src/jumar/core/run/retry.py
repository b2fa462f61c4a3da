"""Retries transient faults of the provider, each try reserved and billed alone; any other fault ends the run."""

from __future__ import annotations

from hashlib import sha256

TRANSIENT = frozenset({"timeout", "rate_limit", "server", "connection", "malformed"})
"""Errors that may be gone at the next try: no answer in time, HTTP 429, 5xx, a dropped connection, no valid JSON."""

UNUSABLE = frozenset({"refusal"})
"""Errors that are the model's own doing: an answer was paid for, and there is nothing in it to perform."""

ERRORS = frozenset({*TRANSIENT, *UNUSABLE, "rejected", "context", "mismatch", "cancelled"})
"""All errors of a call: besides the above, the request was refused (a bad key, an unknown model), the prompt is longer
than the model's context, a recording was asked something else, the call was cut off."""

RETRIES = 4
"""Further tries after a transient fault."""

LONGEST_PAUSE = 600.0
"""Seconds: a provider that asks for more has no capacity for this run."""


def can_retry(error: str, tries: int, retry_after: float | None) -> bool:
    """Return whether to retry a call that failed with *error*, *tries* times in a row."""
    return error in TRANSIENT and tries <= RETRIES and (retry_after or 0.0) <= LONGEST_PAUSE


def compute_pause(tries: int, retry_after: float | None, salt: str) -> float:
    """Return seconds to wait before the next try: what the provider asked for, else 1, 2, 4, 8 with up to half added.

    *salt* (the run's name) spreads runs that failed together, and gives a resumed run the same pauses.
    """
    if retry_after is not None:
        return max(0.0, retry_after)
    spread = int.from_bytes(sha256(f"{salt}:{tries}".encode()).digest()[:4]) / 2**32
    return float(2 ** (tries - 1)) * (1 + spread / 2)
