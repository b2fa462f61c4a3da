"""Reducers of the events that begin a new segment of a run: a changed cap, and the resume itself."""

from __future__ import annotations

from msgspec.structs import replace

from jumar.core.state import events as ev
from jumar.core.state.budget import settle
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy


def set_limit(state: RunState, limit: ev.Limit) -> RunState:
    """Return the state with a changed cap."""
    new = limit.new if limit.new is None or limit.name in ("usd", "seconds") else int(limit.new)
    budget = replace(state.run.budget, **{limit.name: new})
    return replace(state, start=replace(state.run, budget=budget))


def begin_segment(state: RunState, _resume: ev.Resume) -> RunState:
    """Begin a new segment: an open request's reservation counts as spent, the last segment's end as undone."""
    spend = state.spend
    if state.request is not None:
        spend = settle(spend, state.request.reserved_usd, state.request.reserved_tokens)
    closed = state.phase is Phase.CLOSED
    goes_on = closed or state.end is None
    said = state.final_message if goes_on else None  # who resumes an ended run wants it to try again
    gave_up = state.end is not None and state.end.stop in (StopReason.STALLED, StopReason.UNTESTED)
    book = replace(state.gate_state, refusals=0) if gave_up else state.gate_state
    # A segment after an end has its own verification at its end.
    anew = state.end is not None and state.run.test_policy is TestPolicy.ON_FINAL
    return replace(
        state,
        spend=spend,
        gate_state=book,
        request=None,
        asking=False,
        fault="",
        expired="",
        judged=None if anew else state.judged,
        recent=(),
        tries=0,
        pause=0.0,
        final_message=said,
        escalated=state.escalated if goes_on else None,
        end=None,
        final=state.final if closed else None,
    )
