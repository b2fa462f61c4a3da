"""A run is a fold over its journal. Every rule about what may follow what lives in this file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from jumar.core import events as ev
from jumar.core.budget import settle
from jumar.core.policy import COUNTED, TestPolicy, Trigger
from jumar.core.run import Cell, IllegalEvent, Judged, Phase, RunState
from jumar.core.verdict import EXCUSED, Cause, Outcome

__all__ = ["TRANSITIONS", "IllegalEvent", "Phase", "RunState", "reduce", "replay"]

_OPEN: dict[type[ev.Event], Phase | None] = {
    ev.ModelRequest: Phase.ASKED,
    ev.ActionTaken: Phase.OPEN,
    ev.EditClaim: Phase.OPEN,
    ev.Plan: Phase.OPEN,
    ev.Mode: Phase.OPEN,
    ev.Repair: Phase.OPEN,
    ev.Localisation: Phase.OPEN,
    ev.Observation: Phase.OPEN,
    ev.Guardrail: Phase.OPEN,
    ev.Revert: None,
    ev.Write: None,
    ev.TestRun: Phase.TESTING,
    ev.Tests: Phase.JUDGED,
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
        ev.Tests: Phase.JUDGED,
        ev.Revert: Phase.OPEN,
        ev.Limit: Phase.WRITTEN,
        ev.Resume: Phase.WRITTEN,
    },
    Phase.TESTING: {ev.TestRun: Phase.TESTING, ev.Tests: Phase.JUDGED},
    Phase.JUDGED: {
        ev.Observation: Phase.JUDGED,
        ev.BestFound: Phase.OPEN,
        ev.Revert: Phase.OPEN,
        ev.Final: Phase.CLOSED,
        ev.Limit: Phase.JUDGED,
        ev.Resume: None,
    },
    Phase.CLOSED: {ev.RunEnd: Phase.ENDED, ev.Limit: Phase.CLOSED, ev.Resume: Phase.CLOSED},
    Phase.ENDED: {ev.Resume: Phase.OPEN, ev.Limit: Phase.ENDED},
}
"""Phase -> event -> next phase. None: the event and the state pick it (see `_picked`)."""


def reduce(state: RunState, entry: ev.Entry) -> RunState:
    """The state after *entry*. Pure: same journal, same state, forever.

    Raises:
        IllegalEvent: if the phase does not allow the event; *state* is untouched.
    """
    event = entry.event
    phase = _next_phase(state, event)
    idle = isinstance(event, ev.RunStart | ev.Resume)
    seconds = state.spend.seconds + (0.0 if idle else max(0.0, entry.ts - state.last_ts))
    state = replace(state, phase=phase, last_ts=entry.ts, spend=replace(state.spend, seconds=seconds))
    fold = _FOLDS.get(type(event))
    return fold(state, event) if fold else state


def replay(entries: Iterable[ev.Entry], state: RunState | None = None) -> RunState:
    """The state after all *entries*."""
    state = state or RunState()
    for entry in entries:
        state = reduce(state, entry)
    return state


def _next_phase(state: RunState, event: ev.Event) -> Phase:
    try:
        return TRANSITIONS[state.phase][type(event)] or _picked(state, event)
    except KeyError:
        raise IllegalEvent(f"{type(event).__name__} is not legal in phase {state.phase}") from None


def _picked(state: RunState, event: ev.Event) -> Phase:
    """The next phase where the table alone does not tell."""
    if isinstance(event, ev.Write):
        return Phase.WRITTEN if state.run.test_policy is TestPolicy.ON_WRITE else Phase.OPEN
    if isinstance(event, ev.Revert):
        return Phase.WRITTEN if event.to == state.postponed else Phase.OPEN
    # A baseline that was void is no verdict to act on: the new segment verifies again.
    lost = state.best is None and state.judged is not None and state.judged.tests.void is not None
    return Phase.OPEN if lost else Phase.JUDGED


def _started(state: RunState, start: ev.RunStart) -> RunState:
    return replace(state, start=start, tree=start.tree)


def _asked(state: RunState, request: ev.ModelRequest) -> RunState:
    return replace(state, request=request)


def _called(state: RunState, call: ev.ModelCall) -> RunState:
    spend = settle(state.spend, call.usd, call.input_tokens + call.output_tokens)
    spend = replace(spend, turns=spend.turns + 1)
    fault = f"the model gave no answer: {call.error}" if call.error and call.error != "cancelled" else state.fault
    reply = None if call.error else call.reply
    return replace(
        state, spend=spend, replies=state.replies + 1, request=None, reply=reply, actions_done=0, fault=fault
    )


def _acted(state: RunState, action: ev.ActionTaken) -> RunState:
    state = replace(state, actions_done=state.actions_done + 1)
    if action.last:
        state = replace(state, reply=None)
    if isinstance(digest := action.args.get("digest"), str):
        state = replace(state, refused=state.refused | {digest})
    if action.name == "out_of_time":
        return replace(state, expired=str(action.args.get("message", "")))
    if action.name == "final":
        return replace(state, said=str(action.args.get("message", "")))
    if not action.admitted and action.name in ("unparsable", "write_files"):
        # A whole-file proposal that cannot be verified is billed and used up its attempt.
        spend = replace(state.spend, attempts=state.spend.attempts + 1)
        return replace(state, told=action.reason, spend=spend)
    return state


def _wrote(state: RunState, write: ev.Write) -> RunState:
    return replace(state, tree=write.tree)


def _ran(state: RunState, run: ev.TestRun) -> RunState:
    return replace(state, runs=Cell(run, state.runs))


def _tested(state: RunState, tests: ev.Tests) -> RunState:
    outcomes: dict[str, Outcome] = {}
    green: set[str] = set()
    cell = state.runs
    while cell is not None:
        run, cell = cell.run, cell.rest
        outcomes[run.test_id] = run.outcome
        if run.status == "pass":
            green.add(run.test_id)
    judged = Judged(tests, outcomes, frozenset(green))
    baseline = tests.trigger is Trigger.BASELINE
    harness = tests.void is not None and tests.void.cause is Cause.HARNESS
    counted = tests.trigger in COUNTED
    spend = replace(
        state.spend,
        test_runs=state.spend.test_runs + counted,
        attempts=state.spend.attempts + (counted and tests.trigger is not Trigger.MODEL and not harness),
    )
    return replace(
        state,
        runs=None,
        judged=judged,
        spend=spend,
        executions=state.executions + tests.executions,
        baseline_runs=state.baseline_runs + baseline,
        accepted={i: o for i, o in outcomes.items() if o in EXCUSED}
        if baseline and tests.void is None
        else state.accepted,
        fault=tests.void.reason if harness and tests.void is not None else state.fault,
    )


def _observed(state: RunState, shown: ev.Observation) -> RunState:
    return replace(state, seen=shown.content) if state.phase is Phase.JUDGED else state


def _kept(state: RunState, _best: ev.BestFound) -> RunState:
    judged = state.judged
    if judged is None:
        raise IllegalEvent("nothing was judged that could be kept")
    return replace(state, best=judged.attempt, shown=state.seen, told="")


def _reverted(state: RunState, revert: ev.Revert) -> RunState:
    if state.phase is Phase.WRITTEN:  # back to what was postponed
        return replace(state, tree=revert.to, postponed="")
    unjudged = state.best is not None and (state.judged is None or state.judged.tests.tree != state.tree)
    return replace(state, tree=revert.to, told=revert.why, postponed=state.tree if unjudged else "")


def _localised(state: RunState, found: ev.Localisation) -> RunState:
    return replace(state, localisation=found)


def _hit(state: RunState, guardrail: ev.Guardrail) -> RunState:
    return replace(state, hit=guardrail)


def _limited(state: RunState, limit: ev.Limit) -> RunState:
    new = limit.new if limit.new is None or limit.name in ("usd", "seconds") else int(limit.new)
    budget = replace(state.run.budget, **{limit.name: new})
    return replace(state, start=replace(state.run, budget=budget))


def _resumed(state: RunState, _resume: ev.Resume) -> RunState:
    """A new segment: what an open request had reserved counts as spent, and the last segment's end is no end."""
    spend = state.spend
    if state.request is not None:
        spend = settle(spend, state.request.reserved_usd, state.request.reserved_tokens)
    closed = state.phase is Phase.CLOSED
    said = state.said if closed or state.end is None else None  # who resumes an ended run wants it to try again
    return replace(
        state,
        spend=spend,
        request=None,
        fault="",
        expired="",
        said=said,
        end=None,
        final=state.final if closed else None,
    )


def _closed(state: RunState, final: ev.Final) -> RunState:
    return replace(state, final=final)


def _ended(state: RunState, end: ev.RunEnd) -> RunState:
    return replace(state, end=end)


_FOLDS: dict[type[ev.Event], Callable[[RunState, Any], RunState]] = {
    ev.RunStart: _started,
    ev.ModelRequest: _asked,
    ev.ModelCall: _called,
    ev.ActionTaken: _acted,
    ev.Write: _wrote,
    ev.TestRun: _ran,
    ev.Tests: _tested,
    ev.Observation: _observed,
    ev.BestFound: _kept,
    ev.Revert: _reverted,
    ev.Localisation: _localised,
    ev.Guardrail: _hit,
    ev.Limit: _limited,
    ev.Resume: _resumed,
    ev.Final: _closed,
    ev.RunEnd: _ended,
}
"""What each event changes; the others are facts for readers of the journal and change nothing here."""
