"""What we export is read by the packages whose formats it is in: harbor, atif, swebench, OpenTelemetry, junitparser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.core.state.test_policy import TestPolicy
from support.interop.harbor_tasks import TASK_TOML
from support.worlds.run_world import TOTAL
from support.worlds.stored_runs import CRASH, USUAL, work, write

CHECKER = Path(__file__).parent.parent / "support" / "interop" / "check_exports.py"
PYTHON = Path(sys.prefix) / "interop" / "bin" / "python"


@pytest.mark.proof
@pytest.mark.skipif(not PYTHON.exists(), reason="the validators are not installed: make prove does it (.venv/interop)")
def test_the_packages_of_the_formats_take_what_we_write(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    out.mkdir()
    work(runs / "pass", write(9), write(TOTAL), terms=replace(USUAL, policy=TestPolicy.ON_WRITE))
    work(runs / "crash", CRASH, CRASH, CRASH, CRASH, CRASH, CRASH)
    (out / "task.toml").write_text(TASK_TOML)
    files = {"atif": "trajectory.json", "predictions": "predictions.jsonl", "otel": "spans.json", "junit": "report.xml"}
    for form, name in files.items():
        place = runs / "pass" if form == "atif" else runs
        assert call(["export", str(place), "-o", str(out / name), "--format", form, "-q"]) == 0

    done = subprocess.run([str(PYTHON), str(CHECKER), str(out)], check=False, capture_output=True, text=True, cwd=out)

    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["atif"]["valid"], found["atif"]["errors"]
    assert found["atif"]["refuses_a_wrong_one"]
    assert found["atif"]["steps"] > 3
    (prediction,) = found["predictions"]
    assert set(prediction) == {"instance_id", "model_name_or_path", "model_patch"}
    assert (found["spans"]["unknown"], found["spans"]["ids"]) == ([], [[16, 8]])
    assert found["spans"]["spans"] > 8
    assert found["junit"] == {"tests": 2, "results": ["Error"]}
    assert found["harbor_task"] == "example/adder"
