"""The control flow by itself: whole runs of the core with no I/O at all, whatever comes back from the world."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.gate.admission import Action
from jumar.core.run import effects, next_effect
from jumar.core.run.effects import Halt
from jumar.core.run.reducers.transitions import TRANSITIONS, reduce, replay
from jumar.core.run.strategy import Message, Request, Tool
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Ratchet, Rule, Ties
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import IllegalEvent, Phase, RunState
from jumar.core.state.settings import Settings
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Cause, Outcome, Void

IDS = ("a", "b", "c")


class Writer:
    """An agent that always writes one file."""

    name, localises, note, loops = "writer", False, "", False
    tools: tuple[Tool, ...] = ()

    def request(self, state: RunState) -> Request | None:
        only_one = state.run.test_policy is not TestPolicy.ON_WRITE
        return None if only_one and state.spend.turns else Request("mid", "fix")

    def messages(self, state: RunState, files: dict[str, str]) -> tuple[Message, ...]:  # noqa: ARG002  the port's
        raise AssertionError("the core asks for no prompt")

    def actions(self, state: RunState) -> tuple[Action, ...]:
        return (Action("write_files", {"x.py": str(state.replies)}),)


verdicts = st.one_of(st.frozensets(st.sampled_from(IDS)), st.sampled_from([Cause.TAMPER, Cause.HARNESS]))
"""The green ids of a verification, or why it is void."""
answers = st.sampled_from(["written", "written", "written", "error"])


class World:
    """Answers effects with whatever was drawn."""

    def __init__(self, judged: list[frozenset[str] | Cause], answered: list[str]) -> None:
        self._judged, self._answered = iter(judged), iter(answered)
        self._trees = 0

    def events(self, effect: effects.Effect, state: RunState) -> tuple[ev.Event, ...]:  # noqa: C901, PLR0911  one line each
        match effect:
            case effects.Verify(trigger):
                return self._verified(trigger, state)
            case effects.Reserve(request):
                return (ev.ModelRequest(tier="mid", model="m", stage=request.stage, reserved_usd=0.2),)
            case effects.Call():
                error = "server" if next(self._answered, "written") == "error" else ""
                return (ev.ModelCall(reply=Reply("x"), tier="mid", model="m", stage="fix", usd=0.1, error=error),)
            case effects.Cancel():
                return (ev.ModelCall(reply=Reply(), tier="mid", model="m", stage="fix", error="cancelled"),)
            case effects.Act(action, last):
                self._trees += 1
                wrote = ev.Write(path="x.py", before="", after="1", tree=f"tree{self._trees}")
                return (ev.ActionTaken(name=action.name, args={}, admitted=True, last=last), wrote)
            case effects.Keep(attempt):
                return (ev.BestFound(tree=attempt.tree, score=attempt.score),)
            case effects.GoBack(to, why):
                return (ev.Revert(to=to, paths=("x.py",), why=why),)
            case effects.Finish(halt):
                return (ev.Final(message=halt.why, stop=halt.stop),)
            case effects.Close():
                assert state.final
                return (ev.RunEnd(stop=state.final.stop, best=None, usd=0, tokens=0, test_runs=0, executions=0),)
            case effects.Forgo(stage, why):
                return (ev.ActionTaken(name=stage, args={}, admitted=False, reason=why, last=True),)
            case effects.Localise() | effects.Execute() | effects.Rebuild() | effects.Switch() | effects.Await():
                return ()
            case effects.Refuse(why):
                return (ev.Refusal(why=why, tree=state.tree),)

    def _verified(self, trigger: Trigger, state: RunState) -> tuple[ev.Event, ...]:
        said = next(self._judged, frozenset(IDS))
        void = Void(said, "drawn") if isinstance(said, Cause) else None
        green = frozenset[str]() if isinstance(said, Cause) else said
        runs = () if void else tuple(
            ev.TestRun(test_id=i, status="pass" if i in green else "fail", outcome=Outcome.PASSED) for i in IDS
        )  # fmt: skip
        tests = ev.Tests(
            trigger=trigger, ok=len(green) == 3, passed=len(green), failed=3 - len(green), errors=0, total=3,
            void=void, tree=state.tree,
        )  # fmt: skip
        return (*runs, tests, ev.Observation(name="driver.run_tests", content={"ok": len(green) == 3, "n": len(green)}))


def opening(policy: TestPolicy, rule: Rule, attempts: int) -> ev.RunStart:
    return ev.RunStart(
        run="r", task="t", agent="writer", model="m", test_policy=policy, gate=Gate.OFF,
        budget=Budget(attempts=attempts, turns=12), expected=IDS, tree="tree0", settings=Settings(rule=rule),
    )  # fmt: skip


def lived(world: World, start: ev.RunStart, halt_at: int) -> Iterator[tuple[RunState, ev.Entry]]:
    """Every state of a run and the event that led to it; the shell's own stop comes at step *halt_at*."""
    first = ev.Entry(1, 0.0, start)
    state = reduce(RunState(), first)
    yield state, first
    seq = 1
    for steps in range(400):
        if state.phase is Phase.ENDED:
            return
        halt = Halt(StopReason.INTERRUPTED) if steps >= halt_at else None
        for event in world.events(next_effect.next_effect(state, Writer(), halt), state):
            seq += 1
            entry = ev.Entry(seq, float(seq), event)
            state = reduce(state, entry)
            yield state, entry
    raise AssertionError("the run does not end")


