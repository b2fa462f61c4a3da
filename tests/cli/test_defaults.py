"""What holds where nobody chose: the driver under the strict gate on every way in, and a cap on what costs money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import GOOD, Called, Files, jumar, lay
from jumar.cli.run import UNGATED
from jumar.core.state.budget import PROFILES
from jumar.core.state.test_policy import Gate
from jumar.models.wire.providers import PROVIDERS
from jumar.runs.setup.choose_model import prepare_model
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task

__all__ = ["jumar"]

MANY: Files = {**GOOD, **{f"m{n}.py": "x = 1\n" for n in range(30)}}
KEY = {"ANTHROPIC_API_KEY": "sk-none"}
PAID = "anthropic:claude-haiku-5-5"
LOCAL = "http://127.0.0.1:9/v1"
OUTSIDE: dict[str, Any] = {"agent": "external", "agent_command": "sh"}


@pytest.fixture(autouse=True)
def _keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is set."""
    for variable in {v for p in PROVIDERS for v in p.keys}:
        monkeypatch.delenv(variable, raising=False)


def settled(folder: Path, tables: str = "", beside: str = "", files: Files = GOOD, **chosen: Any) -> Task:
    """A task with *tables* in its file and *beside* in the person's, and what was *chosen*."""
    root = lay(folder / "in" / "task", {**files, "task.toml": tables})
    (root.parent / "jumar.toml").write_text(beside)
    return apply_options(load_task(root), Options(**chosen), KEY)


@pytest.mark.parametrize("files", [GOOD, MANY], ids=["a small repository", "a large one"])
@pytest.mark.parametrize("model", [None, PAID, "script:s.jsonl", "replay:r.jsonl", "ollama:x"])
def test_the_default_agent_is_the_driver_under_strict_on_every_way_in(
    tmp_path: Path, files: Files, model: str | None
) -> None:
    task = settled(tmp_path, files=files, model=model)

    assert (task.agent, task.gate) == ("driver", Gate.STRICT)


@pytest.mark.parametrize("policy", ["on_final", "never"])
def test_without_results_during_the_run_there_is_no_gate(tmp_path: Path, policy: str) -> None:
    task = settled(tmp_path, model=PAID, test_policy=policy)

    assert (task.agent, task.gate) == ("driver", Gate.OFF)


@pytest.mark.parametrize("way", ["flag", "file"])
def test_the_pipeline_is_for_who_names_it(tmp_path: Path, way: str) -> None:
    tables = "" if way == "flag" else "[run]\nagent = 'pipeline'\n"
    chosen: dict[str, Any] = {"agent": "pipeline"} if way == "flag" else {}
    task = settled(tmp_path, tables, model=PAID, **chosen)

    assert (task.agent, task.gate) == ("pipeline", Gate.OFF)


WRITES: dict[str, Any] = {
    "tool_calls": [{"name": "write_file", "arguments": {"path": "app.py", "text": "def f():\n    return 2\n"}}]
}
CLAIM = {"name": "edit_claim", "arguments": {"test_id": "test_app.py::test_f", "edit_target": "app.py"}}
CLAIMS = {"tool_calls": [CLAIM, *WRITES["tool_calls"]]}


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "line", "gate"), [("driver", CLAIMS, "strict"), ("pipeline", WRITES, "off")])
def test_whatever_ran_without_the_gate_says_so_in_its_report(
    jumar: Called, tmp_path: Path, agent: str, line: Any, gate: str
) -> None:
    lay(tmp_path / "task", {**GOOD, "task.toml": "[run]\nagent = 'pipeline'\n" if agent == "pipeline" else ""})
    lay(tmp_path, {"s.jsonl": json.dumps(line)})

    out = jumar("run", "task", "--model", "script:s.jsonl", "-q")[1]
    run = next(Path(text.split()[-1]).parent for text in out.splitlines() if text.startswith("journal"))
    result = json.loads((run / "result.json").read_text())

    assert (result["stop"], result["gate"]) == ("green", gate)
    assert (UNGATED in out) == (gate == "off")
    assert json.loads(jumar("log", "stats", str(run), "--json")[1])["gate"] == gate


WORKDAY = (PROFILES["workday"].usd, PROFILES["workday"].seconds)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"model": PAID},
        {"model": PAID, "agent": "pipeline"},
        {"model": "openai:nobody-knows-it"},
        {"model": "openai:x", "price": "1,2"},
        {"model": "openai:x", "price": "0,0.01"},
        {"model": PAID, **OUTSIDE},
        {"model": "openai:x", "price": "free", **OUTSIDE, "allow_unmetered": True},
    ],
    ids=str,
)
def test_a_model_that_costs_money_runs_under_workday_where_no_cap_is_named_and_says_so_in_one_line(
    tmp_path: Path, chosen: dict[str, Any]
) -> None:
    task = settled(tmp_path, **chosen)

    assert (task.budget.usd, task.budget.seconds) == WORKDAY
    (said,) = (note for note in task.notes if "workday" in note)
    assert "10 usd and 8 hours; --budget-usd" in said
    assert "\n" not in said


