"""Reduces the journal to the state of a run. Every rule on the order of events lives in this file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from jumar.core.run.reducers.events import FOLDS
from jumar.core.state import events as ev
from jumar.core.state.run_state import ConversationCell, IllegalEvent, Phase, ResultCell, RunState
from jumar.core.state.test_policy import TestPolicy, Trigger

__all__ = ["TRANSITIONS", "IllegalEvent", "Phase", "RunState", "reduce", "replay"]

_OPEN: dict[type[ev.Event], Phase | None] = {
    ev.ModelRequest: Phase.ASKED,
    ev.ActionTaken: Phase.OPEN,
    ev.EditClaim: Phase.OPEN,
    ev.Plan: Phase.OPEN,
    ev.Mode: Phase.OPEN,
    ev.Codemod: Phase.OPEN,
    ev.Repair: Phase.OPEN,
    ev.Localisation: Phase.OPEN,
    ev.Observation: Phase.OPEN,
    ev.Guardrail: Phase.OPEN,
    ev.Revert: None,
    ev.Write: None,
    ev.TestRun: Phase.TESTING,
    ev.PlainRun: Phase.TESTING,
    ev.Tests: None,
    ev.Final: Phase.CLOSED,
    ev.Limit: Phase.OPEN,
    ev.Resume: Phase.OPEN,
}

TRANSITIONS: dict[Phase, dict[type[ev.Event], Phase | None]] = {
    Phase.NEW: {ev.RunStart: Phase.OPEN},
    Phase.OPEN: _OPEN,
    Phase.ASKED: {ev.ModelCall: Phase.OPEN, ev.Limit: Phase.ASKED, ev.Resume: Phase.OPEN},
    Phase.WRITTEN: {
        ev.Write: Phase.WRITTEN,
        ev.TestRun: Phase.TESTING,
        ev.PlainRun: Phase.TESTING,
        ev.Tests: Phase.JUDGED,
        ev.Revert: Phase.OPEN,
        ev.Limit: Phase.WRITTEN,
        ev.Resume: Phase.WRITTEN,
    },
    Phase.TESTING: {ev.TestRun: Phase.TESTING, ev.PlainRun: Phase.TESTING, ev.Tests: None},
    Phase.JUDGED: {
        ev.Observation: Phase.JUDGED,
        ev.Repair: Phase.JUDGED,
        ev.BestFound: Phase.OPEN,
        ev.Revert: Phase.OPEN,
        ev.Refusal: Phase.OPEN,
        ev.Final: Phase.CLOSED,
        ev.Limit: Phase.JUDGED,
        ev.Resume: None,
    },
    Phase.CLOSED: {ev.RunEnd: Phase.ENDED, ev.Limit: Phase.CLOSED, ev.Resume: Phase.CLOSED},
    Phase.ENDED: {ev.Resume: Phase.OPEN, ev.Limit: Phase.ENDED},
}
"""Phase -> event -> next phase. None: the event and the state pick it (see `_choose_phase`)."""


_SPOKEN = frozenset({ev.ModelRequest, ev.ModelCall, ev.ActionTaken, ev.Observation, ev.Revert, ev.Refusal})
"""Events from which a conversation is rebuilt."""

_IDLE = frozenset({ev.RunStart, ev.Limit, ev.Resume})
"""Events before which nobody is at work: the first one, and what comes between a stop (or a kill) and the resume."""


def reduce(state: RunState, entry: ev.Entry) -> RunState:
    """Return the state after *entry*. Pure: same journal, same state, forever.

    Raises:
        IllegalEvent: if the phase does not allow the event; *state* is untouched.
    """
    event = entry.event
    kind = type(event)
    phase = _next_phase(state, event)
    spend, conversation = state.spend, state.conversation
    if entry.ts > state.last_ts and kind not in _IDLE:
        spend = replace(spend, seconds=spend.seconds + (entry.ts - state.last_ts))
    if kind in _SPOKEN:
        conversation = ConversationCell(event, conversation)
    state = replace(state, phase=phase, seq=entry.seq, last_ts=entry.ts, spend=spend, conversation=conversation)
    fold = FOLDS.get(kind)
    return fold(state, event) if fold else state


def replay(entries: Iterable[ev.Entry], state: RunState | None = None) -> RunState:
    """Return the state after all *entries*."""
    state = state or RunState()
    result, testing = ev.TestRun, Phase.TESTING
    results: list[ev.Entry] = []
    for entry in entries:
        # Most events of a long journal are results of tests, and all that follow the first change the same few fields.
        if type(entry.event) is result and state.phase is testing:
            results.append(entry)
            continue
        if results:
            state, results = _add_results(state, results), []
        state = reduce(state, entry)
    return _add_results(state, results) if results else state


def _add_results(state: RunState, results: Sequence[ev.Entry]) -> RunState:
    """Reduce *results* of tests, in a verification that has begun, in one step."""
    seconds, last_ts, cell = state.spend.seconds, state.last_ts, state.runs
    for entry in results:
        if entry.ts != last_ts:
            seconds, last_ts = seconds + max(0.0, entry.ts - last_ts), entry.ts
        cell = ResultCell(entry.event, cell)  # type: ignore[arg-type]  # `replay` chose them
    spend = replace(state.spend, seconds=seconds)
    return replace(state, seq=results[-1].seq, last_ts=last_ts, spend=spend, runs=cell)


def _next_phase(state: RunState, event: ev.Event) -> Phase:
    try:
        return TRANSITIONS[state.phase][type(event)] or _choose_phase(state, event)
    except KeyError:
        raise IllegalEvent(f"{type(event).__name__} is not legal in phase {state.phase}") from None


def _choose_phase(state: RunState, event: ev.Event) -> Phase:
    """Return the next phase if the table alone does not determine it."""
    if isinstance(event, ev.Write):
        return Phase.WRITTEN if _verifies_at_once(state) else Phase.OPEN
    if isinstance(event, ev.Tests):  # what the model asked to see moves nothing
        return Phase.OPEN if event.trigger is Trigger.MODEL else Phase.JUDGED
    if isinstance(event, ev.Revert):
        return Phase.WRITTEN if _verifies_at_once(state) and event.to == state.postponed else Phase.OPEN
    # A baseline that was void is no verdict to act on: the new segment verifies again.
    lost = state.best is None and state.judged is not None and state.judged.tests.void is not None
    return Phase.OPEN if lost else Phase.JUDGED


def _verifies_at_once(state: RunState) -> bool:
    """Return whether a write is verified before anything else happens."""
    return state.run.test_policy is TestPolicy.ON_WRITE and not state.coalesces
