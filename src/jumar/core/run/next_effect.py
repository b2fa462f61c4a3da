"""Chooses the next effect. `next_effect` is the whole control flow of a run on one page, and it does no I/O."""

from __future__ import annotations

from msgspec.structs import replace

from jumar.core.gate.leave_refactor import RULE, explain_not_kept, explain_red, is_judged, needs_verdict
from jumar.core.gate.turn_outcome import format_ids, judge_turn, plan_next_trial
from jumar.core.run.effects import (
    Act,
    Await,
    Call,
    Cancel,
    Close,
    Effect,
    Execute,
    Finish,
    Forgo,
    GoBack,
    Halt,
    Keep,
    Localise,
    Rebuild,
    Refuse,
    Reserve,
    Switch,
    Verify,
)  # fmt: skip
from jumar.core.run.ending import adjust_untested_end, find_own_end
from jumar.core.run.planning import is_planning_turn
from jumar.core.run.strategy import FRONTIER, Strategy
from jumar.core.state.ratchet import holds, is_tie
from jumar.core.state.run_state import HOSTED, IllegalEvent, Judged, Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Cause


def next_effect(state: RunState, agent: Strategy, halt: Halt | None = None) -> Effect:
    """Return the next effect. *halt* is the shell's own reason to stop; it overrides everything but recording the end.

    Raises:
        IllegalEvent: in the phases where nothing can be done: before the start and after the end.
    """
    match state.phase:
        case Phase.OPEN:
            return _choose_between_turns(state, agent, halt)
        case Phase.ASKED:
            request = agent.request(state)
            return Cancel() if halt or request is None else Call(request, state.pause)
        case Phase.WRITTEN:
            return (
                GoBack(_find_home_tree(state), f"stopped before it was verified: {halt.stop}")
                if halt
                else Verify(Trigger.WRITE)
            )
        case Phase.JUDGED:
            return _judge(state)
        case Phase.CLOSED:
            return Close()
        case Phase.NEW | Phase.TESTING | Phase.ENDED:
            raise IllegalEvent(f"nothing to do in phase {state.phase}")


def _choose_between_turns(state: RunState, agent: Strategy, halt: Halt | None) -> Effect:  # noqa: PLR0911  as below
    policy = state.run.test_policy
    ending = halt or find_own_end(state, agent)
    if (due := _find_due_judgement(state, ending)) is not None:
        return due
    if ending:
        if _owes_draft(state, ending):
            return _choose_in_turn(state, agent) if state.stage == "draft" else Forgo("review", ending.why)
        unknown = state.judged is None or state.written
        if policy is TestPolicy.ON_FINAL and unknown and not ending.unverifiable:
            return Verify(Trigger.FINAL)
        if state.best is not None and state.tree != state.best.tree:
            refactoring = state.gate_state.mode is Gate.REFACTOR and is_judged(state)
            shipped = "the best tree is what is shipped"
            return GoBack(state.best.tree, f"{RULE}: {explain_red(state)}" if refactoring else shipped)
        return Finish(adjust_untested_end(state, ending))
    if policy is TestPolicy.ON_WRITE and state.best is None:
        return Verify(Trigger.BASELINE)
    return _choose_in_turn(state, agent)


def _find_due_judgement(state: RunState, ending: Halt | None) -> Effect | None:
    """Return the judgement that is due: of the edits of a turn that is over, or of a refactoring."""
    book, best = state.gate_state, state.best
    if best is None or not state.coalesces:
        return None
    if not (ending is None or ending.patient or ending.stop in _PATIENT):
        return None
    if state.postponed:  # at the end, what was seen red already waits for the next segment
        known = book.mode is Gate.REFACTOR and is_judged(replace(state, tree=state.postponed))
        return None if ending and known else GoBack(state.postponed, _AGAIN)
    if book.mode is Gate.CODEMOD:
        return Verify(Trigger.TURN) if state.tree != best.tree else Switch(book.outer) if book.codemod else None
    if book.mode is Gate.REFACTOR:
        asked = book.leaving or (ending and state.tree != best.tree)
        return Verify(Trigger.TURN) if asked and not is_judged(state) else None
    return Verify(Trigger.TURN) if book.turn and (book.over or ending) else None


_AGAIN = "taken up again: it was never verified"

