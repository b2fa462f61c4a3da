"""Real tasks, a real local model and an external command on one challenge; and that model as a judge."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.cli.main import call
from support.processes.local_llm import missing, serving
from support.processes.node import PACKAGES
from support.worlds.challenge_world import ChallengeWorld
from support.worlds.real_task_scripts import Entry, laid_out, tasks

PYTHON = ("quixbugs-bitcount", "quixbugs-sieve", "exercism-python-acronym", "exercism-python-hamming")
JAVASCRIPT = ("exercism-javascript-binary", "exercism-javascript-pig-latin")

OUTSIDER = """
import shutil, sys
from pathlib import Path
start, solutions = Path("{tasks}"), Path("{solutions}")
here = {{path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}}
for task in start.iterdir():
    known = [path for path in (solutions / task.name).glob("*") if path.is_file()]
    if task.name < "f" and any((task / path.name).exists() and here.get(path.name) == (task / path.name).read_bytes()
                               for path in known):
        for path in known:
            shutil.copy(path, path.name)
"""
"""An agent that knows the answers to the exercises, and to nothing else."""


def write_agents(root: Path, entries: list[Entry], data: Path, server: str) -> None:
    """Write four agents: what each of them can do differs."""
    for task in entries:
        solution = data / "solutions" / task["id"]
        files = [
            (p.relative_to(solution).as_posix(), p.read_text()) for p in sorted(solution.rglob("*")) if p.is_file()
        ]
        content = "\n\n".join(f"{path}\n```\n{text}```" for path, text in files)
        (root / f"{task['id']}.jsonl").write_text(json.dumps({"content": content, "usd": 0.01}) + "\n")
    (root / "outsider.py").write_text(OUTSIDER.format(tasks=data / "tasks", solutions=data / "solutions"))
    (root / "small.toml").write_text("[routes.mid]\nmax_output_tokens = 48\n")
    (root / "rules.md").write_text("Change as little as the tests need.\n")
    away = 'model = "openai:none"\nbase_url = "http://127.0.0.1:9/v1"\nprice = "free"\nallow_unmetered = true'
    local = f'model = "openai:smollm2"\nbase_url = "{server}"\nprice = "free"'
    (root / "agents.toml").write_text(f"""
[[agent]]
name = "repair"
model = "repair"

[[agent]]
name = "pipeline"
agent = "pipeline"
model = "script:{{task}}.jsonl"

[[agent]]
name = "local"
agent = "driver"
{local}
text_actions = true
turns = 4
config = "small.toml"
prompts = ["rules.md"]

[[agent]]
name = "outsider"
command = "{sys.executable} {root / "outsider.py"}"
{away}
""")


@pytest.mark.proof
def test_four_agents_on_six_tasks(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], figure: Any
) -> None:
    if why := missing():
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUMAR_NODE_MODULES", str(PACKAGES))
    entries = [task for language in ("python", "javascript") for task in tasks(data, language)]
    entries = [task for task in entries if task["id"] in (*PYTHON, *JAVASCRIPT)]
    assert len(entries) == len(PYTHON) + len(JAVASCRIPT)
    for task in entries:
        laid_out(data, task, tmp_path / "tasks")
    challenge = 'name = "real"\ntasks = ["tasks/*"]\n[limits]\nseconds = 180\nusd = 1\n'
    (tmp_path / "challenge.toml").write_text(challenge)
    with serving() as local:
        write_agents(tmp_path, entries, data, local.openai)
        code = call(
            ("evolve", "challenge.toml", "--agents", "agents.toml", "--campaign", "c", "--timeout", "60", "--json")
        )
    said = capfd.readouterr()
    assert code == 0, said
    told = json.loads(said.out.splitlines()[-1])
    rank = {each["agent"]: each for each in told["ranking"]}
    assert (told["ranking"][0]["agent"], rank["pipeline"]["tests"]) == ("pipeline", 63)
    assert 0 < rank["outsider"]["tests"] < 63
    assert rank["repair"]["tests"] > 0
    assert rank["local"]["tokens"] > 0

    assert call(("evolve", "--rescore", "c", "--json", "-q")) == 0
    again = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert again == told
    points = ", ".join(f"{each['agent']} {each['composite']:.1f}" for each in told["ranking"])
    figure(
        "evolve_real", f"4 agents on 6 real tasks in 2 languages, {told['ranking'][0]['maximum']:g} points: {points}"
    )


@pytest.mark.proof
def test_a_small_model_is_no_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], figure: Any
) -> None:
    if why := missing():
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)
    world = ChallengeWorld(tmp_path)
    world.challenge(more="[judge]\nrepeat = 1\n")
    with serving() as local:
        world.agents("good")
        judge = f'[judge]\nmodel = "openai:smollm2"\nbase_url = "{local.openai}"\nprice = "free"\n'
        world.write("agents.toml", (tmp_path / "agents.toml").read_text() + judge)
        assert call(world.words()) == 0
    told = json.loads(capfd.readouterr().out.splitlines()[-1])
    judged = told["judged"]

    assert "calibration" in told["judge"]["withheld"]
    assert told["ranking"][0]["principles"] is None
    assert call(("evolve", "--rescore", "c", "--json", "-q")) == 0  # its server is gone
    assert json.loads(capfd.readouterr().out.splitlines()[-1]) == told
    share = judged["cached_tokens"] / judged["prompt_tokens"]
    figure("small_judge", f"withheld at {judged['calibration']:.0%} of the examples, {share:.0%} of its prompts cached")