def test_seconds_that_the_person_set_are_not_called_the_workday_s(tmp_path: Path) -> None:
    (said,) = (note for note in settled(tmp_path, model=PAID, seconds=1.0).notes if "workday" in note)
    assert "caps this run at 10 usd; --budget-usd" in said


@pytest.mark.parametrize(
    "chosen",
    [
        {"model": "openai:x", "price": "free"},
        {"model": "openai:x", "base_url": LOCAL},
        {"model": "ollama:x"},
        {"model": "script:s.jsonl"},
        {"model": "replay:r.jsonl"},
        {"agent": "host", "model": "host"},
        {"model": "openai:x", "price": "free", **OUTSIDE},
    ],
    ids=str,
)
def test_what_is_free_is_not_capped(tmp_path: Path, chosen: dict[str, Any]) -> None:
    task = settled(tmp_path, **chosen)

    assert (task.budget.usd, task.budget.seconds) == (None, None)
    assert task.notes == ()


@pytest.mark.parametrize(
    ("tables", "beside", "chosen", "caps"),
    [
        ("", "", {"usd": 25.0}, (25.0, None)),
        ("", "", {"usd": 25.0, "seconds": 60}, (25.0, 60)),
        ("", "", {"seconds": 60}, (10.0, 60)),
        ("", "", {"seconds": 90_000}, (10.0, 90_000)),
        ("", "run.usd = 25\n", {}, (25.0, None)),
        ("", "run.seconds = 90000\n", {}, (10.0, 90_000)),
        ("run.seconds = 90000\n", "", {}, WORKDAY),
        ("budget.usd = 0.5\n", "", {}, (0.5, None)),
        ("budget.usd = 100\n", "", {}, (10.0, None)),
        ("budget.usd = 100\n", "budget.usd = 50\n", {}, (50.0, None)),
        ("budget.usd = 100\n", "", {"usd": 200}, (200.0, None)),
        ("budget.usd = 100\n", "", {"profile": "overnight"}, (30.0, 12 * 3600)),
        ("", "", {"ledger": "l.db", "ledger_usd": 3}, (None, None)),
    ],
)
def test_a_cap_that_somebody_named_stands_and_a_task_s_is_never_above_the_profile_s(
    tmp_path: Path, tables: str, beside: str, chosen: dict[str, Any], caps: tuple[float | None, float | None]
) -> None:
    task = settled(tmp_path, tables, beside, model=PAID, **chosen)

    assert (task.budget.usd, task.budget.seconds) == caps


@pytest.mark.parametrize(("chosen", "seconds"), [({}, WORKDAY[1]), ({"seconds": 60}, 60)])
def test_what_nobody_meters_has_a_cap_on_time(tmp_path: Path, chosen: dict[str, Any], seconds: float) -> None:
    task = settled(tmp_path, model=PAID, usd=5, **OUTSIDE, allow_unmetered=True, **chosen)

    assert (task.budget.usd, task.budget.seconds) == (5, seconds)


@pytest.mark.parametrize(("line", "agent", "noted"), [
    ({"content": "x = 1"}, "driver", True), ({"content": "x = 1"}, "pipeline", False), (WRITES, "driver", False),
])  # fmt: skip
def test_a_script_that_the_driver_cannot_read_is_named(tmp_path: Path, line: Any, agent: str, *, noted: bool) -> None:
    script = lay(tmp_path, {"s.jsonl": json.dumps(line)}) / "s.jsonl"
    task = prepare_model(settled(tmp_path, model=f"script:{script}", agent=agent), {}).task

    assert any("--agent pipeline reads content" in note for note in task.notes) is noted


@pytest.mark.slow
def test_a_note_is_a_line_of_the_run_and_part_of_its_result(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", {**GOOD, "task.toml": "[run]\nsandbox = 'S0'\nusd = 9\n"})
    lay(tmp_path, {"s.jsonl": json.dumps(CLAIMS)})
    note = f"usd is 5 (--budget-usd), not 9 of {tmp_path}/task/task.toml"

    _, out, err = jumar("run", "task", "--model", "script:s.jsonl", "--budget-usd", "5", "--json")

    assert err.count(f"note: {note}\n") == 1
    result = json.loads(out.splitlines()[-1])
    assert (result["notes"], result["gate"]) == ([note], "strict")
    assert "note: sandbox" not in err, "the environment of these tests names it"
