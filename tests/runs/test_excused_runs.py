"""Runs of suites of which tests are skipped: what was skipped proves nothing, and where all are nothing was tested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.cli.main import call
from jumar.core.gate.excused_tests import ENVIRONMENT
from jumar.core.state import events as ev
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import Judged
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Trigger
from jumar.core.state.verdict import Outcome
from jumar.journal.line_format import JournalEnd
from jumar.runs.session import open_session
from jumar.runs.setup.result import build_result
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from support.worlds.run_world import IDS, Terms, world

NEEDS = (
    'import os\nimport pytest\nfrom m import f\n\nneeds = pytest.mark.skipif("DB_URL" not in os.environ, reason="x")\n'
)
ALL = f"{NEEDS}\n@needs\ndef test_a(): assert f() == 1\n\n@needs\ndef test_b(): assert f() > 0\n"
SOME = f"{NEEDS}\n@needs\ndef test_a(): assert f() == 7\n\ndef test_b(): assert f() == 3\n"
UNTESTED = f"all 2 tests are skipped, so nothing was tested; {ENVIRONMENT}"


def lay(root: Path, tests: str, code: str = "def f(): return 2\n", task: str = "") -> Path:
    root.mkdir(parents=True)
    (root / "m.py").write_text(code)
    (root / "test_m.py").write_text(tests)
    if task:
        (root / "task.toml").write_text(task)
    return root


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = call([*map(str, words), "--sandbox", "S0", "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--gate", "off"), ("--test-policy", "on_final", "--confirm", "2")])
def test_a_run_whose_tests_are_all_skipped_is_untested_and_asks_no_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    root, script = lay(tmp_path / "task", ALL), tmp_path / "script.jsonl"
    write = {"name": "write_file", "arguments": {"path": "m.py", "text": "def f(): return 3\n"}}
    script.write_text(json.dumps({"tool_calls": [write], "usd": 1.0}))
    asked = ("-i", "f is wrong", "--model", f"script:{script}", *options)

    code, result = told(capsys, "run", root, *asked, "--runs", tmp_path / "runs")

    assert (code, result["stop"], result["why"]) == (1, "untested", f"{UNTESTED}.")
    assert (result["excused"], result["usd"], result["grade"]) == ({"skipped": 2}, 0.0, "")
    call(["log", "show", str(Path(result["events"]).parent)])
    assert "model_request" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_score_of_a_suite_that_is_skipped_is_not_green_and_one_with_the_variable_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = lay(tmp_path / "task", ALL, "def f(): return 1\n")

    code, scored = told(capsys, "score", root, root)
    assert (code, scored["ok"], scored["untested"], scored["grade"]) == (1, False, UNTESTED, "")
    assert call(["score", str(root), str(root), "--sandbox", "S0"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["untested  0 of 2 passed, 2 skipped, 0 failed, 0 errors", UNTESTED]

    (root / "task.toml").write_text('[task]\nenv = {DB_URL = "here"}\n')
    code, scored = told(capsys, "score", root, root, "--confirm", 3)
    assert (code, scored["untested"], scored["excused"], sum(scored["grades"].values())) == (0, "", {}, 2)


@pytest.mark.slow
def test_a_skipped_test_has_no_grade_and_a_note_says_how_many_were_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, runs = lay(tmp_path / "task", SOME), tmp_path / "runs"

    code, result = told(capsys, "run", root, "--model", "repair", "--confirm", 3, "--runs", runs)

    assert (code, result["stop"], result["passed"], result["total"]) == (0, "green", 2, 2)
    assert (result["excused"], sum(result["grades"].values())) == ({"skipped": 1}, 1)
    assert result["notes"][-1] == f"1 of 2 tests is skipped, so nothing was tested by it; {ENVIRONMENT}"
    again = lay(tmp_path / "again", SOME, "def f(): return 3\n")
    assert call(["run", str(again), "--model", "repair", "--runs", str(runs), "--sandbox", "S0"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("green  1 of 2 passed, 1 skipped  ")
    assert f"note: {result['notes'][-1]}" in said


PASSED_OVER = (
    "test_m.py skips all of its tests, which judge nothing: could not import 'no_such_module': No module named"
)


@pytest.mark.slow
def test_a_file_that_skips_all_of_its_tests_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = "import pytest\npytest.importorskip('no_such_module')\nfrom m import f\ndef test_a(): assert f() == 3\n"
    root, alone = lay(tmp_path / "task", gone), lay(tmp_path / "alone", gone)
    (root / "test_n.py").write_text("from m import f\ndef test_n(): assert f() == 3\n")

    code, result = told(capsys, "run", root, "--model", "repair", "--confirm", 1, "--runs", tmp_path / "runs")
    (root / "m.py").write_text("def f(): return 3\n")
    _, scored = told(capsys, "score", root, root, "--confirm", 0)

    assert (code, result["stop"], result["total"]) == (0, "green", 1)
    assert any(note.startswith(PASSED_OVER) for note in result["notes"])
    assert any(line.startswith(PASSED_OVER) for line in scored["warnings"])
    assert call(["score", str(alone), str(alone), "--sandbox", "S0"]) == 2
    assert PASSED_OVER in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_what_is_set_up_and_not_run_has_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    root = lay(tmp_path / "task", "def test_a(): assert 0\n")
    (root / "pytest.ini").write_text(f"[pytest]\naddopts = {option}\n")

    code, scored = told(capsys, "score", root, root, "--confirm", 1)

    assert (code, scored["ok"], scored["passed"]) == (1, False, 0)
    assert "set up and not run" in scored["reasons"]["test_m.py::test_a"]


@pytest.mark.slow
def test_a_campaign_does_not_count_a_task_without_a_test_that_ran_as_solved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = '[files]\neditable = ["m.py"]\n[tests]\nselect = ["test_m.py"]\n'
    lay(tmp_path / "tasks" / "one", ALL, task=task)

    code, summary = told(capsys, "batch", tmp_path / "tasks", "--model", "repair", "--campaign", tmp_path / "night")

    assert (code, summary["solved"], summary["by_stop"]) == (1, 0, {"untested": 1})


@pytest.mark.slow
def test_a_host_may_write_a_test_that_is_not_skipped_before_it_says_that_it_is_done(tmp_path: Path) -> None:
    root = lay(tmp_path / "task", ALL)
    task = apply_options(load_task(root), Options(agent="host", model="host", sandbox="S0", instruction="f is 3"))
    test = {"path": "test_new.py", "text": "from m import f\n\n\ndef test_c():\n    assert f() == 3\n"}
    right = {"path": "m.py", "text": "def f(): return 3\n"}

    async def visit(*actions: tuple[str, Mapping[str, str]]) -> StopReason | None:
        async with open_session(task, tmp_path / "runs", environ={}) as session:
            for name, arguments in (*actions, ("final", {"message": "done"})):
                done = await session.act(ToolCall(name, dict(arguments)))
                assert done.admitted, done.reason
            return done.stop

    claim = {"test_id": "test_new.py::test_c", "edit_target": "m.py"}
    steps: tuple[tuple[str, Mapping[str, str]], ...] = (
        ("write_file", test),
        ("run_tests", {}),
        ("edit_claim", claim),
        ("write_file", right),
    )

    assert anyio.run(visit) is StopReason.UNTESTED
    assert anyio.run(visit, *steps) is StopReason.GREEN


def test_a_journal_of_before_that_counts_skips_as_passed_replays_to_the_same_result(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms(judge=lambda _: dict.fromkeys(IDS, "skipped")))
    anyio.run(made.kernel.run)
    now = build_result(made.replayed(), made.folder, JournalEnd())
    assert (now.stop, now.standing) == (StopReason.UNTESTED, "0 of 17 passed, 17 skipped")

    run = ev.TestRun(test_id="t", status="pass", outcome=Outcome.SKIPPED)
    counts: dict[str, Any] = {"ok": True, "passed": 1, "failed": 0, "errors": 0, "total": 1, "grade": "A"}
    old = ev.Tests(trigger=Trigger.BASELINE, **counts)
    assert Judged(old, {"t": run}).grades == {"t": "A"}
    new = ev.Tests(trigger=Trigger.BASELINE, excused={"skipped": 1}, **counts)
    assert Judged(new, {"t": run}).grades == {}
