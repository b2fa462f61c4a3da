"""What to do next. `next_effect` is the whole control flow of a run on one page, and it does no I/O."""

from __future__ import annotations

from jumar.core.agent import FRONTIER, Strategy
from jumar.core.budget import CAPS, exhausted
from jumar.core.claims import red_ids, stands
from jumar.core.effects import (
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
    Reserve,
    Switch,
    Verify,
)  # fmt: skip
from jumar.core.policy import Gate, TestPolicy, Trigger
from jumar.core.ratchet import holds
from jumar.core.run import HOST, HOSTED, IllegalEvent, Judged, Phase, RunState
from jumar.core.stall import stalled
from jumar.core.stop import EXIT_CODES, StopReason
from jumar.core.turn import judgement, named, next_trial
from jumar.core.verdict import Cause


def next_effect(state: RunState, agent: Strategy, halt: Halt | None = None) -> Effect:
    """What to do next. *halt* is the shell's own reason to stop; it wins over everything but writing the end down.

    Raises:
        IllegalEvent: in the phases where nothing can be done: before the start and after the end.
    """
    match state.phase:
        case Phase.OPEN:
            return _between(state, agent, halt)
        case Phase.ASKED:
            request = agent.request(state)
            return Cancel() if halt or request is None else Call(request, state.pause)
        case Phase.WRITTEN:
            return (
                GoBack(_home(state), f"stopped before it was verified: {halt.stop}") if halt else Verify(Trigger.WRITE)
            )
        case Phase.JUDGED:
            return _judge(state)
        case Phase.CLOSED:
            return Close()
        case Phase.NEW | Phase.TESTING | Phase.ENDED:
            raise IllegalEvent(f"nothing to do in phase {state.phase}")


def _between(state: RunState, agent: Strategy, halt: Halt | None) -> Effect:  # noqa: PLR0911  as below
    policy = state.run.test_policy
    ending = halt or _end(state, agent)
    if (due := _due(state, ending)) is not None:
        return due
    if ending:
        if _owed(state, ending):
            return _turn(state, agent) if state.stage == "draft" else Forgo("review", ending.why)
        unknown = state.judged is None or state.written
        if policy is TestPolicy.ON_FINAL and unknown and not ending.unverifiable:
            return Verify(Trigger.FINAL)
        if state.best is not None and state.tree != state.best.tree:
            return GoBack(state.best.tree, "the best tree is what is shipped")
        return Finish(_untested(state, ending))
    if policy is TestPolicy.ON_WRITE and state.best is None:
        return Verify(Trigger.BASELINE)
    return _turn(state, agent)


def _due(state: RunState, ending: Halt | None) -> Effect | None:
    """What the gate still has to do: judge the edits of a turn that is over, or a refactoring."""
    book, best = state.book, state.best
    if best is None or not state.coalesces:
        return None
    if not (ending is None or ending.patient or ending.stop in _PATIENT):
        return None
    if state.postponed:
        return GoBack(state.postponed, _AGAIN)
    if book.mode is Gate.REFACTOR:
        if state.tree != best.tree:
            return Verify(Trigger.TURN) if book.leaving or ending else None
        return Switch(Gate.STRICT) if book.leaving and not ending else None
    return Verify(Trigger.TURN) if book.turn and (book.over or ending) else None


_AGAIN = "taken up again: it was never verified"

_PATIENT = (StopReason.GREEN, StopReason.FINAL, StopReason.STALLED, StopReason.TURNS)
"""Reasons to stop that leave the time to judge what was done before."""


def _owed(state: RunState, ending: Halt) -> bool:
    """Whether a draft must still be written: without it the run would ship less than it has.

    Where writes are verified there is no time for that; the draft is taken up when the run goes on.
    """
    later = ending.stop in (StopReason.INTERRUPTED, StopReason.INFRA, StopReason.GUARDRAIL)
    return state.draft is not None and state.run.test_policy is not TestPolicy.ON_WRITE and not later


def _turn(state: RunState, agent: Strategy) -> Effect:  # noqa: PLR0911  one line per effect reads best
    """The next thing of the agent's own: an action of its reply, or a question."""
    if state.postponed:
        return GoBack(state.postponed, _AGAIN)
    if state.asked_tests is not None:
        return Verify(Trigger.MODEL)
    if state.reply is not None:
        actions = agent.actions(state)
        action, last = actions[state.actions_done], state.actions_done + 1 == len(actions)
        return Execute(action, last) if action.name == "run_command" and not action.fault else Act(action, last)
    request = agent.request(state)
    if request is None and state.run.agent in HOSTED:
        return Await()
    if request is None:
        raise IllegalEvent("an agent with nothing left to ask has ended the run already")
    if request.tier == FRONTIER:
        return Finish(Halt(StopReason.INFRA, "the agent asks the frontier model within the loop of attempts"))
    if agent.localises and (state.localisation is None or state.localisation.tree != _home(state)):
        return Localise()
    return Reserve(request)


def _judge(state: RunState) -> Effect:
    """A verdict is there: up, or back."""
    judged = state.judged
    if judged is None:
        raise IllegalEvent("judged without a verdict")
    void = judged.tests.void
    if void is not None and state.best is None and (void.cause is Cause.HARNESS or state.tree == state.run.tree):
        return Finish(Halt(StopReason.INFRA, void.reason))
    if judged.tests.trigger is Trigger.TURN and state.book.mode is not Gate.OFF:
        return _gate(state, judged)
    if void is None and holds(judged.attempt, state.best, state.run.settings.rule):
        return Keep(judged.attempt)
    return GoBack(_home(state), _lower(state) if void is None else "no usable evidence")


