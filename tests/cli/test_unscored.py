"""Unscored is not zero: where no test has judged a run, its counts are null and it says "not run"."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from cli.test_cli import GOOD, lay
from jumar.cli import demo
from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.main import call
from jumar.core.run.effects import Halt
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.importing.demo import DemoBug
from jumar.importing.recipes import PreparedRecipe, load_shipped
from jumar.journal.line_format import JournalEnd
from jumar.runs.setup.result import Result, build_result
from support.worlds.run_world import Terms, World, program, world

NULLS = {"passed": None, "failed": None, "errors": None, "best": None}


def finished(made: World) -> Result:
    anyio.run(made.kernel.run)
    made.journal.close()
    return build_result(made.replayed(), made.folder, JournalEnd())


def counts(result: Result) -> dict[str, object]:
    """What `--json` and `result.json` say of the tests."""
    plain = json.loads(msgspec.json.encode(result))
    return {name: plain[name] for name in NULLS}


def test_under_never_the_counts_are_null_and_an_agent_that_ended_by_itself_exits_0(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9),), Terms(policy=TestPolicy.NEVER))
    result = finished(made)

    assert (result.stop, result.exit) == (StopReason.FINAL, 0)
    assert counts(result) == NULLS
    assert result.total == 17
    assert result.standing == "tests not run"
    assert made.verifier.asked == []
    (end,) = made.events(ev.RunEnd)
    assert isinstance(end, ev.RunEnd)
    assert end.best is None


@pytest.mark.parametrize("policy", [TestPolicy.ON_WRITE, TestPolicy.ON_FINAL])
def test_final_exits_1_where_tests_have_judged_and_a_real_0_stays_0(tmp_path: Path, policy: TestPolicy) -> None:
    result = finished(world(tmp_path, (program(0),), Terms(policy=policy, start=0)))

    assert (result.stop, result.exit) == (StopReason.FINAL, 1)
    assert counts(result) == {"passed": 0, "failed": 17, "errors": 0, "best": {"passed": 0, "total": 17}}
    assert result.standing == "0 of 17 passed"


def test_final_exits_1_where_the_only_verdict_is_void_and_says_why(tmp_path: Path) -> None:
    result = finished(world(tmp_path, (program(99),), Terms(policy=TestPolicy.ON_FINAL)))

    assert (result.stop, result.exit) == (StopReason.FINAL, 1)
    assert counts(result) == NULLS
    assert result.standing == "no usable verdict"
    assert result.why.endswith("; no verdict on what it wrote: forged")


def test_before_any_verdict_the_counts_are_null_and_the_exit_code_is_that_of_the_stop(tmp_path: Path) -> None:
    made = world(tmp_path, (program(9),))
    made.kernel.halt(Halt(StopReason.INTERRUPTED, "stopped by a signal"))
    result = finished(made)

    assert (result.stop, result.exit, result.standing) == (StopReason.INTERRUPTED, 130, "tests not run")
    assert counts(result) == NULLS


def test_a_cap_is_no_end_of_the_agent_s_own_under_never_either(tmp_path: Path) -> None:
    terms = Terms(policy=TestPolicy.NEVER, budget=Budget(seconds=0.5))
    result = finished(world(tmp_path, (program(9),), terms))

    assert (result.stop, result.exit) == (StopReason.BUDGET, 3)
    assert counts(result) == NULLS


def test_a_stored_result_with_nulls_is_read_again(tmp_path: Path) -> None:
    result = finished(world(tmp_path, (program(9),), Terms(policy=TestPolicy.NEVER)))

    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result


def test_the_demo_shows_a_run_that_no_test_has_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = world(tmp_path, (program(9),))
    made.kernel.halt(Halt(StopReason.INTERRUPTED, "stopped by a signal"))
    recipe = load_shipped().planted[0]
    shown = DemoBug(PreparedRecipe(recipe, None, ""), finished(made), "", 0)

    demo._show(Console(), shown)  # noqa: SLF001  the one place that prints it; the rest of the command needs a registry

    assert "interrupted  tests not run" in capsys.readouterr().out


@pytest.mark.slow
def test_the_console_says_not_run_and_the_json_says_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = lay(tmp_path / "app", GOOD)
    (tmp_path / "s.jsonl").write_text(json.dumps({"content": "def f():\n    return 3\n"}))
    never = ["run", str(root), "--agent", "pipeline", "--model", f"script:{tmp_path / 's.jsonl'}"]
    never += ["--test-policy", "never", "--runs", str(tmp_path / "runs"), "--sandbox", "S0"]

    assert call(never) == 0
    said = capsys.readouterr()
    assert "final  tests not run  " in said.out
    assert "0 of" not in said.out + said.err
    assert "grade" not in said.out
    assert call([*never, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: plain[name] for name in NULLS} == NULLS
    assert json.loads((Path(plain["events"]).parent / "result.json").read_text()) == plain


def test_the_progress_of_a_run_that_no_test_has_judged_counts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = world(tmp_path, (program(9),), Terms(policy=TestPolicy.NEVER))
    with ProgressDisplay(Console()) as live:
        made.kernel.watch = live.watch
        finished(made)

    assert "passed" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_score_without_usable_evidence_has_no_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = "import app, pathlib, sys\nif app.SAYS:\n    pathlib.Path(sys.argv[1]).write_text(app.SAYS)\n"
    report = '<testsuite><testcase classname="a" name="b"/></testsuite>'
    table = f'command = "{sys.executable} write.py {{report}}"\nreport = "out.xml"\n'
    task = lay(
        tmp_path / "task",
        {
            "app.py": f"SAYS = {report!r}\n",
            "write.py": write,
            "task.toml": f'[files]\neditable = ["app.py"]\n[tests]\n{table}',
        },
    )
    bad = lay(tmp_path / "bad", {"app.py": "SAYS = ''\n", "write.py": write})

    assert call(("score", str(task), str(bad), "--sandbox", "S0", "--confirm", "0", "--json")) == 5
    scored = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [scored[name] for name in ("passed", "failed", "errors", "total")] == [None, None, None, 1]
    assert call(("score", str(task), str(bad), "--sandbox", "S0", "--confirm", "0")) == 5
    assert "passed" not in capsys.readouterr().out
