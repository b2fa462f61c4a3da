"""Stories of whole runs, on the real journal and workspace with a fake verifier and a scripted model."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.agents.repair import RepairAgent
from jumar.core.run.effects import Halt, Verify
from jumar.core.run.reducers.transitions import reduce, replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Rule, Score, Ties
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import IllegalEvent, Phase
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.models.script import ScriptLine, ScriptModel
from support.worlds.run_world import TOTAL, Terms, World, program, world


def told(made: World) -> StopReason:
    """Run it; why it stopped. What the journal says is what the kernel believed."""
    with made.journal:
        end = anyio.run(made.kernel.run)

    assert made.replayed() == end
    assert end.end is not None
    return end.end.stop


def test_a_run_goes_from_red_to_green(tmp_path: Path) -> None:
    made = world(tmp_path, (program(11), program(TOTAL)))

    assert told(made) is StopReason.GREEN
    assert made.text == program(TOTAL)
    assert [type(e.event).__name__ for e in made.entries()][-2:] == ["Final", "RunEnd"]


@pytest.mark.parametrize(
    ("wanted", "stop"), [("D", StopReason.GREEN), ("reachable", StopReason.GREEN), ("C", StopReason.UNPROVED)]
)
def test_a_green_below_the_grade_that_was_asked_for_is_unproved(tmp_path: Path, wanted: str, stop: StopReason) -> None:
    made = world(tmp_path, (program(TOTAL),), Terms(min_grade=wanted))

    assert told(made) is stop
    assert made.text == program(TOTAL), "it is shipped all the same"
    end = made.replayed().end
    assert end is not None
    assert ("--min-grade asks for C" in end.why) == (stop is StopReason.UNPROVED)


def test_the_best_of_8_12_10_13_11_is_shipped_byte_for_byte(tmp_path: Path) -> None:
    tried = (8, 12, 10, 13, 11)
    made = world(tmp_path, tuple(program(n) for n in tried), Terms(start=8, budget=Budget(attempts=5)))
    seen: list[tuple[str, str]] = []
    made.kernel.watch = lambda state, _: seen.append((made.text, state.best.tree if state.best else ""))

    assert told(made) is StopReason.ATTEMPTS
    assert made.text == program(13)
    end = made.replayed()
    assert end.best
    assert (end.best.score.passed, end.tree) == (13, end.best.tree)
    assert [e.why for e in made.events(ev.Revert) if isinstance(e, ev.Revert)] == [
        "10 of 17 passed, the best has 12",
        "11 of 17 passed, the best has 13",
    ]


def test_after_each_regression_the_workspace_is_the_best_tree(tmp_path: Path) -> None:
    made = world(tmp_path, tuple(program(n) for n in (12, 10, 13, 11)), Terms(budget=Budget(attempts=4)))
    best = {8: program(8)}

    def watch(_: object, effect: object) -> None:
        if type(effect).__name__ == "Reserve":
            top = max(best)
            assert made.text == best[top]
        if type(effect).__name__ == "Keep":
            best[int(made.text.split()[2])] = made.text

    made.kernel.watch = watch

    assert told(made) is StopReason.ATTEMPTS
    assert max(best) == 13


@pytest.mark.parametrize(("ties", "kept"), [(Ties.KEEP, "newer"), (Ties.REVERT, "older")])
def test_ties(tmp_path: Path, ties: Ties, kept: str) -> None:
    replies = (program(12, "older"), program(12, "newer"))
    made = world(tmp_path, replies, Terms(rule=Rule(ties=ties), budget=Budget(attempts=2)))

    told(made)

    assert made.text == program(12, kept)


def test_a_void_attempt_moves_nothing_and_uses_an_attempt(tmp_path: Path) -> None:
    made = world(tmp_path, (program(99), program(12)), Terms(budget=Budget(attempts=2)))

    assert told(made) is StopReason.ATTEMPTS
    assert made.text == program(12)
    assert [e.why for e in made.events(ev.Revert) if isinstance(e, ev.Revert)] == ["no usable evidence"]


def test_a_broken_harness_ends_infra_with_the_best_tree(tmp_path: Path) -> None:
    made = world(tmp_path, (program(12), program(98), program(17)))

    assert told(made) is StopReason.INFRA
    assert made.text == program(12)


def test_a_broken_baseline_ends_infra(tmp_path: Path) -> None:
    assert told(world(tmp_path, (program(12),), Terms(start=98))) is StopReason.INFRA


def test_an_unparsable_reply_is_billed_and_used_up_its_attempt(tmp_path: Path) -> None:
    made = world(tmp_path, ("def broken(:", program(12)), Terms(budget=Budget(attempts=2)))

    assert told(made) is StopReason.ATTEMPTS
    refused = [e for e in made.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken) and not e.admitted]
    assert "not Python" in refused[0].reason
    assert made.replayed().spend.usd == pytest.approx(0.02)


def test_a_call_that_could_pass_the_cap_is_not_made(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9), program(10), program(11)), Terms(budget=Budget(usd=0.02)))

    assert told(made) is StopReason.BUDGET
    assert len(made.events(ev.ModelCall)) == 2
    assert made.replayed().spend.usd == pytest.approx(0.02)


def test_the_cap_on_seconds_cancels_what_is_in_flight_and_settles_it(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9),) * 100, Terms(budget=Budget(seconds=20, attempts=None)))

    assert told(made) is StopReason.BUDGET
    requests, calls = made.events(ev.ModelRequest), made.events(ev.ModelCall)
    assert len(requests) == len(calls)


def test_an_interrupt_keeps_the_best_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    made = world(tmp_path, (program(12), program(10), program(TOTAL)))
    count = iter(range(100))

    def stop_at_the_third_verification(_: object, effect: object) -> None:
        if isinstance(effect, Verify) and next(count) == 2:
            made.kernel.halt(Halt(StopReason.INTERRUPTED))

    made.kernel.watch = stop_at_the_third_verification

    assert told(made) is StopReason.INTERRUPTED
    assert made.text == program(12)


def test_a_candidate_that_an_interrupt_kept_from_its_verdict_is_judged_when_the_run_goes_on(tmp_path: Path) -> None:
    made = world(tmp_path, (program(12), program(13)), Terms(budget=Budget(attempts=2)))
    made.kernel.watch = lambda _, effect: (
        made.kernel.halt(Halt(StopReason.INTERRUPTED)) if type(effect).__name__ == "Act" else None
    )

    assert told(made) is StopReason.INTERRUPTED
    assert made.text == program(8)

    with Journal.open(tmp_path) as journal:
        again = Kernel(journal, made.kernel.shell, made.kernel.agent, replay(journal.entries))
        again.record((ev.Resume(from_seq=journal.entries[-1].seq),))
        end = anyio.run(again.run)

    assert end.end
    assert (end.end.stop, end.spend.attempts) == (StopReason.ATTEMPTS, 2)
    assert made.text == program(13)
    assert len(made.events(ev.ModelCall)) == 2
    assert made.replayed() == end


def test_a_model_whose_time_ended_ends_the_run_as_a_budget(tmp_path: Path) -> None:
    line = ScriptLine(tool_calls=(ToolCall("out_of_time", {"message": "more seconds may find one"}),))
    made = world(tmp_path, (), Terms(model=ScriptModel((line,)), agent=RepairAgent()))

    assert told(made) is StopReason.BUDGET


def test_a_forged_last_verification_is_not_the_machine_s_fault(tmp_path: Path) -> None:
    made = world(tmp_path, (program(99),), Terms(policy=TestPolicy.ON_FINAL))

    assert told(made) is StopReason.FINAL
    assert made.text == program(8)
    assert len(made.events(ev.Tests)) == 1


def test_what_was_written_into_the_workspace_by_others_is_not_shipped(tmp_path: Path) -> None:
    made = world(tmp_path, (program(TOTAL),))

    def meddle(_: object, effect: object) -> None:
        if type(effect).__name__ == "Keep":
            (tmp_path / "workspace" / "test_app.py").write_text("# nothing\n")
            (tmp_path / "workspace" / "junk.py").write_text("x = 1\n")

    made.kernel.watch = meddle

    assert told(made) is StopReason.GREEN
    assert sorted(p.name for p in (tmp_path / "workspace").iterdir()) == ["app.py", "test_app.py"]
    assert (tmp_path / "workspace" / "test_app.py").read_text() == "# the tests\n"


@pytest.mark.parametrize("passing", [10, TOTAL])
def test_under_on_final_there_is_exactly_one_verification(tmp_path: Path, passing: int) -> None:
    made = world(tmp_path, (program(passing), program(17)), Terms(policy=TestPolicy.ON_FINAL))

    assert told(made) is (StopReason.GREEN if passing == TOTAL else StopReason.FINAL)
    assert len(made.events(ev.Tests)) == len(made.events(ev.Observation)) == 1
    final, shown = made.events(ev.Final)[0], made.events(ev.Observation)[0]
    assert isinstance(final, ev.Final)
    assert isinstance(shown, ev.Observation)
    assert final.test_result == shown.content


def test_under_never_nothing_is_verified(tmp_path: Path) -> None:
    made = world(tmp_path, (program(17),), Terms(policy=TestPolicy.NEVER))

    assert told(made) is StopReason.FINAL
    assert made.text == program(17)
    assert not made.verifier.asked
    final = made.events(ev.Final)[0]
    assert isinstance(final, ev.Final)
    assert final.test_result is None


def test_a_write_outside_ends_the_run(tmp_path: Path) -> None:
    call = ToolCall("write_file", {"path": "../evil.py", "text": "x = 1\n"})
    made = world(tmp_path / "run", (), Terms(model=ScriptModel((ScriptLine(tool_calls=(call,)),))))

    assert told(made) is StopReason.GUARDRAIL
    assert not list(tmp_path.glob("evil.py"))


def test_green_from_the_start_with_nothing_to_do_is_green(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms(start=TOTAL))

    assert told(made) is StopReason.GREEN
    assert not made.events(ev.ModelCall)


def test_green_from_the_start_with_an_instruction_asks_once(tmp_path: Path) -> None:
    made = world(tmp_path, (program(TOTAL, "tidied"),), Terms(start=TOTAL, instruction="tidy up"))

    assert told(made) is StopReason.GREEN
    assert made.text == program(TOTAL, "tidied")


def test_an_illegal_event_changes_nothing(tmp_path: Path) -> None:
    made = world(tmp_path, ())
    before = made.kernel.state

    with pytest.raises(IllegalEvent):
        reduce(before, ev.Entry(1, 1.0, ev.BestFound(tree="x", score=Score(1, 0, 0))))

    assert made.kernel.state is before
    assert before.phase is Phase.OPEN
    made.journal.close()


counts = st.one_of(st.integers(0, TOTAL - 1), st.sampled_from([97, 99]))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(counts, min_size=1, max_size=8), st.sampled_from(Ties))
def test_what_is_shipped_is_never_below_any_prefix(tried: list[int], ties: Ties) -> None:
    # 97 stands for a reply nobody can parse, 99 for a forged verdict; neither may move anything.
    replies = tuple("def broken(:" if n == 97 else program(n, str(k)) for k, n in enumerate(tried))
    with TemporaryDirectory() as folder:
        terms = Terms(start=3, rule=Rule(ties=ties), budget=Budget(attempts=len(tried)))
        made = world(Path(folder), replies, terms)

        told(made)

        usable = [3, *(n for n in tried if n not in (97, 99))]
        assert int(made.text.split()[2]) == max(usable)
        bests = [e.score.passed for e in made.events(ev.BestFound) if isinstance(e, ev.BestFound)]
        assert all(a <= b for a, b in pairwise(bests))
