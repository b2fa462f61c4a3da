"""What is exported loads unchanged with `datasets`, and `trl` takes a real training step on it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.worlds.rollout_world import DONE, work, write_passing
from support.worlds.run_world import TOTAL

TRAIN = Path(__file__).parent.parent / "support" / "interop" / "train_examples.py"
PYTHON = Path(sys.prefix) / "trl" / "bin" / "python"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

FILES = (
    ("dpo-patch.jsonl", "dpo", "patch"),
    ("dpo-patch.parquet", "dpo", "patch"),
    ("dpo-file.jsonl", "dpo", "file"),
    ("dpo-trajectory.jsonl", "dpo", "trajectory"),
    ("dpo-trajectory.parquet", "dpo", "trajectory"),
    ("kto.jsonl", "kto", "patch"),
    ("sft.jsonl", "sft", "trajectory"),
)


def read_columns(value: object, key: str = "") -> object:
    """*value* from Parquet as it was written: its arguments of tool calls are JSON strings, its gaps are null."""
    if key == "arguments":
        return json.loads(str(value))
    if isinstance(value, dict):
        return {name: read_columns(each, name) for name, each in value.items() if each is not None}
    return [read_columns(each) for each in value] if isinstance(value, list) else value


@pytest.mark.proof
@pytest.mark.skipif(not PYTHON.exists(), reason="trl is not installed: make prove does it (.venv/trl)")
def test_a_real_trainer_takes_what_we_write(tmp_path: Path) -> None:
    for n in range(2):
        work(tmp_path / "runs" / f"p{n}", (write_passing(TOTAL, str(n)), DONE))
        work(tmp_path / "runs" / f"f{n}", (write_passing(9, str(n)), DONE))
    out = tmp_path / "out"
    out.mkdir()
    for name, form, target in FILES:
        words = ["prefs", str(tmp_path / "runs"), "-o", str(out / name), "--format", form, "--target", target]
        # Only that environment has pyarrow.
        subprocess.run([str(PYTHON), "-m", "jumar.cli.main", *words, "--min-grade", "D", "--quiet"], check=True)

    environ = {**os.environ, **OFFLINE, "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [str(PYTHON), str(TRAIN), str(out)], check=False, capture_output=True, text=True, cwd=tmp_path, env=environ
    )

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {name for name, _, _ in FILES}
    for name, form, target in FILES:
        told, source = found[name], (out / name).with_suffix(".jsonl")
        written = [json.loads(line) for line in source.read_text().splitlines()]
        assert (read_columns(told["rows"]) if name.endswith(".parquet") else told["rows"]) == written, name
        assert ("tools" in told["columns"]) is (target == "trajectory")
        assert (told["steps"], told["moved"]) == (1, 1.0), name
        assert math.isfinite(told["loss"])
        assert told["loss"] > 0, name
        if form == "dpo":
            assert told["loss"] == pytest.approx(math.log(2), abs=1e-3), "before the step it prefers neither"
            assert "rewards/margins" in told["logged"]
