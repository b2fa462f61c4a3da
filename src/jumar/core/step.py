"""What to do next. `next_effect` is the whole control flow of a run on one page, and it does no I/O."""

from __future__ import annotations

from typing import Protocol

import msgspec

from jumar.core.budget import exhausted
from jumar.core.gate import Action
from jumar.core.policy import TestPolicy, Trigger
from jumar.core.ratchet import Attempt, holds
from jumar.core.run import IllegalEvent, Phase, RunState
from jumar.core.stop import StopReason
from jumar.core.verdict import Cause


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    content: str


class Request(msgspec.Struct, frozen=True):
    """What an agent wants to ask: which tier, at which stage of its work."""

    tier: str
    stage: str


class Strategy(Protocol):
    """An agent: pure, from state to request and from reply to actions."""

    name: str
    localises: bool
    """Whether its model wants to know which lines the red tests run."""
    note: str
    """What it always adds to its last word; empty is nothing."""

    def request(self, state: RunState) -> Request | None:
        """What to ask next, or None when the agent has nothing left to try."""
        ...

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:
        """The prompt for `request`, given the editable *files* of the best tree."""
        ...

    def actions(self, state: RunState) -> tuple[Action, ...]:
        """What `state.reply` asks for; at least one action."""
        ...


class Halt(msgspec.Struct, frozen=True):
    """Why the run must stop now, from outside the state: an interrupt, a cap hit in flight, a broken disk."""

    stop: StopReason
    why: str = ""


class Verify(msgspec.Struct, frozen=True):
    """Judge the workspace's tree."""

    trigger: Trigger


class Localise(msgspec.Struct, frozen=True):
    """Find the lines that the red tests run."""


class Reserve(msgspec.Struct, frozen=True):
    """Set the worst case of *request* aside, on disk, before the call is made."""

    request: Request


class Call(msgspec.Struct, frozen=True):
    """Make the call that was reserved."""

    request: Request


class Cancel(msgspec.Struct, frozen=True):
    """Settle a reserved call that was never made."""


class Act(msgspec.Struct, frozen=True):
    """Rule on one action of the reply and perform it if admitted."""

    action: Action
    last: bool


class Keep(msgspec.Struct, frozen=True):
    """The ratchet moves up to *attempt*."""

    attempt: Attempt


class GoBack(msgspec.Struct, frozen=True):
    """Put the workspace back to tree *to*."""

    to: str
    why: str


class Finish(msgspec.Struct, frozen=True):
    """Write the last word; the workspace is what will be shipped."""

    halt: Halt


class Close(msgspec.Struct, frozen=True):
    """End the segment, for the reason that `final` gave."""


Effect = Verify | Localise | Reserve | Call | Cancel | Act | Keep | GoBack | Finish | Close


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
            return Cancel() if halt or request is None else Call(request)
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


def _between(state: RunState, agent: Strategy, halt: Halt | None) -> Effect:
    policy = state.run.test_policy
    if ending := halt or _end(state, agent):
        if policy is TestPolicy.ON_FINAL and state.judged is None and not _broken(halt):
            return Verify(Trigger.FINAL)
        if state.best is not None and state.tree != state.best.tree:
            return GoBack(state.best.tree, "the best tree is what is shipped")
        return Finish(ending)
    if policy is TestPolicy.ON_WRITE and state.best is None:
        return Verify(Trigger.BASELINE)
    return _turn(state, agent)


def _broken(halt: Halt | None) -> bool:
    """Whether the machine itself failed under us: then not even the last verification can be made."""
    return halt is not None and halt.stop is StopReason.INFRA


def _turn(state: RunState, agent: Strategy) -> Effect:
    """The next thing of the agent's own: an action of its reply, or a question."""
    if state.postponed:
        return GoBack(state.postponed, "taken up again: it was never verified")
    if state.reply is not None:
        actions = agent.actions(state)
        return Act(actions[state.actions_done], last=state.actions_done + 1 == len(actions))
    request = agent.request(state)
    if request is None:
        raise IllegalEvent("an agent with nothing left to ask has ended the run already")
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
    if void is None and holds(judged.attempt, state.best, state.run.settings.rule):
        return Keep(judged.attempt)
    return GoBack(_home(state), _lower(state) if void is None else "no usable evidence")


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
    if state.green and not _unstarted(state, agent):
        return Halt(StopReason.GREEN)
    if state.expired:
        return Halt(StopReason.BUDGET, state.expired)
    if state.said is not None:
        return Halt(StopReason.FINAL, state.said)
    if state.reply is not None:
        return None
    if agent.request(state) is None:
        return Halt(StopReason.FINAL, "the agent has nothing left to try")
    return _capped(state)


def _unstarted(state: RunState, agent: Strategy) -> bool:
    """Green from the start with something to do: the instruction asks for more than the tests do."""
    untouched = state.spend.attempts == 0 and state.said is None
    return untouched and bool(state.run.settings.instruction) and not agent.localises


def _capped(state: RunState) -> Halt | None:
    last_test = state.run.test_policy is TestPolicy.ON_FINAL
    held_seconds = state.run.settings.suite.timeout_seconds if last_test else 0.0
    cap = exhausted(state.run.budget, state.spend, held_seconds)
    if cap is None:
        return None
    stop = {"attempts": StopReason.ATTEMPTS, "turns": StopReason.TURNS}.get(cap, StopReason.BUDGET)
    return Halt(stop, f"the cap on {cap} is used up")
