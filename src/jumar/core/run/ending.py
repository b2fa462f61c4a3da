"""Reasons of a run to stop by itself: green, a cap, a stall, the agent's `final` action.

The shell has others, as `Halt`.
"""

from __future__ import annotations

from jumar.core.gate.excused_tests import explain_untested
from jumar.core.gate.grades import describe_min_grade, is_proved
from jumar.core.gate.leave_refactor import REFUSALS, explain_red, is_judged
from jumar.core.gate.turn_outcome import format_ids
from jumar.core.quoting import make_one_line
from jumar.core.run.effects import Halt
from jumar.core.run.stall import explain_stall
from jumar.core.run.strategy import Strategy
from jumar.core.state.budget import CAPS, find_exhausted_cap
from jumar.core.state.claims import find_red_ids, get_step_status
from jumar.core.state.run_state import HOST, HOSTED, RunState
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger


def find_own_end(state: RunState, agent: Strategy) -> Halt | None:  # noqa: C901, PLR0911  one line per reason reads best
    """Return the run's own reason to stop, or None."""
    if state.hit is not None:
        return Halt(StopReason.GUARDRAIL, f"{state.hit.rule}: {state.hit.what}")
    if state.fault:
        return Halt(StopReason.INFRA, state.fault)
    if state.escalated is not None:  # before green: a person must look, whatever passes
        named_test, why = state.escalated.test_id, make_one_line(state.escalated.reason, LONGEST)
        return Halt(StopReason.ESCALATED, f"the agent escalated {named_test}: {why}")
    if state.gate_state.refusals >= REFUSALS:
        why = state.last_rejection or explain_red(state)  # where nothing was edited, nothing went back with a reason
        return Halt(StopReason.STALLED, f"leaving refactor mode was refused {REFUSALS} times in a row: {why}")
    if why := _explain_untested(state):
        return Halt(StopReason.UNTESTED, why)
    if _is_green(state, agent):
        return _end_green(state)
    if state.expired:
        return Halt(StopReason.BUDGET, state.expired)
    if state.final_message is not None:
        return Halt(StopReason.FINAL, state.final_message)
    if why := _explain_given_up(state):
        return Halt(StopReason.STALLED, why)
    if agent.loops and state.run.agent != HOST and (why := explain_stall(state.run.agent, state.recent)):
        return Halt(StopReason.STALLED, why)
    if state.reply is not None:
        return None if _is_leaving(state, agent) else _find_cap_halt(state, _WITHIN_A_TURN)
    if capped := _find_cap_halt(state):
        return capped
    idle = state.run.agent not in HOSTED and agent.request(state) is None
    return Halt(StopReason.FINAL, "the agent has nothing left to try") if idle else None


def adjust_untested_end(state: RunState, ending: Halt) -> Halt:
    """Return the end of a run; if it found and wrote no test, the end says no more than that."""
    if state.expected or EXIT_CODES[ending.stop] != EXIT_CODES[StopReason.UNTESTED]:
        return ending
    last = f"{ending.why.rstrip('. ')}; " if ending.why.strip() else ""
    if last and state.final_message is not None and state.run.agent not in HOSTED:
        last = f"the agent said: {last}"
    why = "no test judged this run: none was there, and none was written"
    return Halt(StopReason.UNTESTED, f"{last}{why}{_describe_command(state)}")


def _describe_command(state: RunState) -> str:
    """Return the result of the command in `[gate] verify` on the shipped tree, if it was run there."""
    judged, verify = state.judged, state.run.settings.verify
    if not verify or judged is None or judged.tests.trigger is not Trigger.TURN:
        return ""
    kept = judged.checked and judged.tests.tree == state.tree
    return f"; {verify} {'succeeded' if kept else 'failed, and what it failed on went back'}"


def _explain_untested(state: RunState) -> str:
    """Return why no test judges, although some are expected; empty: one does.

    What the untouched tree said before the run began is enough where the one verification comes at the end. A host may
    still write a test until it says that it is done.
    """
    if state.run.agent == HOST and state.final_message is None:
        return ""
    if state.run.test_policy is TestPolicy.ON_FINAL and state.run.excused:
        return explain_untested(state.run.excused, len(state.run.expected))
    return explain_untested(state.evidence.excused, state.evidence.total) if state.evidence else ""


def _is_green(state: RunState, agent: Strategy) -> bool:
    return state.green and not (_is_unchecked(state) or _is_unstarted(state, agent) or _has_unfinished_plan(state))


def _end_green(state: RunState) -> Halt:
    """Return the end of a green run: green, or `unproved` where the evidence is less than was asked for."""
    wanted, found = state.run.settings.min_grade, state.evidence
    if found is None or is_proved(found.grade, found.reachable, wanted):
        return Halt(StopReason.GREEN)
    asked = describe_min_grade(found.reachable, wanted)
    return Halt(StopReason.UNPROVED, f"all tests passed at grade {found.grade}, and --min-grade {asked}")


def _is_leaving(state: RunState, agent: Strategy) -> bool:
    """Return whether the next action is a `final` that a green verdict on this tree admits: no cap intervenes."""
    actions = agent.actions(state)
    final = state.actions_done < len(actions) and actions[state.actions_done].name == "final"
    return final and state.gate_state.mode is Gate.REFACTOR and is_judged(state) and not explain_red(state)


def _is_unchecked(state: RunState) -> bool:
    """Return whether `[gate] verify` was not seen green on the tree in the workspace, in refactor mode."""
    if state.gate_state.mode is not Gate.REFACTOR or not state.run.settings.verify:
        return False
    return not is_judged(state) or bool(explain_red(state))


def _has_unfinished_plan(state: RunState) -> bool:
    """Check whether the suite was green from the start while a test of the plan is not: planned work is open."""
    steps = state.gate_state.plan if state.born_green else ()
    return any(step.test_id and get_step_status(step, state.gate_state.newest) != "green" for step in steps)


def _explain_given_up(state: RunState) -> str:
    """Return why no claim can be made any more; empty: one can, or no claim was given up."""
    book = state.gate_state
    if not book.ended or book.claims or book.turn or set(find_red_ids(book.newest)) - book.ended:
        return ""
    return f"two edits for {format_ids(tuple(sorted(book.ended)))} did not turn it green, and nothing else is red"


def _is_unstarted(state: RunState, agent: Strategy) -> bool:
    """Check whether a suite that was green from the start leaves work: the instruction asks for more than tests."""
    if state.run.agent == HOST:
        return state.final_message is None
    if state.final_message is not None or not state.run.settings.instruction:
        return False
    return state.born_green if agent.loops else state.spend.attempts == 0 and not agent.localises


LONGEST = 1000
"""Characters of the reason for an escalation that the end of the run repeats; the action has all of them."""

_WITHIN_A_TURN = ("attempts", "test_runs")
"""Caps that the actions of one reply can use up."""


def _find_cap_halt(state: RunState, names: tuple[str, ...] = CAPS) -> Halt | None:
    last_test = state.run.test_policy is TestPolicy.ON_FINAL
    held_seconds = state.run.settings.suite.timeout_seconds if last_test else 0.0
    cap = find_exhausted_cap(state.run.budget, state.spend, held_seconds, names)
    if cap is None:
        return None
    stop = {"attempts": StopReason.ATTEMPTS, "turns": StopReason.TURNS}.get(cap, StopReason.BUDGET)
    held = f" but for the {held_seconds:g} held for the last verification" if held_seconds and cap == "seconds" else ""
    patient = cap not in ("attempts", "test_runs", "seconds")
    return Halt(stop, f"the cap on {cap} is used up{held}", patient=patient)
