"""Test runs that the model asks for, whatever the policy: they show results and move nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from jumar.core.run.effects import Call, Verify
from jumar.core.run.strategy import Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.settings import Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy, Trigger
from jumar.core.state.verdict import Outcome
from jumar.errors import Infra
from jumar.kernel import Kernel
from jumar.models.script import ScriptLine
from jumar.ports import Verification
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeVerifier
from support.worlds.driver_world import Rules, Turns, both, call, ended, resumed, swift, turns, writes
from support.worlds.run_world import IDS, TOTAL, judge, program

MAY = Switches(model_may_run_tests=True)
RUN, DONE = call("run_tests"), call("final", message="done")
MANY = tuple(both(writes(9, str(n)), RUN) for n in range(40))


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def at_the_end(folder: Path, *lines: ScriptLine, budget: Budget | None = None) -> Turns:
    """A run under on_final whose model may run tests."""
    rules = Rules(policy=TestPolicy.ON_FINAL, switches=MAY, budget=budget or Budget(attempts=None, turns=30))
    return turns(folder, lines, rules)


def result_of(made: Turns) -> object:
    """The test result in the last word."""
    (last,) = (e for e in made.events(ev.Final) if isinstance(e, ev.Final))
    return last.test_result


def test_under_on_final_the_model_runs_tests_and_the_last_verification_stays_exactly_one(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, RUN, both(writes(9), RUN), both(writes(12), RUN), DONE)

    assert ended(made) is StopReason.FINAL
    assert made.triggers() == ["model", "model", "model", "final"]
    state = made.world.replayed()
    assert (state.spend.test_runs, state.spend.attempts) == (4, 1)
    assert made.taken()[0] == ("run_tests", True, "")
    assert result_of(made) == made.shown("driver.run_tests")[-1]


def test_what_the_model_ran_is_neither_kept_as_best_nor_reverted(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, both(writes(12), RUN), both(writes(3), RUN), DONE)

    ended(made)

    assert made.text("app.py") == program(3), "nothing of what the model saw moved the ratchet"
    assert not made.events(ev.Revert)
    (best,) = (e for e in made.events(ev.BestFound) if isinstance(e, ev.BestFound))
    assert best.score.passed == 3
    assert "3 of 17 passed" in str(result_of(made))


def test_a_green_that_the_model_saw_ends_nothing(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, both(writes(TOTAL), RUN), both(writes(TOTAL, "tidier"), RUN), DONE)

    assert ended(made) is StopReason.GREEN
    assert made.triggers() == ["model", "model", "final"]
    assert len(made.model.prompts) == 3
    assert made.text("app.py") == program(TOTAL, "tidier")


WAYS_OUT: Mapping[str, tuple[Sequence[ScriptLine], Budget, StopReason]] = {
    "final": ((both(writes(9), RUN), DONE), Budget(attempts=None), StopReason.FINAL),
    "turns": ((RUN, both(writes(9), RUN), RUN), Budget(attempts=None, turns=2), StopReason.TURNS),
    "test runs": ((RUN, RUN, RUN), Budget(attempts=None, turns=2, test_runs=2), StopReason.TURNS),
    "usd": ((RUN, both(writes(9), RUN), DONE), Budget(attempts=None, usd=0.02), StopReason.BUDGET),
    "seconds": (MANY, Budget(attempts=None, seconds=160.0), StopReason.BUDGET),
    "guardrail": ((RUN, call("write_file", path="../x.py", text="")), Budget(attempts=None), StopReason.GUARDRAIL),
    "stalled": ((RUN, RUN, RUN), Budget(attempts=None), StopReason.STALLED),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_on_every_way_out_there_is_one_last_verification(tmp_path: Path, way: str) -> None:
    lines, budget, stop = WAYS_OUT[way]
    made = at_the_end(tmp_path, *lines, budget=budget)

    assert ended(made) is stop
    assert [t for t in made.triggers() if t != "model"] == ["final"]
    assert made.triggers()[-1] == "final"
    assert result_of(made) == made.shown("driver.run_tests")[-1]
    assert budget.test_runs is None or made.world.replayed().spend.test_runs <= budget.test_runs


def test_the_test_run_and_the_time_of_the_last_verification_are_held_back(tmp_path: Path) -> None:
    few = at_the_end(tmp_path / "few", RUN, DONE, budget=Budget(attempts=None, test_runs=1))
    timed = at_the_end(tmp_path / "timed", RUN, budget=Budget(attempts=None, seconds=200.0))
    kernel = timed.world.kernel

    ended(few)
    with timed.world.journal:
        held, free = (kernel.shell.seconds_left(Verify(t), kernel.state) for t in (Trigger.MODEL, Trigger.FINAL))
        asking = kernel.shell.seconds_left(Call(Request("mid", "turn")), kernel.state)

    assert few.triggers() == ["final"]
    assert ("run_tests", False, "no test run is left in the budget") in few.taken()
    assert free is None
    assert held is not None
    assert asking is not None
    assert max(held, asking) <= 200.0 - 120.0


class Breaking(FakeVerifier):
    """Cannot judge the first tree that it is asked about."""

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str,
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        """The first time, a broken machine."""
        if not self.asked:
            self.asked.append(tree)
            raise Infra("no room could be made: No space left on device")
        return await super().verify(tree, accepted, control=control, also=also, first=first)


def test_a_test_run_of_the_models_that_breaks_does_not_take_the_last_verification(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, both(writes(9), RUN))
    broken = EffectRunner(replace(made.parts, verifier=Breaking(made.world.store, IDS, judge)))
    made.world.kernel = Kernel(made.world.journal, broken, made.agent, made.world.kernel.state)

    assert ended(made) is StopReason.INFRA
    assert made.triggers() == ["final"]


def test_a_run_that_goes_on_has_one_last_verification_in_each_segment(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, both(writes(12), RUN), DONE, both(writes(9), RUN), DONE)

    ended(made)
    resumed(made)

    assert made.triggers() == ["model", "final", "model", "final"]
    assert made.text("app.py") == program(12), "the best of both segments is what is shipped"
    last = [e for e in made.events(ev.Final) if isinstance(e, ev.Final)][-1]
    assert "12 of 17 passed" in str(last.test_result)


def test_under_never_run_tests_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    made = turns(tmp_path, (both(writes(9), RUN), DONE), Rules(policy=TestPolicy.NEVER, switches=MAY))

    ended(made)

    assert made.triggers() == []
    assert any(name == "run_tests" and "under test policy never" in why for name, _, why in made.taken())


def test_the_model_is_told_that_what_it_runs_judges_nothing(tmp_path: Path) -> None:
    made = at_the_end(tmp_path, RUN, DONE)

    ended(made)

    system = made.model.prompts[0][0].content
    assert "run_tests shows the results whenever you ask" in system
    assert "it judges nothing" in system
