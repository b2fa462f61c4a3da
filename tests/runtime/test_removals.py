"""A candidate that passes no more tests and deletes a file of the best tree goes back, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import anyio
import pytest

from jumar.agents.pipeline import Pipeline
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Ratchet, Rule, Ties
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Switches
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Void
from jumar.models.script import ScriptLine, ScriptModel
from support.processes import fake_provider as wire
from support.processes.external_run import Outing
from support.worlds.driver_world import (
    FILES,
    Rules,
    Turns,
    both,
    call,
    ended,
    interrupting,
    resumed,
    swift,
    turns,
    writes,
)
from support.worlds.gate_scenarios import ALL_GREEN
from support.worlds.gate_world import Terms as Gated
from support.worlds.gate_world import claim as claiming
from support.worlds.gate_world import gated, lying
from support.worlds.run_world import Terms, judge, program, world

SUMS = "src/sums.py"
DELETE = call("delete_file", path=SUMS)
MANY = Budget(attempts=None, turns=30)
RULES = [Rule(ratchet=r, ties=t) for r, t in product(Ratchet, Ties)]


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def driven(
    folder: Path, *lines: ScriptLine, rule: Rule | None = None, policy: TestPolicy = TestPolicy.ON_WRITE
) -> Turns:
    """A run of the driver without a gate."""
    return turns(folder, lines, Rules(budget=MANY, rule=rule or Rule(), policy=policy))


def reverts(made: Turns) -> list[str]:
    """Why something went back, each time."""
    return [e.why for e in made.events(ev.Revert) if isinstance(e, ev.Revert)]


@pytest.mark.parametrize("rule", RULES)
def test_a_tie_that_deletes_a_file_goes_back_and_the_model_is_told(tmp_path: Path, rule: Rule) -> None:
    made = driven(tmp_path, DELETE, rule=rule)

    ended(made)

    assert made.text(SUMS) == FILES[SUMS]
    (why,) = reverts(made)
    assert why.startswith(f"it deletes {SUMS}, and no more tests pass than before")
    assert f"taken back: it deletes {SUMS}" in made.last()


@pytest.mark.parametrize("rule", RULES)
def test_a_deletion_in_a_better_candidate_is_kept(tmp_path: Path, rule: Rule) -> None:
    both_at_once = both(call("delete_file", path=SUMS), writes(9))
    made = turns(tmp_path, (both_at_once,), Rules(budget=MANY, rule=rule, policy=TestPolicy.ON_FINAL))

    ended(made)

    assert made.text(SUMS) is None
    assert not reverts(made)


def test_a_move_is_no_deletion_in_two_steps_either(tmp_path: Path) -> None:
    made = driven(tmp_path, call("write_file", path="src/totals.py", text=FILES[SUMS]), DELETE)

    ended(made)

    assert (made.text(SUMS), made.text("src/totals.py")) == (None, FILES[SUMS])
    assert not reverts(made)


def test_a_new_file_with_another_text_is_no_move(tmp_path: Path) -> None:
    made = driven(tmp_path, call("write_file", path="src/totals.py", text="x = 1\n"), DELETE)

    ended(made)

    assert made.text(SUMS) == FILES[SUMS]
    assert len(reverts(made)) == 1


def test_a_file_that_the_run_made_and_the_best_tree_has_is_kept_too(tmp_path: Path) -> None:
    new = call("write_file", path="src/new.py", text="x = 1\n")
    made = driven(tmp_path, new, call("delete_file", path="src/new.py"))

    ended(made)

    assert made.text("src/new.py") == "x = 1\n"
    assert len(reverts(made)) == 1


def test_a_deletion_that_an_interrupt_kept_from_its_verdict_is_judged_when_the_run_goes_on(tmp_path: Path) -> None:
    made = driven(tmp_path, DELETE, call("final", message="done"))
    made.world.kernel.watch = interrupting(made, "Verify", 2)
    ended(made)
    assert made.text(SUMS) == FILES[SUMS]

    resumed(made)

    assert made.text(SUMS) == FILES[SUMS]
    assert any(why.startswith("it deletes") for why in reverts(made))


def test_in_a_second_segment_under_on_final_a_tie_that_deletes_goes_back(tmp_path: Path) -> None:
    lines = (writes(9), call("final", message="a"), DELETE, call("final", message="b"))
    made = driven(tmp_path, *lines, policy=TestPolicy.ON_FINAL)

    ended(made)
    resumed(made)

    assert made.triggers() == ["final", "final"]
    assert made.text(SUMS) == FILES[SUMS]


def without(files: Mapping[str, bytes]) -> Mapping[str, str] | Void:
    """As `judge`; a tree without the program passes as much as the untouched one."""
    return judge({"app.py": b"PASSING = 8", **files})


@pytest.mark.parametrize("rule", RULES)
def test_the_pipeline_s_deletion_goes_back(tmp_path: Path, rule: Rule) -> None:
    line = ScriptLine(tool_calls=(ToolCall("delete_file", {"path": "app.py"}),))
    terms = Terms(rule=rule, model=ScriptModel((line,)), agent=Pipeline(("app.py",)), judge=without)
    made = world(tmp_path, (), terms)

    with made.journal:
        anyio.run(made.kernel.run)

    assert made.text == program(8)
    assert any(isinstance(e, ev.Revert) and "it deletes app.py" in e.why for e in made.events(ev.Revert))


@pytest.mark.slow
def test_an_external_agent_s_deletion_goes_back_and_its_move_stays(tmp_path: Path) -> None:
    script = """
        turn = len(list(pathlib.Path("..").glob("output/agent-*.md")))
        ask("hello")
        sh("rm src/sums.py" if turn == 1 else "mv src/sums.py src/totals.py" if turn == 2 else "true")
    """
    with wire.Server(lambda _: wire.reply("go on")) as server:
        outing = Outing(tmp_path, script, server)
        outing.run()

    assert any(f"it deletes {SUMS}" in why for _, why in outing.reverts())
    assert f"it deletes {SUMS}" in outing.prompt(2)
    assert "src/totals.py" in outing.snapshot()
    assert SUMS not in outing.snapshot()


def test_a_deletion_that_a_red_test_was_claimed_for_is_kept(tmp_path: Path) -> None:
    test = (
        "def test_gone():\n    try:\n        import old\n    except ImportError:\n        return\n    raise KeyError\n"
    )
    files = {"old.py": "x = 1\n", "test_old.py": test}
    made = gated(
        tmp_path,
        (both(claiming("test_old.py::test_gone", "old.py"), call("delete_file", path="old.py")),),
        Gated(files=files),
    )

    ended(made)

    assert "old.py" not in lying(made)
    assert [e.claimed for e in made.events(ev.Write) if isinstance(e, ev.Write)] == [("test_old.py::test_gone",)]


def test_refactor_mode_judges_a_deletion_by_what_stays_green(tmp_path: Path) -> None:
    files = {**ALL_GREEN, "old.py": "x = 1\n"}
    terms = Gated(gate=Gate.REFACTOR, files=files, instruction="tidy up", switches=Switches(model_may_run_tests=True))
    made = gated(tmp_path, (both(call("delete_file", path="old.py"), call("final", message="done")),), terms)

    ended(made)

    assert "old.py" not in lying(made)
