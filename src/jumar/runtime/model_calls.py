"""Events of model calls: answered, cancelled, or left out because a cap could be passed. Pure."""

from __future__ import annotations

from jumar.core.run.strategy import Request
from jumar.core.state import events as ev
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import RunState
from jumar.errors import Infra
from jumar.ports import Answer


def build_call_event(answer: Answer, request: Request, reserved: ev.ModelRequest, milliseconds: int) -> ev.ModelCall:
    """Return the event of a call that was answered.

    What may be billed and was not reported counts as what was *reserved* for it: no cap is passed unseen.
    """
    usd = max(answer.usd, reserved.reserved_usd) if answer.assumed else answer.usd
    told = answer.input_tokens + answer.output_tokens
    unseen = max(0, reserved.reserved_tokens - told) if answer.assumed else 0
    return ev.ModelCall(
        reply=answer.reply,
        tier=request.tier,
        model=reserved.model,
        stage=request.stage,
        input_tokens=answer.input_tokens + unseen,
        cached_tokens=answer.cached_tokens,
        output_tokens=answer.output_tokens,
        usd=usd,
        ms=milliseconds,
        error=answer.error,
        detail=answer.detail,
        retry_after=answer.retry_after,
        assumed=answer.assumed,
    )


def settle_unanswered(state: RunState, *, sent: bool) -> ev.ModelCall:
    """Return the event of the open call, which has no answer: if it was *sent* it costs its reservation.

    Raises:
        Infra: if no call is open.
    """
    request = state.request
    if request is None:
        raise Infra("there is no open request to settle")
    return ev.ModelCall(
        reply=Reply(),
        tier=request.tier,
        model=request.model,
        stage=request.stage,
        input_tokens=request.reserved_tokens if sent else 0,
        usd=request.reserved_usd if sent else 0.0,
        error="cancelled",
        assumed=sent,
    )


def forgo_call(stage: str, why: str) -> ev.ActionTaken:
    """Return the event of an optional call that is left out."""
    return ev.ActionTaken(name=stage, args={}, admitted=False, reason=why, last=True)
