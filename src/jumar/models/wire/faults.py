"""Describes the failure of a call as a value: whether it may pass, the provider's message, and who pays."""

from __future__ import annotations

import math

import msgspec


class CallFault(msgspec.Struct, frozen=True):
    """Failure of a call that has no answer."""

    error: str
    """One of `jumar.core.run.retry.ERRORS`."""
    detail: str
    """The provider's words as they came: not cleaned yet."""
    retry_after: float | None = None
    """Seconds the provider asked to wait."""
    billed: bool = False
    """True if the provider may have worked on it, and charge for that."""


DROPPED = "Sampling parameters "
"""Beginning of the client's warning that it leaves out a temperature, as the model takes none."""


def classify_fault(raised: Exception) -> CallFault:
    """Return the fault that the client's exception *raised* stands for.

    An answer with an error status costs nothing, nor does a request that never left; whatever broke off after it was
    sent may be billed. An exception that the client has no word for came from an answer it could not digest.
    """
    from pydantic_ai import exceptions as ai  # noqa: PLC0415  it raised them: it is loaded

    if isinstance(raised, ai.ModelRequestTimeout | ai.ModelConnectionError):
        return _classify_broken_off(raised)
    if isinstance(raised, ai.ModelAPIError):
        return _classify_error(raised)
    if isinstance(raised, ai.ContentFilterError):
        return CallFault("refusal", str(raised), billed=True)
    if isinstance(raised, ai.UserError):
        return CallFault("rejected", str(raised))
    if isinstance(raised, Warning) and str(raised).startswith(DROPPED):
        return CallFault("rejected", "the model takes no temperature; leave out --temperature and that of its route")
    return CallFault(
        "malformed", f"the answer is no valid completion: {str(raised) or type(raised).__name__}", billed=True
    )


def _classify_broken_off(raised: Exception) -> CallFault:
    """Return the fault of a call without a whole answer."""
    from pydantic_ai import exceptions as ai  # noqa: PLC0415  as above

    unsent = getattr(raised, "phase", None) in ("pool", "connect")
    late = isinstance(raised, ai.ModelRequestTimeout | ai.ModelTimeoutError)
    return CallFault(
        "timeout" if late and not unsent else "connection", _get_connection_error(raised), billed=not unsent
    )


def _get_connection_error(raised: BaseException) -> str:
    """Return the connection's own error message: the clients say only that it failed."""
    words = str(raised) or type(raised).__name__
    while raised.__cause__ is not None:
        raised = raised.__cause__
        words = str(raised) or words
    return words


def _classify_error(raised: Exception) -> CallFault:
    """Classify an answer that was an error; one without a status came in the body of a successful answer."""
    from pydantic_ai import exceptions as ai  # noqa: PLC0415  as above

    if (redirect := _find_redirect(raised)) is not None:
        return CallFault("rejected", f"HTTP {redirect}: the server redirects, and redirects are not followed")
    status = getattr(raised, "status_code", None)
    begun = status is None or bool(getattr(raised, "in_stream", False))
    categories = (
        (ai.ModelContextWindowExceededError, "context"),
        (ai.ModelQuotaExceededError, "rejected"),
        (ai.ModelRateLimitError, "rate_limit"),
        (ai.ModelUnavailableError, "server"),
        (ai.ModelServerError, "server"),
        (ai.ModelRequestRejectedError, "rejected"),
    )
    error = next((name for kind, name in categories if isinstance(raised, kind)), None)
    if error in (None, "rejected") and getattr(raised, "provider_error_code", None) == "content_filter":
        error = "refusal"
    if error == "rejected" and getattr(raised, "provider_error_type", None) == "exceed_context_size_error":
        error = "context"  # llama.cpp's word for it
    if error is None:
        error = _classify_status(status)
    billed = begun and error != "rejected"
    return CallFault(error, _get_error_message(raised, status), _read_retry_after(raised), billed)


def _classify_status(status: int | None) -> str:
    if status is None:
        return "malformed"
    if status >= 500:  # noqa: PLR2004  where HTTP begins to blame the server
        return "server"
    return {408: "timeout", 413: "context", 429: "rate_limit"}.get(status, "rejected")


def _find_redirect(raised: Exception) -> int | None:
    """Return the status of the client's own exception, if it is a redirect, which would leak the key."""
    cause = raised.__cause__
    status = getattr(cause, "status_code", getattr(cause, "code", None))
    return status if isinstance(status, int) and 300 <= status < 400 else None  # noqa: PLR2004  HTTP's redirects


def _get_error_message(raised: Exception, status: int | None) -> str:
    """Return the error message of the provider's body, else the client's."""
    body = getattr(raised, "body", None)
    for inner in (body.get("error") if isinstance(body, dict) else None, body):
        said = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(said, str) and said.strip():
            return said if status is None else f"HTTP {status}: {said}"
    return str(raised)


def _read_retry_after(raised: Exception) -> float | None:
    """Return the seconds the provider asked to wait: as the client read it, or a fraction, which it does not read."""
    asked = getattr(raised, "retry_after", None)
    if asked is None:
        try:
            asked = float((getattr(raised, "headers", None) or {}).get("retry-after", ""))
        except ValueError:
            return None
    return max(0.0, asked) if math.isfinite(asked) else None
