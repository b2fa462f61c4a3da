"""Reads the outcome of a finished rollout: its prompt, its completion, and whether that passed.

Ends that say nothing about the agent (faults, caps, interruptions), and outcomes that nobody can rely on (void, flaky,
weak evidence) are left out, each for a reason that is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.core.gate.grades import Grade, is_proved
from jumar.core.run.strategy import DRIVER, Message
from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.settings import Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.core.state.verdict import Cause
from jumar.errors import BadInput, Infra
from jumar.preferences.completions import Completion, Target, TooLong, build_completion
from jumar.preferences.leaks import find_leak
from jumar.preferences.trajectories import ends_by_itself, has_only_usable_replies
from jumar.runs.setup.believed import find_other_verdict, read_unless_changed


class Reason(StrEnum):
    """Reason why a rollout is in no example."""

    DAMAGED = "damaged"
    """Its journal or its files cannot be read, or were changed."""
    UNFINISHED = "unfinished"
    """It has no end, or was interrupted."""
    INFRA = "infra"
    BUDGET = "budget"
    GUARDRAIL = "guardrail"
    ESCALATED = "escalated"
    UNSCORED = "unscored"
    """No test judged it."""
    HELD_OUT = "held_out"
    """Its last change passed every visible test and not the held-out ones."""
    VOID = "void"
    REJUDGED = "rejudged"
    """A later verdict on its tree (`jumar rescore`, `jumar score`) is another one than the run's."""
    FLAKY = "flaky"
    GRADE = "grade"
    """The evidence for its green is weaker than asked for."""
    UNCHANGED = "unchanged"
    """It changed nothing, so there is no completion."""
    NO_CONVERSATION = "no_conversation"
    """Its agent has no tool-calling conversation, or not all of it led to the tree that was judged."""
    RESULTS_SHOWN = "results_shown"
    """Its conversation shows test results: it holds the label."""
    BROKEN_OFF = "broken_off"
    """Its conversation was ended by jumar and not by its agent: its end would tell what it is worth."""
    UNUSABLE = "unusable"
    """A reply in its conversation is none: refused, empty, cut off, malformed or without a call of a tool."""
    LEAK = "leak"
    """Its completion holds words that tell the label."""
    TOO_LONG = "too_long"
    """Its prompt is longer than asked for."""
    DUPLICATE = "duplicate"
    """Another rollout has the same completion for the same prompt."""
    UNPAIRED = "unpaired"
    """No rollout of the same task and prompt came out otherwise."""
    SURPLUS = "surplus"
    """There are as many pairs of its task as were asked for."""
    FAILED = "failed"
    """Only what passed is a demonstration."""