def _gate(state: RunState, judged: Judged) -> Effect:
    """A verdict on claimed edits, or on a refactoring: what is good stays, byte for byte, and the rest goes back."""
    if state.book.mode is Gate.REFACTOR:
        green = judged.tests.void is None and judged.tests.passed == judged.tests.total and judged.checked
        why = "refactor mode is left green or not at all"
        command = "" if judged.checked else "; the command of [gate] verify failed"
        return Keep(judged.attempt) if green else GoBack(_home(state), f"{why}: {_lower(state)}{command}")
    found = judgement(state)
    trial = next_trial(state.book, found)
    if trial is None:
        return Keep(judged.attempt)
    return Rebuild(trial.left, trial.dropped, found.why)


def _lower(state: RunState) -> str:
    t = state.judged.tests if state.judged else None
    best = state.best.score.passed if state.best else 0
    return f"{t.passed if t else 0} of {t.total if t else 0} passed, the best has {best}"


def _home(state: RunState) -> str:
    """Where the workspace goes back to: the best tree, or the untouched one."""
    return state.best.tree if state.best is not None else state.run.tree


def _end(state: RunState, agent: Strategy) -> Halt | None:  # noqa: PLR0911  one line per reason reads best
    """The run's own reason to stop, or None."""
    if state.hit is not None:
        return Halt(StopReason.GUARDRAIL, f"{state.hit.rule}: {state.hit.what}")
    if state.fault:
        return Halt(StopReason.INFRA, state.fault)
    if state.green and not _unstarted(state, agent) and not _unplanned(state):
        return Halt(StopReason.GREEN)
    if state.expired:
        return Halt(StopReason.BUDGET, state.expired)
    if state.said is not None:
        return Halt(StopReason.FINAL, state.said)
    if why := _given_up(state):
        return Halt(StopReason.STALLED, why)
    if agent.loops and state.run.agent != HOST and stalled(state.recent):
        return Halt(StopReason.STALLED, "the same action came three times in six")
    if state.reply is not None:
        return _capped(state, _WITHIN_A_TURN)
    if capped := _capped(state):
        return capped
    idle = state.run.agent not in HOSTED and agent.request(state) is None
    return Halt(StopReason.FINAL, "the agent has nothing left to try") if idle else None


def _untested(state: RunState, ending: Halt) -> Halt:
    """The end of a run: where it found and wrote no test, no reason to stop says more than that."""
    if state.expected or EXIT_CODES[ending.stop] != EXIT_CODES[StopReason.UNTESTED]:
        return ending
    last = f"{ending.why.rstrip('. ')}; " if ending.why.strip() else ""
    why = "no test judged this run: none was there, and none was written"
    return Halt(StopReason.UNTESTED, f"{last}{why}{_guarded(state)}")


def _guarded(state: RunState) -> str:
    """The result of the command in `[gate] verify` on what is shipped, where it was run."""
    judged, verify = state.judged, state.run.settings.verify
    if not verify or judged is None or judged.tests.trigger is not Trigger.TURN:
        return ""
    kept = judged.checked and judged.tests.tree == state.tree
    return f"; {verify} {'succeeded' if kept else 'failed, and what it failed on went back'}"


def _unplanned(state: RunState) -> bool:
    """Green from the start, and a test of the plan is not: the work that was planned is not done."""
    steps = state.book.plan if state.born_green else ()
    return any(step.test_id and stands(step, state.book.newest) != "green" for step in steps)


def _given_up(state: RunState) -> str:
    """Why no claim can be made any more; empty: one can, or none was given up."""
    book = state.book
    if not book.ended or book.claims or book.turn or set(red_ids(book.newest)) - book.ended:
        return ""
    return f"two edits for {named(tuple(sorted(book.ended)))} did not turn it green, and nothing else is red"


def _unstarted(state: RunState, agent: Strategy) -> bool:
    """Green from the start with something to do: the instruction asks for more than the tests do."""
    if state.run.agent == HOST:
        return state.said is None
    if state.said is not None or not state.run.settings.instruction:
        return False
    return state.born_green if agent.loops else state.spend.attempts == 0 and not agent.localises


_WITHIN_A_TURN = ("attempts", "test_runs")
"""Caps that the actions of one reply can use up."""


def _capped(state: RunState, names: tuple[str, ...] = CAPS) -> Halt | None:
    last_test = state.run.test_policy is TestPolicy.ON_FINAL
    held_seconds = state.run.settings.suite.timeout_seconds if last_test else 0.0
    cap = exhausted(state.run.budget, state.spend, held_seconds, names)
    if cap is None:
        return None
    stop = {"attempts": StopReason.ATTEMPTS, "turns": StopReason.TURNS}.get(cap, StopReason.BUDGET)
    held = f" but for the {held_seconds:g} held for the last verification" if held_seconds and cap == "seconds" else ""
    patient = cap not in ("attempts", "test_runs", "seconds")
    return Halt(stop, f"the cap on {cap} is used up{held}", patient=patient)
