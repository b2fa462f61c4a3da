"""The gate, scenario by scenario: scripted models through the kernel, what is admitted, what goes back, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import anyio
import pytest

from agents.test_prompt_prefix import check as check_prefixes
from jumar.core.prompts.conversation import NEXT
from jumar.core.run.effects import Effect, Halt
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.settings import Suite
from jumar.core.state.stop import StopReason
from jumar.core.state.verdict import TestResult, Void
from jumar.journal.writer import Journal
from jumar.kernel import Kernel, Watch
from jumar.runners.pytest import plugin
from jumar.runtime.effect_runner import Done, EffectRunner, Slow
from jumar.testing import FakeVerifier, Judge
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds.driver_world import Turns, both, call, ended, interrupting, swift
from support.worlds.gate_scenarios import ADD, DONE, NOT_CLAIMED, REFACTORS, RUN, STORIES, Story, played
from support.worlds.gate_world import FILES, claim, id_of, judged, lying


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def reverts(made: Turns) -> list[str]:
    """Why something went back, each time."""
    return [e.why for e in made.events(ev.Revert) if isinstance(e, ev.Revert)]


def repairs(made: Turns) -> list[tuple[tuple[str, ...], int]]:
    """The tests that were not turned green, each time, and how often that was."""
    return [(e.test_ids, e.failures) for e in made.events(ev.Repair) if isinstance(e, ev.Repair)]


@pytest.mark.parametrize("name", STORIES)
def test_story(tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    made = played(tmp_path, story)

    stop = ended(made)

    for (kind, admitted, reason), said in zip(made.taken(), story.says, strict=True):
        assert admitted is not bool(said), f"{kind}: {reason}"
        assert said in reason
    assert stop is story.stop
    assert len(made.model.prompts) == len(made.events(ev.ModelCall)) == len(story.turns), "a gate asks no model"
    assert lying(made) == story.left
    whys = reverts(made)
    assert len(whys) == len(story.back), whys
    for why, part in zip(whys, story.back, strict=True):
        assert part in why
    assert tuple(ids for ids, _ in repairs(made)) == story.repairs
    assert len(made.world.verifier.asked) == story.runs


@pytest.mark.slow
def test_no_story_ends_otherwise_where_a_part_of_the_tests_is_enough(tmp_path: Path) -> None:
    """What stays, what goes back and why it ends do not depend on how many tests ran after the first red one."""
    selected = 0
    for number, (name, story) in enumerate(STORIES.items()):
        if "verifier" in story.terms:
            continue
        judge = story.terms.get("judge", judged)

        def selecting(store: Store, expected: tuple[str, ...], _base: str, judge: Judge = judge) -> FakeVerifier:
            return FakeVerifier(store, expected, judge, selects=True)

        made = played(tmp_path / str(number), story, verifier=selecting)

        assert ended(made) is story.stop, name
        assert lying(made) == story.left, name
        assert tuple(ids for ids, _ in repairs(made)) == story.repairs, name
        assert len(reverts(made)) == len(story.back), name
        selected += sum(e.selected > 0 for e in made.events(ev.Tests) if isinstance(e, ev.Tests))
    assert selected > 10


def test_what_is_told_first_has_the_results_and_what_comes_next(tmp_path: Path) -> None:
    made = played(tmp_path, STORIES["a red test is claimed, edited for and green"])

    ended(made)

    first, second = (prompt[-1].content for prompt in made.model.prompts)
    assert "The tests now: 2 of 5 passed\n\nFAILED test_calc.py::test_add\n" in first
    assert first.endswith(NEXT)
    assert second.startswith("edited calc.py\n3 of 5 passed\n")
    assert second.endswith(NEXT)


def test_a_stall_in_refactor_mode_says_what_is_red_where_nothing_was_edited(tmp_path: Path) -> None:
    turns = (both(call("set_mode", mode="refactor"), DONE), DONE, DONE)
    made = played(tmp_path, Story(turns=turns, says=(), terms={"switches": REFACTORS}))

    assert ended(made) is StopReason.STALLED
    end = made.world.replayed().end
    assert end is not None
    assert "was refused 3 times in a row: 2 of 5 passed; red " in end.why


def test_a_claim_is_over_when_its_test_is_seen_green(tmp_path: Path) -> None:
    seen = count()

    def flaky(files: Mapping[str, bytes]) -> Mapping[str, str | TestResult] | Void:
        found = judged(files)
        assert not isinstance(found, Void)
        return {**found, id_of("add"): "passed"} if next(seen) else found

    story = Story(turns=(claim("add"), both(RUN, ADD, DONE)), says=(), terms={"judge": flaky})
    made = played(tmp_path, story)
    made.world.kernel.watch = interrupting(made, "Reserve", 2)
    assert ended(made) is StopReason.INTERRUPTED

    begun(made, EffectRunner(made.parts))  # which remembers no verdict, and runs the same tree again

    assert made.taken()[2] == ("edit_file", False, f"{NOT_CLAIMED}test_calc.py::test_mul, test_words.py::test_upper")
    assert lying(made) == FILES


REAL = (
    "a syntax error of one edit takes the good one beside it in the same file along, but not for good",
    "a test is written first, seen red, claimed and green; the run ends with the model's word",
    *(
        pytest.param(name, marks=pytest.mark.proof)
        for name in (
            "a new test with a fixture that is not there",
            "three claims, one invocation",
            "a test written before its module exists",
        )
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_real_runner_tells_the_same_story(tmp_path: Path, name: str) -> None:
    story = STORIES[name]

    def verifier(store: Store, expected: tuple[str, ...], base: str) -> TrustedVerifier:
        suite, environ = Suite(timeout_seconds=60.0, python=PLAIN_PYTHON), {"PATH": os.environ["PATH"]}
        return TrustedVerifier(store, plugin, suite, tmp_path, expected=expected, base=base, environ=environ)

    made = played(tmp_path, story, verifier=verifier)

    assert ended(made) is story.stop
    assert lying(made) == story.left
    assert tuple(ids for ids, _ in repairs(made)) == story.repairs
    assert len(reverts(made)) == len(story.back)
    tests = [e for e in made.events(ev.Tests) if isinstance(e, ev.Tests)]
    assert sum(not e.cached for e in tests) == story.runs
    assert sum(e.executions for e in tests) == len(list(tmp_path.glob("output/*.txt")))


class Killed(BaseException):
    """The process is gone."""


class Dying(EffectRunner):
    """A shell whose process is killed at one of its effects: before it, or when it is done and nobody knows yet."""

    def __init__(self, made: Turns, at: int, *, done: bool) -> None:
        super().__init__(made.parts)
        self._left, self._done = iter([False] * at), done

    def _die(self, *, done: bool) -> None:
        if done is self._done and next(self._left, True):
            raise Killed

    async def perform(self, effect: Slow, state: RunState) -> Sequence[ev.Event]:
        """Do what takes time."""
        self._die(done=False)
        events = await super().perform(effect, state)
        self._die(done=True)
        return events

    def do(self, effect: Effect, state: RunState) -> Done:
        """Do what takes no time."""
        self._die(done=False)
        done = super().do(effect, state)
        self._die(done=True)
        return done


def begun(made: Turns, shell: EffectRunner, watch: Watch | None = None) -> RunState | None:
    """Run it, from where its journal ends, as a process that knows nothing else; None: it was killed."""
    with Journal.open(made.world.folder) as journal:
        made.world.kernel = kernel = Kernel(journal, shell, made.agent, replay(journal.entries))
        kernel.watch = watch or kernel.watch
        if len(journal.entries) > 1:
            kernel.record((ev.Resume(from_seq=journal.entries[-1].seq),))
        made.parts.workspace.reset(kernel.state.tree)
        try:
            return anyio.run(kernel.run)
        except Killed:
            return None


def outcome(made: Turns) -> tuple[object, ...]:
    """All of a run that must not depend on how often it was stopped. A last word may have to be said again."""
    state = made.world.replayed()
    book = state.gate_state
    claims = [(c.test_id, c.path, c.failures) for c in book.claims]
    best = (state.best.tree, state.best.score) if state.best else None
    taken = [action for action in made.taken() if action[0] != "final"]
    return lying(made), best, claims, book.ended, book.joined, repairs(made), taken


EVERY_WAY = ("before", "after", "interrupt")
"""A process is killed before an effect or after it, or it is asked to stop."""


def stopped_everywhere(folder: Path, story: Story, ways: Sequence[str] = EVERY_WAY) -> int:
    """Kill and interrupt the run of *story* at each of its effects, and go on; how many runs that were."""
    whole = played(folder / "whole", story)
    stop = ended(whole)
    for number in count():
        over = False
        for how in ways:
            made = played(folder / f"{number}-{how}", story)
            made.world.journal.close()
            if how == "interrupt":
                state = begun(made, EffectRunner(made.parts), _halting(made, number))
                over = state is not None and state.end is not None and state.end.stop is not StopReason.INTERRUPTED
            else:
                state = begun(made, Dying(made, number, done=how == "after"))
                over = state is not None
            if not over:
                state = begun(made, EffectRunner(made.parts))
            assert state is not None
            assert state.end is not None
            assert (number, how, state.end.stop) == (number, how, stop)
            assert outcome(made) == outcome(whole), f"{how} effect {number}"
            check_prefixes(made.model.prompts)
        if over:
            return number * len(ways)
    raise AssertionError


def _halting(made: Turns, at: int) -> Watch:
    left = iter([False] * at)

    def watch(_state: RunState, _effect: Effect) -> None:
        if next(left, True):
            made.world.kernel.halt(Halt(StopReason.INTERRUPTED))

    return watch


SAMPLE = (
    pytest.param("a new test beside a claimed edit that stays red", marks=pytest.mark.proof),
    pytest.param(
        "after three refusals in a row all edits since refactor mode was entered go back, and the run is stalled",
        marks=pytest.mark.proof,
    ),
    "final in refactor mode with a red test is refused, the agent mends it and ends green",
)


@pytest.mark.slow
def test_wherever_a_run_is_killed_or_interrupted_it_comes_to_the_same_end(tmp_path: Path) -> None:
    assert stopped_everywhere(tmp_path, STORIES["a stub and what fills it in one turn"]) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_and_so_does_a_longer_one(tmp_path: Path, name: str) -> None:
    stopped_everywhere(tmp_path, STORIES[name])


ESCALATED = "a test is escalated after another one is green: the run ends, and what was kept stays"


@pytest.mark.slow
def test_wherever_a_run_is_killed_its_escalation_ends_it(tmp_path: Path) -> None:
    assert stopped_everywhere(tmp_path, STORIES[ESCALATED], EVERY_WAY[:2]) >= 20


TAKEN_BACK = {
    ESCALATED,
    "edits after final are not made",
    "a runner that breaks down is held against no claim",
    "the last attempt is a green leave: the run ends green",
}
"""Who goes on with a run takes back its last word, and a fault of the machine."""


@pytest.mark.proof
@pytest.mark.parametrize("name", sorted(STORIES.keys() - TAKEN_BACK))
def test_and_so_does_every_one(tmp_path: Path, name: str) -> None:
    stopped_everywhere(tmp_path, STORIES[name])