DEFAULT_GRADE = "A (pytest) or X (other runners)"
"""Weakest grade of a green where none was chosen, in words."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which rollouts are read."""

    target: Target = Target.PATCH
    min_grade: str = ""
    """Weakest grade of a green; empty: A where the runner can have one."""
    max_prompt_chars: int = 200_000


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout whose outcome says something about its agent."""

    folder: str
    """Its run directory, which names it: two campaigns may have runs of one name."""
    run: str
    task: str
    group: str
    """Hash of what two rollouts must share to be compared: task, tests, prompt, agent, policy, gate, caps."""
    passed: bool
    score: float
    """Share of the expected tests that passed."""
    stop: str
    grade: str
    completion: Completion

    @property
    def example(self) -> str:
        """Hash of all that a trainer sees of it: prompt, tools and completion."""
        shown = (self.completion.prompt, self.completion.tools, self.completion.completion)
        return sha256(msgspec.json.encode(shown, order="sorted")).hexdigest()


ENDS = {
    StopReason.INFRA: Reason.INFRA,
    StopReason.BUDGET: Reason.BUDGET,
    StopReason.GUARDRAIL: Reason.GUARDRAIL,
    StopReason.ESCALATED: Reason.ESCALATED,
    StopReason.UNTESTED: Reason.UNSCORED,
    StopReason.UNPROVED: Reason.GRADE,
    StopReason.INTERRUPTED: Reason.UNFINISHED,
}
"""Ends that say nothing about the quality of what an agent wrote."""


def read_rollout(folder: Path, wanted: Selection) -> Rollout | Reason:
    """Return the rollout in the run directory *folder*, or the reason why it is in no example."""
    try:
        entries, state = read_unless_changed(folder)
        if state.start is None:
            return Reason.UNFINISHED
        if find_other_verdict(folder, state):
            return Reason.REJUDGED
        tests = [entry.event for entry in entries if isinstance(entry.event, ev.Tests)]
        return find_reason(state, tests, wanted) or _build_rollout(folder, state, wanted)
    except (BadInput, Infra, OSError):
        return Reason.DAMAGED


def find_reason(state: RunState, tests: Iterable[ev.Tests], wanted: Selection) -> Reason | None:
    """Return why the outcome of the run that ended in *state* says nothing about its agent; None: it does."""
    if state.phase is not Phase.ENDED or state.end is None:
        return Reason.UNFINISHED
    judged = [event for event in tests if event.trigger != "baseline"]
    void = judged[-1].void if judged else None
    if void is not None:
        return ENDS.get(state.end.stop) or (Reason.HELD_OUT if void.cause is Cause.HELD_OUT else Reason.VOID)
    if state.end.stop in ENDS:
        return ENDS[state.end.stop]
    if state.best is None or not state.expected or not judged or state.run.test_policy is TestPolicy.NEVER:
        return Reason.UNSCORED
    return _find_doubt(state, judged[-1], wanted)


def _find_doubt(state: RunState, last: ev.Tests, wanted: Selection) -> Reason | None:
    """Return why the evidence of a scored run is too weak; *last* is its last verification."""
    evidence = state.evidence or last
    if evidence.void is not None:
        return Reason.VOID
    if state.wavering or last.flaky or evidence.flaky:
        return Reason.FLAKY
    green = state.end is not None and state.end.stop is StopReason.GREEN
    weakest = wanted.min_grade or (Grade.A if state.run.settings.suite.runner == "pytest" else Grade.X)
    if green and not is_proved(evidence.grade, "", weakest):
        return Reason.GRADE
    all_passed = state.best is not None and state.best.score.passed == len(state.expected)
    return Reason.VOID if all_passed and not green else None  # it was not accepted, so nobody knows


def _build_rollout(folder: Path, state: RunState, wanted: Selection) -> Rollout | Reason:
    if wanted.target is Target.TRAJECTORY and (flaw := _find_flaw(state)):
        return flaw
    try:
        built = build_completion(folder, state, wanted.target, wanted.max_prompt_chars)
    except TooLong:
        return Reason.TOO_LONG
    if built is None:
        return Reason.NO_CONVERSATION if wanted.target is Target.TRAJECTORY else Reason.UNCHANGED
    if find_leak(built.completion, state.expected):
        return Reason.LEAK
    assert state.best is not None  # noqa: S101  `find_reason` has seen it
    return Rollout(
        folder=str(folder),
        run=state.run.run,
        task=state.run.task,
        group=hash_group(state.run, built.prompt),
        passed=state.end is not None and state.end.stop is StopReason.GREEN,
        score=state.best.score.passed / len(state.expected),
        stop=str(state.end.stop) if state.end else "",
        grade=state.evidence.grade if state.evidence else "",
        completion=built,
    )


def _find_flaw(state: RunState) -> Reason | None:
    """Return why the conversation of a scored run teaches something else than the work; None: it does not."""
    if state.run.test_policy is TestPolicy.ON_WRITE:
        return Reason.RESULTS_SHOWN
    if state.run.agent != DRIVER:
        return Reason.NO_CONVERSATION
    if not ends_by_itself(state):
        return Reason.BROKEN_OFF
    return None if has_only_usable_replies(state) else Reason.UNUSABLE


def hash_group(run: ev.RunStart, prompt: tuple[Message, ...]) -> str:
    """Return the hash of everything that two rollouts must share to be compared.

    Seeds and temperatures differ between them, and so do the files that stand for a model.
    """
    kind, _, name = run.model.partition(":")
    plain = Settings()
    settings = replace(
        run.settings, seed=plain.seed, ledger=plain.ledger, notes=plain.notes, flaky=plain.flaky,
        tree_bytes=plain.tree_bytes, needed=plain.needed,
        routes={tier: replace(route, temperature=None) for tier, route in run.settings.routes.items()},
    )  # fmt: skip
    facts = (
        run.task, run.tree, run.expected, run.agent, kind if kind in ("script", "replay") else (kind, name),
        run.test_policy, run.gate, run.budget, settings, prompt,
    )  # fmt: skip
    return sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()
