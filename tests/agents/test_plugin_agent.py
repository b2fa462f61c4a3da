"""An agent of another package: found by its entry point, chosen by its name, built from the facts of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = '''
"""Writes one file as a whole, at once, without asking a model twice."""

from jumar.agents.pipeline import Pipeline


class Eager(Pipeline):
    name = "eager"


def plugin(facts):
    assert "app.py" in facts.targets and facts.read("test_app.py") and "test_app.py" in facts.closed
    return Eager(facts.targets, facts.settings, current={"app.py": facts.read("app.py").decode()})
'''


@pytest.mark.slow
def test_another_agent_is_one_file_of_another_package(tmp_path: Path) -> None:
    packages, task = tmp_path / "packages", tmp_path / "task"
    information = packages / "eager_agent-1.0.dist-info"
    information.mkdir(parents=True)
    task.mkdir()
    (packages / "eager_agent.py").write_text(AGENT)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: eager-agent\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[jumar.agents]\neager = eager_agent:plugin\n")
    (task / "app.py").write_text("def f():\n    return 1\n")
    (task / "test_app.py").write_text("from app import f\n\n\ndef test_f():\n    assert f() == 2\n")
    reply = {"content": "app.py\n```python\ndef f():\n    return 2\n```\n"}
    (tmp_path / "script.jsonl").write_text(json.dumps(reply) + "\n")
    environ = {**os.environ, "PYTHONPATH": str(packages)}

    def run(agent: str) -> subprocess.CompletedProcess[str]:
        argv = [str(Path(sys.executable).with_name("jumar")), "run", "task", "--agent", agent, "--json"]
        argv += ["--model", "script:script.jsonl", "--confirm", "0"]
        return subprocess.run(argv, check=False, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = run("eager")
    assert (done.returncode, json.loads(done.stdout)["stop"]) == (0, "green"), done.stderr

    unknown = run("eagre")
    assert unknown.returncode == 2
    assert "did you mean 'eager'" in unknown.stderr
