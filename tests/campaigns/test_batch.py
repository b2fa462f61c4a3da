"""`jumar batch` with real processes: what is killed or interrupted goes on, and comes to the same results."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jumar.campaigns.campaign import lock_campaign
from jumar.campaigns.plan import load_plan
from jumar.cli.main import call
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust
from support.processes.interpreters import PLAIN_PYTHON

WRONG = "def gcd(a, b):  # {}\n    return 3\n"
RIGHT = "def gcd(a, b):  # {}\n    return a if b == 0 else gcd(b, a % b)\n"
TESTS = (
    "from gcd import gcd\n\n\ndef test_a():\n    assert gcd(4, 6) == 2\n\n\ndef test_b():\n    assert gcd(3, 0) == 3\n"
)


class Place:
    """A folder with tasks, and a script for each rollout: odd ones are wrong, even ones right if *solved*."""

    def __init__(self, root: Path, tasks: int, rollouts: int, writes: int = 1, *, solved: bool = True) -> None:
        self.root, self.rollouts = root, rollouts
        for number in range(tasks):
            folder = root / "tasks" / f"t{number}"
            folder.mkdir(parents=True)
            (folder / "gcd.py").write_text("def gcd(a, b):\n    return 0\n")
            (folder / "test_gcd.py").write_text(TESTS)
        for number in range(1, rollouts + 1):
            texts = [
                (RIGHT if solved and number % 2 == 0 else WRONG).format(f"{number // 4}.{n}") for n in range(writes)
            ]
            lines = [
                {"tool_calls": [{"name": "write_file", "arguments": {"path": "gcd.py", "text": text}}], "usd": 0.01}
                for text in texts
            ]
            (root / f"s{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def plan(self, name: str, *more: str) -> list[str]:
        return [
            "tasks/*", "--rollouts", str(self.rollouts), "--model", "script:s{rollout}.jsonl", "--sandbox", "S0",
            "--confirm", "0", "--python", PLAIN_PYTHON, "--campaign", name, *more,
        ]  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[str]:
        with (self.root / "out.json").open("wb") as stdout:  # a pipe would be full before anybody reads it
            return subprocess.Popen(
                [sys.executable, "-m", "jumar.cli.main", "batch", *words, "--json"],
                cwd=self.root, stdout=stdout, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
        """The object that *process* printed when it had ended, and the rest of its progress."""
        _, stderr = process.communicate(timeout=500)
        return json.loads(((self.root / "out.json").read_text().splitlines() or ["{}"])[-1]), stderr

    def batch(self, *words: str) -> tuple[int, dict[str, Any], str]:
        process = self.start(*words)
        told, stderr = self.end(process)
        assert "runs" in told, stderr
        return process.returncode, told, stderr

    def workers(self, name: str) -> list[int]:
        """The worker processes of the campaign *name*."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"jumar.cli.batch_worker" in words and os.fsencode(self.root / name) in words:
                found.append(int(process.name))
        return found