drawn = given(
    st.lists(verdicts, max_size=8), st.lists(answers, max_size=8), st.sampled_from(TestPolicy),
    st.builds(Rule, st.sampled_from(Ratchet), st.sampled_from(Ties)), st.integers(0, 40),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None)
@drawn
def test_every_run_ends_typed_and_ships_its_best(
    judged: list[frozenset[str] | Cause], answered: list[str], policy: TestPolicy, rule: Rule, halt_at: int
) -> None:
    states = list(lived(World(judged, answered), opening(policy, rule, 5), halt_at))
    end, _ = states[-1]

    assert end.end is not None
    assert end.best is None or end.tree == end.best.tree
    assert (end.end.stop is StopReason.GREEN) <= end.green
    usable = [s.judged.attempt for s, e in states if isinstance(e.event, ev.Tests) and s.judged and not e.event.void]
    if rule.ratchet is Ratchet.COUNT and usable and end.best:
        done = usable[:-1] if end.judged and states[-1][0].best is None else usable
        assert end.best.score.rank == max(a.score.rank for a in done)
    assert end.phase is Phase.ENDED
    assert end.request is None, "every reservation was settled"


@pytest.mark.slow
@settings(deadline=None)
@drawn
def test_nothing_ever_falls_and_replay_agrees(
    judged: list[frozenset[str] | Cause], answered: list[str], policy: TestPolicy, rule: Rule, halt_at: int
) -> None:
    states = list(lived(World(judged, answered), opening(policy, rule, 5), halt_at))

    for (old, _), (new, _) in pairwise(states):
        assert new.spend.micro_usd >= old.spend.micro_usd
        assert new.spend.attempts >= old.spend.attempts
        assert new.spend.seconds >= old.spend.seconds
        assert old.best is None or (new.best is not None and new.best.score.rank >= old.best.score.rank)
        if policy is not TestPolicy.ON_WRITE:
            assert new.baseline_runs == 0
    assert replay(entry for _, entry in states) == states[-1][0]


@pytest.mark.slow
@settings(deadline=None)
@drawn
def test_a_policy_means_what_it_says(
    judged: list[frozenset[str] | Cause], answered: list[str], policy: TestPolicy, rule: Rule, halt_at: int
) -> None:
    events = [e.event for _, e in lived(World(judged, answered), opening(policy, rule, 5), halt_at)]
    triggers = [e.trigger for e in events if isinstance(e, ev.Tests)]
    shown = [e for e in events if isinstance(e, ev.Observation)]

    assert len(triggers) == len(shown)
    if policy is TestPolicy.NEVER:
        assert not triggers
    if policy is TestPolicy.ON_FINAL:
        assert triggers == [Trigger.FINAL]
    if policy is TestPolicy.ON_WRITE:
        assert set(triggers) <= {Trigger.BASELINE, Trigger.WRITE}
        assert triggers.count(Trigger.BASELINE) <= 1


@pytest.mark.slow
@settings(deadline=None)
@drawn
def test_an_event_that_the_table_does_not_allow_is_refused_and_changes_nothing(
    judged: list[frozenset[str] | Cause], answered: list[str], policy: TestPolicy, rule: Rule, halt_at: int
) -> None:
    states = list(lived(World(judged, answered), opening(policy, rule, 5), halt_at))
    seen = {type(e.event): e for _, e in states}
    for state, _ in states:
        for kind, entry in seen.items():
            if kind not in TRANSITIONS[state.phase]:
                try:
                    reduce(state, entry)
                except IllegalEvent:
                    continue
                raise AssertionError(f"{kind.__name__} was taken in phase {state.phase}")


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(verdicts, max_size=6), st.integers(0, 60), st.sampled_from(TestPolicy))
def test_a_run_cut_anywhere_can_be_resumed_to_an_end(
    judged: list[frozenset[str] | Cause], cut: int, policy: TestPolicy
) -> None:
    states = list(lived(World(judged, []), opening(policy, Rule(), 5), 400))
    whole = [s for s in states if s[0].phase is not Phase.TESTING]
    state, entry = whole[min(cut, len(whole) - 1)]
    reserved = state.request is not None
    resumed = reduce(state, ev.Entry(entry.seq + 1, entry.ts + 1000, ev.Resume(from_seq=entry.seq)))

    assert resumed.spend.seconds == state.spend.seconds, "the time between segments is nobody's"
    assert resumed.spend.micro_usd == state.spend.micro_usd + 200_000 * reserved
    world, seq = World([], []), entry.seq + 1
    while resumed.phase is not Phase.ENDED:
        for event in world.events(next_effect.next_effect(resumed, Writer()), resumed):
            seq += 1
            resumed = reduce(resumed, ev.Entry(seq, entry.ts + 1000 + seq, event))
    assert resumed.best is None or resumed.tree == resumed.best.tree
