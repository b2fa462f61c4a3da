"""Reducers of all events: the changes of a run's state. Pure: a fold reads nothing but the state and the event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from jumar.core.gate.admission import WRITES
from jumar.core.gate.leave_refactor import REFUSALS
from jumar.core.run.planning import PLAN
from jumar.core.run.reducers import claims, modes, segments
from jumar.core.run.retry import UNUSABLE, can_retry, compute_pause
from jumar.core.run.search_reserve import estimate_run_seconds
from jumar.core.run.stall import append_mark, build_mark
from jumar.core.run.strategy import FRONTIER, REPAIR, TURN
from jumar.core.state import events as ev
from jumar.core.state import removals
from jumar.core.state.budget import settle
from jumar.core.state.claims import GateState
from jumar.core.state.run_state import EXTERNAL, HOSTED, IllegalEvent, Judged, Phase, ResultCell, RunState
from jumar.core.state.stop import Escalation
from jumar.core.state.test_policy import COUNTED, Gate, TestPolicy, Trigger
from jumar.core.state.verdict import EXCUSED, Cause


def _start_run(state: RunState, start: ev.RunStart) -> RunState:
    return replace(state, start=start, tree=start.tree, gate_state=GateState(mode=start.gate))


def _open_request(state: RunState, request: ev.ModelRequest) -> RunState:
    return replace(state, request=request, request_seq=state.seq)


def _settle_call(state: RunState, call: ev.ModelCall) -> RunState:
    spend = settle(state.spend, call.usd, call.input_tokens + call.output_tokens)
    counted = (state.request.messages, call.input_tokens) if state.request and call.input_tokens else None
    # A call that was cut off gave no reply: whoever goes on gets the one that would have come.
    answered = call.error != "cancelled"
    state = replace(state, spend=spend, replies=state.replies + answered, request=None, pause=0.0)
    if state.asking:  # whoever asked through us goes on with the answer, and tries again where it was an error
        turns = spend.turns + (not call.error)
        return replace(state, asking=False, spend=replace(spend, turns=turns))
    if not call.error or call.error in UNUSABLE:
        flaw = f"the model gave no usable answer: {_get_final_message(call)}" if call.error else ""
        state = replace(state, spend=replace(spend, turns=spend.turns + 1), tries=0, actions_done=0, flaw=flaw)
        # A longer conversation never takes fewer tokens than a shorter one did; another model counts otherwise.
        if counted and not call.assumed and call.tier != FRONTIER:
            state = replace(state, measured=(counted[0], max(counted[1], state.measured[1])))
        return replace(state, reply=call.reply, stage=call.stage, tried=state.tried + _count_screened(call))
    if not answered:
        return state
    tries = state.tries + 1
    if can_retry(call.error, tries, call.retry_after):
        return replace(state, tries=tries, pause=compute_pause(tries, call.retry_after, state.run.run))
    if state.draft is not None:  # nobody needs the review or the rewrite: the draft is there
        return _take_up_draft(replace(state, tries=0))
    many = f" ({tries} tries)" if tries > 1 else ""
    return replace(state, tries=0, fault=f"the model gave no answer: {_get_final_message(call)}{many}")


def _count_screened(call: ev.ModelCall) -> int:
    """Return the number of candidates that a search tried for its answer."""
    tried = call.reply.opaque.get("tried") if call.stage == REPAIR else None
    return tried if isinstance(tried, int) else 0


def _get_final_message(call: ev.ModelCall) -> str:
    return f"{call.error}: {call.detail}" if call.detail else call.error


def _take_up_draft(state: RunState) -> RunState:
    """Take up the draft, which is written after all."""
    return replace(state, reply=state.draft, stage="draft", flaw="", actions_done=0)


def _record_action(state: RunState, action: ev.ActionTaken) -> RunState:  # noqa: C901, PLR0911  one case per action
    recent, edited = state.recent, state.edited and action.name == "turn_end"
    # What an agent of somebody else's does within its turn is its own business: whether it gets on shows at its end.
    if state.run.agent != EXTERNAL or action.name == "turn_end":
        # The turn that made a tree is none of those that left it as it was.
        news = f"{state.tree} {len(state.refused)}{' edited' if edited else ''}"
        recent = append_mark(recent, build_mark(action, news))
    book = claims.count_action(state.gate_state, last=action.last)
    done, edited = state.actions_done + 1, state.edited and not edited
    state = modes.record_action(
        replace(state, actions_done=done, recent=recent, edited=edited, gate_state=book), action
    )
    reply = state.reply
    if action.last:
        state = replace(state, reply=None, flaw="")
    if isinstance(digest := action.args.get("digest"), str):
        state = replace(state, refused=state.refused | {digest})
    message = str(action.args.get("message", ""))
    match action.name:
        case "out_of_time":
            return replace(state, expired=message)
        case "final":
            return replace(state, final_message=message) if action.admitted else state
        case "escalate" if action.admitted:
            return replace(state, escalated=Escalation(str(action.args["test_id"]), str(action.args["reason"])))
        case "run_tests" if action.admitted:
            ids = action.args.get("test_ids")
            return replace(state, asked_tests=tuple(map(str, ids)) if isinstance(ids, list | tuple) else ())
        case "ask_model":
            return replace(state, asking=action.admitted)
        case "turn_end" if _ends_without_news(state):
            return replace(state, final_message=modes.ENDED)
        case "draft":
            return replace(state, draft=reply)
        case "review" | "rewrite":
            clean = not action.admitted or not message
            return _take_up_draft(state) if clean else replace(state, violations=message)
        case name if name == "unparsable" or (name in WRITES and state.stage not in (TURN, PLAN)):
            return _use_up_attempt(state, action)
    return state


def _ends_without_news(state: RunState) -> bool:
    """Check whether an agent that has ended a turn would see nothing to mend in another one."""
    unguarded = not state.expected and state.gate_state.mode is Gate.REFACTOR and not state.run.settings.verify
    return unguarded or state.run.test_policy is not TestPolicy.ON_WRITE


def _use_up_attempt(state: RunState, action: ev.ActionTaken) -> RunState:
    """Count a whole-file proposal that cannot be verified as an attempt: it was billed.

    Nothing goes on for ever.
    """
    if state.run.agent in HOSTED:
        return state
    lost = 0 if action.admitted else 1
    spend = replace(state.spend, attempts=state.spend.attempts + lost)
    return replace(
        state, last_rejection=action.reason if lost else state.last_rejection, spend=spend, draft=None, violations=""
    )


def _record_write(state: RunState, write: ev.Write) -> RunState:
    book = claims.add_write(state, write) if state.coalesces else state.gate_state
    gone = removals.apply_write(state.removals, write) if book.mode is Gate.OFF else state.removals
    return replace(state, tree=write.tree, written=True, edited=True, gate_state=book, removals=gone)


def _record_test(state: RunState, run: ev.TestRun) -> RunState:
    return replace(state, runs=ResultCell(run, state.runs))


def _record_plain_run(state: RunState, run: ev.PlainRun) -> RunState:
    return replace(state, plain=run, executions=state.executions + run.executions)


def _record_tests(state: RunState, tests: ev.Tests) -> RunState:
    runs, checked = _collect_results(state)
    judged = Judged(tests, runs, checked is not False, checked is not None, state.plain)
    baseline = tests.trigger is Trigger.BASELINE
    asked = tests.trigger is Trigger.MODEL
    harness = tests.void is not None and tests.void.cause is Cause.HARNESS
    counted = tests.trigger in COUNTED
    spend = replace(
        state.spend,
        test_runs=state.spend.test_runs + counted,
        attempts=state.spend.attempts + (counted and not asked and not harness),
    )
    return replace(
        state,
        runs=None,
        plain=None,
        judged=state.judged if asked else judged,
        not_general=state.not_general + (tests.void is not None and tests.void.cause is Cause.HELD_OUT),
        wavering=tuple(dict.fromkeys((*state.wavering, *tests.flaky))),
        gate_state=claims.record_tests(state, tests, runs),
        written=asked and state.written,
        asked_tests=None,
        # Where there is no test yet, too: what turns green first need not be all that was asked for.
        born_green=state.born_green or (baseline and (tests.ok or (tests.void is None and not tests.total))),
        spend=spend,
        executions=state.executions + tests.executions,
        baseline_runs=state.baseline_runs + baseline,
        accepted={i: run.outcome for i, run in runs.items() if run.outcome in EXCUSED}
        if baseline and tests.void is None
        else state.accepted,
        fault=tests.void.reason if harness and tests.void is not None else state.fault,
    )


def _collect_results(state: RunState) -> tuple[dict[str, ev.TestRun], bool | None]:
    """Return the results of the current verification in the order of its ids, and of the command beside it.

    None: there was no command.
    """
    found: list[ev.TestRun] = []
    cell = state.runs
    while cell is not None:
        found.append(cell.run)
        cell = cell.rest
    found.reverse()
    runs = {run.test_id: run for run in found}
    command = runs.pop(ev.CHECK, None)
    return runs, command.status == "pass" if command else None


def _record_observation(state: RunState, shown: ev.Observation) -> RunState:
    return replace(state, latest_results=shown.content) if state.phase is Phase.JUDGED else state


def _record_best(state: RunState, _best: ev.BestFound) -> RunState:
    judged = state.judged
    if judged is None:
        raise IllegalEvent("nothing was judged that could be kept")
    state = replace(state, gate_state=claims.keep_edits(state), removals=removals.mark_kept(state.removals))
    seconds = estimate_run_seconds(judged, state.run.settings.suite)
    state = replace(
        state,
        best=judged.attempt,
        evidence=judged.tests,
        best_results=state.latest_results,
        last_rejection="",
        run_seconds=seconds,
    )
    return modes.keep_edits(state)


def _record_revert(state: RunState, revert: ev.Revert) -> RunState:
    if revert.found:  # it never was part of a tree that is known
        return replace(state, last_rejection=revert.why)
    unjudged = state.unjudged
    state = replace(state, gate_state=claims.revert_edits(state, revert))
    if revert.to == state.postponed:
        return replace(state, tree=revert.to, postponed="", written=True, removals=state.postponed_removals)
    given_up = state.gate_state.refusals >= REFUSALS
    postponed = state.tree if state.best is not None and unjudged and not given_up else ""
    state = replace(state, removals=removals.mark_reverted(state.removals), postponed_removals=state.removals)
    # What is tried next was not verified either, though it may be a tree that was.
    written = state.written if not state.coalesces else bool(state.gate_state.turn) and not state.gate_state.parked
    return replace(state, tree=revert.to, last_rejection=revert.why, postponed=postponed, written=written)


def _record_localisation(state: RunState, found: ev.Localisation) -> RunState:
    return replace(state, localisation=found)


def _record_claim(state: RunState, claim: ev.EditClaim) -> RunState:
    return replace(state, gate_state=claims.open_claim(state.gate_state, claim))


def _record_failure(state: RunState, repair: ev.Repair) -> RunState:
    return replace(state, gate_state=claims.count_failure(state.gate_state, repair))


def _record_plan(state: RunState, plan: ev.Plan) -> RunState:
    return replace(state, gate_state=replace(state.gate_state, plan=plan.steps))


def _record_guardrail(state: RunState, guardrail: ev.Guardrail) -> RunState:
    return replace(state, hit=guardrail)


def _record_final(state: RunState, final: ev.Final) -> RunState:
    return replace(state, final=final)


def _end_segment(state: RunState, end: ev.RunEnd) -> RunState:
    return replace(state, end=end)


FOLDS: dict[type[ev.Event], Callable[[RunState, Any], RunState]] = {
    ev.RunStart: _start_run,
    ev.ModelRequest: _open_request,
    ev.ModelCall: _settle_call,
    ev.ActionTaken: _record_action,
    ev.Write: _record_write,
    ev.TestRun: _record_test,
    ev.PlainRun: _record_plain_run,
    ev.Tests: _record_tests,
    ev.Observation: _record_observation,
    ev.BestFound: _record_best,
    ev.EditClaim: _record_claim,
    ev.Repair: _record_failure,
    ev.Plan: _record_plan,
    ev.Mode: modes.switch_mode,
    ev.Refusal: modes.refuse_edits,
    ev.Codemod: modes.record_codemod,
    ev.Revert: _record_revert,
    ev.Localisation: _record_localisation,
    ev.Guardrail: _record_guardrail,
    ev.Limit: segments.set_limit,
    ev.Resume: segments.begin_segment,
    ev.Final: _record_final,
    ev.RunEnd: _end_segment,
}
"""Event type -> its fold; all other events are facts for readers of the journal and change nothing here."""
