"""`repair` holds back the time to verify what it found, and throws nothing away that was screened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from jumar.agents.repair import RepairAgent
from jumar.core.run.effects import Call, Verify
from jumar.core.run.search_reserve import SEARCHING, compute_search_seconds, count_acceptance_runs, estimate_run_seconds
from jumar.core.run.strategy import Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost
from jumar.core.state.ratchet import Score
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.run_state import Judged
from jumar.core.state.settings import Suite
from jumar.core.state.test_policy import Trigger
from jumar.core.state.verdict import Outcome
from jumar.ports import Answer, Ask
from jumar.repair.candidates import Candidate
from jumar.repair.schedule import TrialSchedule
from jumar.repair.screening_client import ScreeningConfinement, ScreeningTree, ScreeningTrial, Sighting
from jumar.repair.search import Bounds, MutationSearch, Screener
from jumar.repair.suspicion import SuspectTree
from jumar.runners.pytest import PytestRunner
from jumar.workspace.store.object_store import Store
from support.worlds.run_world import Terms, program, world

RED = "test_box.py::test_small"
SOURCE = "LIMIT = 3\n\n\ndef small(n):\n    return n < LIMIT\n"
RIGHT = "return n <= LIMIT"


def ground(folder: Path) -> ScreeningTree:
    return ScreeningTree(
        store=Store(folder / "objects"),
        runner=PytestRunner(),
        suite=Suite(),
        fence=ScreeningConfinement(folder / "rooms"),
        tree="",
        red=(RED,),
        green=("test_box.py::test_slow",),
        editable=("box.py",),
        seconds=10.0,
    )


class Fake:
    """Screens without a process. Some trials never end."""

    def __init__(self, turned: Callable[[int], None], endless: Callable[[ScreeningTrial], bool], kept: bool) -> None:  # noqa: FBT001  as the tests say it
        self._turned, self._endless, self._kept = turned, endless, kept

    async def screen(self, trial: ScreeningTrial) -> Sighting:
        """The right candidate turns the red test; where a trial is endless, its green tests do not end."""
        right = trial.candidate is not None and RIGHT in trial.candidate.text
        if right:
            self._turned(trial.index)
        if self._endless(trial):
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        return Sighting(frozenset({RED}), kept=self._kept) if right else Sighting(signs=("AssertionError: ",))


def found(
    folder: Path, endless: Callable[[ScreeningTrial], bool], workers: int = 1, *, kept: bool = True
) -> Candidate | None:
    """The candidate that a search gives; one in which a trial is endless ends with its time."""

    @asynccontextmanager
    async def fake(_ground: ScreeningTree, turned: Callable[[int], None]) -> AsyncIterator[Screener]:
        yield Fake(turned, endless, kept)

    tree = SuspectTree({"box.py": SOURCE}, {"box.py": {5: 1.0}})
    search = MutationSearch(TrialSchedule(tree, (RED,)), fake)

    async def run() -> Candidate | None:
        return await search.run(ground(folder), Bounds(2.0, 300, workers), lambda _: False)

    return anyio.run(run)


@pytest.mark.slow
def test_a_candidate_whose_green_tests_still_run_when_the_time_ends_is_proposed(tmp_path: Path) -> None:
    proposed = found(tmp_path, lambda trial: trial.candidate is not None and RIGHT in trial.candidate.text)

    assert proposed is not None
    assert RIGHT in proposed.text


@pytest.mark.slow
def test_a_survivor_behind_a_trial_that_does_not_end_is_proposed(tmp_path: Path) -> None:
    proposed = found(tmp_path, lambda trial: trial.index == 0, workers=2)

    assert proposed is not None
    assert RIGHT in proposed.text


@pytest.mark.slow
def test_a_candidate_that_lost_a_green_test_is_not_proposed(tmp_path: Path) -> None:
    assert found(tmp_path, lambda _: False, kept=False) is None


@pytest.mark.parametrize(
    ("left", "seconds", "confirm", "searching"),
    [
        (100.0, 5.0, 3, 55.0),
        (100.0, 5.0, 0, 95.0),
        (100.0, 40.0, 3, 100.0 * SEARCHING),
        (0.0, 5.0, 3, 0.0),
    ],
)
def test_the_time_of_an_acceptance_is_held_back_and_half_of_what_is_left_is_for_the_search(
    tmp_path: Path, left: float, seconds: float, confirm: int, searching: float
) -> None:
    made = world(tmp_path, (), Terms(agent=RepairAgent()))
    made.journal.close()
    start = made.kernel.state.run
    settings = replace(start.settings, suite=replace(start.settings.suite, confirm=confirm))
    state = replace(made.kernel.state, start=replace(start, settings=settings), run_seconds=seconds)

    assert compute_search_seconds(left, state) == searching


def test_a_run_that_hung_is_expected_to_be_shorter_once_it_is_green() -> None:
    tests = ev.Tests(
        trigger=Trigger.BASELINE, ok=False, passed=1, failed=0, errors=1, total=2, duration_ms=34_000, executions=1,
        output="", tree="",
    )  # fmt: skip
    passed = ev.TestRun(test_id="a", status="pass", outcome=Outcome.PASSED)
    hung = Judged(tests, {"a": passed, "b": ev.TestRun(test_id="b", status="fail", outcome=Outcome.TIMEOUT)})

    assert estimate_run_seconds(hung, Suite(test_timeout_seconds=30.0)) == 4.0
    assert count_acceptance_runs(0) == 1


class Proposals:
    """A repair model that tries ten candidates for each answer, and remembers what it was asked."""

    name = "repair"

    def __init__(self, *passing: int) -> None:
        self.passing, self.asks = list(passing), list[Ask]()

    def worst(self, _ask: Ask) -> Cost:
        """Nothing."""
        return Cost()

    async def complete(self, ask: Ask) -> Answer:
        """The next program, and then that the time has ended."""
        self.asks.append(ask)
        counters: dict[str, object] = {"tried": 10}
        if not self.passing:
            text = f"The time ended after {ask.tried + 10} candidates"
            return Answer(reply=Reply(text, (ToolCall("out_of_time", {"message": text}, "x"),), counters))
        files = {"app.py": program(self.passing.pop(0))}
        return Answer(reply=Reply("", (ToolCall("write_files", {"files": files}, "x"),), counters))


def test_the_count_of_candidates_in_the_last_message_is_that_of_the_whole_run(tmp_path: Path) -> None:
    model = Proposals(12, 14)
    made = world(tmp_path, (), Terms(agent=RepairAgent(), model=model, budget=Budget(attempts=20, seconds=100.0)))
    with made.journal:
        end = anyio.run(made.kernel.run).end

    assert end is not None
    assert end.why.startswith("The time ended after 30 candidates")
    assert [ask.tried for ask in model.asks] == [0, 10, 20]
    assert end.best == Score(14, 0, 3)


def test_the_verification_of_a_proposal_is_not_cut_off_at_the_cap(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms(agent=RepairAgent(), budget=Budget(seconds=100.0)))
    with made.journal:
        left = made.kernel.shell.seconds_left(Call(Request("offline", "repair")), made.kernel.state)
        verification = made.kernel.shell.seconds_left(Verify(Trigger.WRITE), made.kernel.state)

    assert left is not None
    assert left < 100.0
    assert verification is None
