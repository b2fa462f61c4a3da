"""Real tasks in four languages go from red to green under the strict gate, from an ordinary checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jumar.cli.main import jumar
from jumar.runs.setup.assembly import load_runner
from support.processes.node import PACKAGES
from support.worlds.real_task_scripts import Entry, laid_out, script_for, tasks

RUNNERS = {"javascript": "vitest", "go": "go", "rust": "cargo", "python": "pytest"}
FEW = {"javascript": 1, "go": 1, "rust": 1, "python": 1}
"""Tasks of each language that are a sample."""


def run(folder: Path, script: Path, runs: Path) -> dict[str, Any]:
    """What `jumar run` says of the task in *folder*, driven by *script*."""
    environ = {"JUMAR_NODE_MODULES": str(PACKAGES), "PATH": os.environ["PATH"]}
    argv = ["run", str(folder), "--agent", "driver", "--model", f"script:{script}", "--runs", str(runs), "--json", "-q"]
    done = CliRunner().invoke(jumar, argv, env=environ, standalone_mode=False)
    assert done.exception is None, done.exception
    found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return found


def red_to_green(data: Path, task: Entry, into: Path) -> None:
    """Claim what the baseline shows as red, write the solution, and see the run end green in one verification."""
    runner = load_runner(RUNNERS[task["language"]])
    if missing := runner.surroundings(into, {**os.environ, "JUMAR_NODE_MODULES": str(PACKAGES)}).missing:
        pytest.skip(missing)
    folder, script = laid_out(data, task, into), into / "script.jsonl"
    script.write_text(json.dumps({"tool_calls": [{"name": "final", "arguments": {}}]}))
    first = run(folder, script, into / "runs")
    begun = json.loads(Path(first["events"]).read_text("utf-8").splitlines()[0])
    own = {**task, "F2P": begun["expected"]}
    assert first["stop"] == "final"
    assert first["best"]["passed"] < first["best"]["total"], "it is red at the start"

    solution = data / "solutions" / task["id"]
    unclaimed = [line.replace("edit_claim", "read_file") for line in script_for(own, solution).splitlines()]
    script.write_text("\n".join(unclaimed))
    assert run(folder, script, into / "runs")["best"]["passed"] == first["best"]["passed"], "no edit without a claim"

    script.write_text(script_for(own, solution))
    done = run(folder, script, into / "runs")
    assert (done["stop"], done["exit"], done["best"]["passed"]) == ("green", 0, len(begun["expected"]))
    kinds = [json.loads(line)["type"] for line in Path(done["events"]).read_text("utf-8").splitlines()]
    assert "repair" not in kinds
    assert done["executions"] == 2, "the baseline, and one for all claims"


@pytest.mark.slow
@pytest.mark.parametrize("language", RUNNERS)
def test_a_sample_of_each_language(data: Path, tmp_path: Path, language: str) -> None:
    for number, task in enumerate(tasks(data, language)):
        if number < FEW[language]:
            red_to_green(data, task, tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("language", ["javascript", "go", "rust"])
def test_every_task_that_is_no_python(data: Path, tmp_path: Path, language: str, figure: Any) -> None:
    done = []
    for task in tasks(data, language):
        place = tmp_path / str(task["id"])
        place.mkdir()
        red_to_green(data, task, place)
        done.append(task["id"])
    assert done
    figure(f"red_to_green_{language}", f"{len(done)} of {len(done)} real tasks went from red to green under strict")