def results(told: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Of each rollout: why it stopped, what passed, of which tree, and what it cost."""
    names = ("stop", "passed", "tree", "usd", "tokens")
    return {run["rollout"]: tuple(run[name] for name in names) for run in told["runs"]}


def wait_for_end(process: subprocess.Popen[str]) -> bool:
    """Wait until one more rollout has ended; False: the campaign has."""
    assert process.stderr is not None
    return any(line.startswith("[") for line in iter(process.stderr.readline, ""))


@pytest.mark.slow
def test_a_campaign_is_judged_once_for_each_tree_and_goes_on_where_a_worker_died(tmp_path: Path) -> None:
    place = Place(tmp_path, tasks=2, rollouts=3)

    process = place.start(*place.plan("c", "--processes", "2", "--concurrency", "3"))
    wait_for_end(process)
    os.kill(place.workers("c")[0], signal.SIGKILL)
    told, stderr = place.end(process)

    assert (process.returncode, told["by_stop"]) == (0, {"final": 4, "green": 2}), stderr
    assert (told["tasks"], told["solved"], told["usd"], told["test_runs"]) == (2, 2, 0.06, 6)
    trees = {(run["task"], run["tree"]) for run in told["runs"]}
    assert told["executions"] == len(trees) == 4
    assert told["verdicts_cached"] == 2
    assert place.workers("c") == []
    code, again, _ = place.batch("--resume", "c")
    assert (code, results(again), again["executions"]) == (0, results(told), 4), "there is nothing left to do"


@pytest.mark.proof
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_is_stopped_in_the_middle_and_goes_on(tmp_path: Path, number: int) -> None:
    place = Place(tmp_path, tasks=2, rollouts=2)
    process = place.start(*place.plan("c", "--processes", "1", "--concurrency", "2"))
    wait_for_end(process)
    process.send_signal(number)
    told, _ = place.end(process)

    if number == signal.SIGINT:
        assert (process.returncode, told["stopped"]) == (130, "stopped by a signal")
        assert place.workers("c") == []
    code, told, stderr = place.batch("--resume", "c")

    assert (code, told["by_stop"], told["usd"]) == (0, {"final": 2, "green": 2}, 0.04), stderr
    assert place.workers("c") == []


@pytest.mark.slow
def test_the_money_of_all_runs_together_is_capped_and_who_cannot_work_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, tasks=2, rollouts=2)
    (tmp_path / "tasks" / "t0" / "test_gcd.py").write_text("x = 1\n")

    code, told, _ = place.batch(*place.plan("c", "--budget-usd", "0.01", "--concurrency", "1"))

    assert (code, told["usd"]) == (3, 0.01)
    assert {end["rollout"]: end["stop"] for end in told["other"]}["t0-r001"] == "refused"
    assert "no tests found" in told["other"][0]["why"]
    assert told["by_stop"]["budget"] == 1


def test_what_would_change_the_plan_is_refused_and_so_is_a_second_session(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        lock_campaign(tmp_path, print),
        pytest.raises(BadInput, match="another process runs"),
        lock_campaign(tmp_path, print),
    ):
        pass

    for words in (["--resume", "x", "--seed", "3"], ["x", "--resume", "x"], ["--resume", "x", "--budget-usd", "9"]):
        assert call(["batch", *words]) == 2
        assert "goes on with a campaign as it was planned" in capfd.readouterr().err
    (tmp_path / "other").mkdir()
    assert call(["batch", "--resume", str(tmp_path / "other")]) == 2
    assert "there is no campaign" in capfd.readouterr().err
    assert list((tmp_path / "other").iterdir()) == [], "nothing is made there"


@pytest.mark.proof
def test_a_hundred_runs_in_four_processes_killed_twenty_times(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    place, chance = Place(tmp_path, tasks=3, rollouts=34, writes=2), random.Random(7)
    few = ("--processes", "4", "--concurrency", "8")
    _, undisturbed, _ = place.batch(*place.plan("quiet", *few, "--budget-usd", "3"))

    process, kills = place.start(*place.plan("killed", *few, "--budget-usd", "3")), 0
    while kills < 20:
        for _ in range(chance.randint(1, 3)):
            assert wait_for_end(process), "there was time for all kills"
        workers = place.workers("killed")
        if chance.random() < 0.4 or not workers:
            process.kill()
            process.communicate()
            process = place.start("--resume", "killed", *few)
        else:
            os.kill(chance.choice(workers), signal.SIGKILL)
        kills += 1
    told, stderr = place.end(process)

    assert results(told) == results(undisturbed), stderr
    assert (len(told["runs"]), told["usd"]) == (102, undisturbed["usd"])
    assert told["executions"] <= undisturbed["executions"]
    assert place.workers("killed") == []
    figure("campaign_chaos", f"102 runs in 4 processes, {kills} kills, all results as without: ${told['usd']:.2f}")


@pytest.mark.proof
@pytest.mark.parametrize(("policy", "runs"), [("on_write", 960), ("on_final", 240), ("never", 0)])
def test_thirty_tasks_eight_rollouts_four_writes(tmp_path: Path, policy: str, runs: int) -> None:
    place = Place(tmp_path, tasks=30, rollouts=8, writes=4, solved=False)

    _, told, stderr = place.batch(*place.plan("c", "--test-policy", policy))

    assert (told["test_runs"], len(told["runs"])) == (runs, 240), stderr
    if policy == "on_final":
        assert told["executions"] == len({(run["task"], run["tree"]) for run in told["runs"]})


def test_a_folder_of_campaigns_that_a_repository_brings_as_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, tasks=1, rollouts=1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".jumar").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".jumar" / "campaigns").symlink_to(tmp_path / "elsewhere")

    assert call(["batch", "tasks/t0", "--model", "repair"]) == 2
    assert call(["batch", "--resume", "last"]) == 2
    assert capfd.readouterr().err.count("no link is followed there") == 2
    assert list((place.root / "elsewhere").iterdir()) == []


def test_a_plan_names_commands_so_the_worker_believes_only_its_owner(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text("{}")

    with pytest.raises(BadInput, match="did not begin"):
        load_plan(tmp_path, Trust({"XDG_STATE_HOME": str(tmp_path)}))