_PATIENT = (
    StopReason.GREEN,
    StopReason.UNPROVED,
    StopReason.UNTESTED,
    StopReason.FINAL,
    StopReason.ESCALATED,
    StopReason.STALLED,
    StopReason.TURNS,
)
"""Reasons to stop that leave the time to judge what was done before."""


def _owes_draft(state: RunState, ending: Halt) -> bool:
    """Return whether a draft must still be written: without it the run would ship less than it has.

    Where writes are verified there is no time for that; the draft is taken up when the run goes on.
    """
    later = ending.stop in (StopReason.INTERRUPTED, StopReason.INFRA, StopReason.GUARDRAIL)
    return state.draft is not None and state.run.test_policy is not TestPolicy.ON_WRITE and not later


_SLOW = ("run_command", "replace_in_files")
"""Actions that take time."""


def _choose_in_turn(state: RunState, agent: Strategy) -> Effect:  # noqa: PLR0911  one line per effect reads best
    """Return the next step of the agent's own: an action of its reply, or a question."""
    if state.postponed:
        return GoBack(state.postponed, _AGAIN)
    if state.asked_tests is not None:
        return Verify(Trigger.MODEL)
    if state.reply is not None:
        actions = agent.actions(state)
        action, last = actions[state.actions_done], state.actions_done + 1 == len(actions)
        if not action.fault and needs_verdict(state, action.name, action.args):
            return Verify(Trigger.TURN)
        return Execute(action, last) if action.name in _SLOW and not action.fault else Act(action, last)
    request = agent.request(state)
    if request is None and state.run.agent in HOSTED:
        return Await()
    if request is None:
        raise IllegalEvent("an agent with nothing left to ask has ended the run already")
    if request.tier == FRONTIER and not is_planning_turn(state):
        return Finish(Halt(StopReason.INFRA, "the agent asks the frontier model within the loop of attempts"))
    if agent.localises and (state.localisation is None or state.localisation.tree != _find_home_tree(state)):
        return Localise()
    return Reserve(request)


def _judge(state: RunState) -> Effect:
    """Decide on a new verdict: keep the tree, or go back."""
    judged = state.judged
    if judged is None:
        raise IllegalEvent("judged without a verdict")
    void = judged.tests.void
    if void is not None and state.best is None and (void.cause is Cause.HARNESS or state.tree == state.run.tree):
        return Finish(Halt(StopReason.INFRA, void.reason))
    if judged.tests.trigger is Trigger.TURN and state.gate_state.mode is not Gate.OFF:
        return _judge_gated(state, judged)
    if void is None and holds(judged.attempt, state.best, state.run.settings.rule, state.removals.deleted):
        return Keep(judged.attempt)
    return GoBack(_find_home_tree(state), _explain_not_kept(state, judged) if void is None else "no usable evidence")


def _judge_gated(state: RunState, judged: Judged) -> Effect:
    """Decide on a verdict on claimed edits, or on a refactoring.

    What is good stays, byte for byte, and the rest goes back.
    """
    if state.gate_state.mode is Gate.CODEMOD:
        why = explain_not_kept(state)
        return (
            GoBack(_find_home_tree(state), f"a codemod keeps every outcome, and {why}") if why else Keep(judged.attempt)
        )
    if state.gate_state.mode is Gate.REFACTOR:
        return Refuse(why) if (why := explain_red(state)) else Keep(judged.attempt)
    found = judge_turn(state)
    trial = plan_next_trial(state.gate_state, found)
    if trial is None:
        return Keep(judged.attempt)
    return Rebuild(trial.left, trial.dropped, found.why)


def _explain_not_kept(state: RunState, judged: Judged) -> str:
    """Return why the ratchet does not move up to the newest verdict."""
    deleted = state.removals.deleted
    if not (deleted and is_tie(judged.attempt, state.best)):
        return _explain_lower(state)
    return (
        f"it deletes {format_ids(deleted)}, and no more tests pass than before: "
        "a deletion is kept where more tests pass, a file may be moved if its text stays as it is"
    )


def _explain_lower(state: RunState) -> str:
    t = state.judged.tests if state.judged else None
    best = state.best.score.passed if state.best else 0
    return f"{t.passed if t else 0} of {t.total if t else 0} passed, the best has {best}"


def _find_home_tree(state: RunState) -> str:
    """Return the tree to which the workspace is reset: the best one, or the untouched one."""
    return state.best.tree if state.best is not None else state.run.tree
