"""`jumar batch --executor ray` on real clusters of this machine: they change nothing but where the runs run."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import jumar
from jumar.cli.main import call
from jumar.journal.ledger import SqliteLedger
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds.scripted_campaign import ScriptedCampaign, get_outcomes

RAY = Path(__file__).parents[2] / ".venv" / "ray" / "bin" / "python"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not RAY.exists(), reason="no Ray: `make prove` makes an environment with it in .venv/ray"),
]

WAITING = """import os
import time

from gcd import gcd


def test_a():
    until = time.monotonic() + 25
    if gcd(4, 6) and not os.path.exists({go!r}):
        with open({told!r}, "w") as told:
            told.write("x")
    while gcd(4, 6) and not os.path.exists({go!r}) and time.monotonic() < until:
        time.sleep(0.05)
    assert gcd(4, 6) == 2
"""
"""Test of what a model wrote: it tells that it has begun, and waits until it may end."""

ON_RAY = ("--executor", "ray")


class RayCampaign(ScriptedCampaign):
    """A campaign that runs on Ray, with attempts in a folder of its own."""

    told = -1
    """Descriptor of a pipe: each test that waits writes a byte to it."""

    @property
    def environ(self) -> dict[str, str]:
        (self.root / "tmp").mkdir(exist_ok=True)
        return {
            **os.environ,
            "TMPDIR": str(self.root / "tmp"),
            "RAY_TMPDIR": tempfile.gettempdir(),
            "JUMAR_RAY_TEST": str(self.root),
        }

    def begin(self, *words: str, address: str = "local") -> subprocess.Popen[str]:
        return self.start(*words, *ON_RAY, "--ray-address", address, python=str(RAY), environ=self.environ)

    def wait_in_tests(self) -> None:
        """Let the tests of all tasks wait, from now on, until `let_go`."""
        os.mkfifo(self.root / "told")
        text = WAITING.format(go=str(self.root / "go"), told=str(self.root / "told"))
        for task in (self.root / "tasks").iterdir():
            (task / "test_gcd.py").write_text(text)
        self.told = os.open(self.root / "told", os.O_RDWR)

    def wait_for_tests(self, count: int, process: subprocess.Popen[str]) -> None:
        """Wait until *count* tests wait, which is after the first call of the model of their run."""
        for _ in range(count):
            while not select.select([self.told], [], [], 1)[0]:
                assert process.poll() is None
            os.read(self.told, 1)

    def let_go(self) -> None:
        """Let all tests end."""
        (self.root / "go").touch()

    def attempts(self) -> list[Path]:
        """Journals of the runs that are at work on nodes now."""
        return list((self.root / "tmp").glob("jumar-ray-*/*/*/runs/*/events.jsonl"))

    def workers(self) -> list[int]:
        """Processes that work on rollouts of this campaign now."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                ours = f"JUMAR_RAY_TEST={self.root}\0".encode() in (process / "environ").read_bytes()
                if ours and (process / "cmdline").read_bytes().startswith(b"ray::run_rollout"):
                    found.append(int(process.name))
            except OSError:
                continue
        return found


@contextmanager
def cluster(
    campaign: RayCampaign, nodes: int, cores: int, modules: str = "-"
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Both addresses of a cluster, and what removes its last node."""
    words = [str(RAY), str(Path(__file__).parent / "cluster.py"), str(nodes), str(cores), modules]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=campaign.environ, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def remove() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("remove\n")
        process.stdin.flush()
        assert process.stdout.readline() == "removed\n"

    try:
        yield process.stdout.readline().strip(), remove
    finally:
        process.communicate(timeout=60)


def read_pairs(campaign: ScriptedCampaign, name: str) -> list[str]:
    """The preference pairs of a campaign, without where and when they came to be."""
    out = campaign.root / f"{name}.pairs.jsonl"
    assert call(["prefs", str(campaign.root / name / "runs"), "-o", str(out), "--min-grade", "X", "-q"]) == 0
    pairs = [json.loads(line) for line in out.read_text().splitlines()]
    return sorted(json.dumps({key: one[key] for key in ("prompt", "chosen", "rejected")}) for one in pairs)


def test_results_and_pairs_are_those_of_processes_here(tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    campaign = RayCampaign(tmp_path, tasks=3, rollouts=4, writes=2)
    here, _ = campaign.end(campaign.start(*campaign.plan("here")))

    there, stderr = campaign.end(campaign.begin(*campaign.plan("there", "--collect", f"file://{tmp_path}/far")))

    assert get_outcomes(there) == get_outcomes(here), stderr
    assert len(there["runs"]) == 12
    same = ("usd", "test_runs", "by_stop", "solved", "verdicts_cached")
    assert {name: there[name] for name in same} == {name: here[name] for name in same}
    pairs = read_pairs(campaign, "there")
    assert pairs == read_pairs(campaign, "here")
    assert pairs
    stored = {path.name for path in (tmp_path / "far").iterdir()}
    assert stored == {f"{Path(run['events']).parent.name}.tar.gz" for run in there["runs"]}
    assert all(Path(run["events"]).is_file() for run in there["runs"])
    assert campaign.attempts() == []
    figure("ray_same", f"12 rollouts of 3 tasks on a local Ray: the results and {len(pairs)} pairs of local processes")


def test_repair_comes_to_the_same_trees(tmp_path: Path) -> None:
    campaign = RayCampaign(tmp_path, tasks=2, rollouts=2)
    for number in range(2):
        (tmp_path / "tasks" / f"t{number}" / "gcd.py").write_text(
            "def gcd(a, b):\n    return a if b != 0 else gcd(b, a % b)\n"
        )
    words = ["tasks/*", "--rollouts", "2", "--model", "repair", "--sandbox", "S0", "--python", PLAIN_PYTHON]
    here, _ = campaign.end(campaign.start(*words, "--campaign", "here"))

    there, stderr = campaign.end(campaign.begin(*words, "--campaign", "there"))

    assert get_outcomes(there) == get_outcomes(here), stderr
    assert there["solved"] == 2


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    campaign = RayCampaign(tmp_path, tasks=2, rollouts=2, writes=2)
    campaign.wait_in_tests()

    process = campaign.begin(*campaign.plan("there"))
    campaign.wait_for_tests(1, process)
    killed = campaign.workers()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    campaign.let_go()
    there, stderr = campaign.end(process)

    here, _ = campaign.end(campaign.start(*campaign.plan("here")))
    assert stderr.count("its process died") == len(killed)
    assert get_outcomes(there) == get_outcomes(here), stderr
    with SqliteLedger.open(tmp_path / "there" / "ledger.db") as ledger:
        spent, held = ledger.read_total().usd, ledger.read_total().held_micro_usd
    assert (there["usd"], held) == (here["usd"], 0)
    assert spent > there["usd"], "the money of lost attempts stays spent"
    assert campaign.attempts() == []
    figure(
        "ray_killed",
        f"{len(killed)} workers killed at once: same results, ${spent - there['usd']:.2f} of lost attempts",
    )


def test_a_node_that_is_removed_loses_nothing(tmp_path: Path) -> None:
    campaign = RayCampaign(tmp_path, tasks=3, rollouts=2, writes=2)
    campaign.wait_in_tests()

    with cluster(campaign, nodes=2, cores=1) as (address, remove):
        process = campaign.begin(*campaign.plan("there"), address=address.split()[0])
        campaign.wait_for_tests(2, process)  # each node judges one at once
        remove()
        campaign.let_go()
        there, stderr = campaign.end(process)

    here, _ = campaign.end(campaign.start(*campaign.plan("here")))
    assert stderr.count("its process died") >= 1
    assert get_outcomes(there) == get_outcomes(here), stderr


def test_a_client_of_a_cluster_comes_to_the_same_end(tmp_path: Path) -> None:
    campaign = RayCampaign(tmp_path, tasks=1, rollouts=2)
    with cluster(campaign, nodes=1, cores=2) as (address, _):
        there, stderr = campaign.end(campaign.begin(*campaign.plan("there"), address=address.split()[1]))

    here, _ = campaign.end(campaign.start(*campaign.plan("here")))
    assert get_outcomes(there) == get_outcomes(here), stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_is_stopped_in_the_middle_and_goes_on_there_and_here(tmp_path: Path, number: int) -> None:
    campaign = RayCampaign(tmp_path, tasks=2, rollouts=2, writes=2)
    campaign.wait_in_tests()
    process = campaign.begin(*campaign.plan("there"))
    campaign.wait_for_tests(1, process)
    process.send_signal(number)
    told, stderr = campaign.wait(process)
    campaign.let_go()

    if number == signal.SIGINT:
        assert (process.returncode, told["stopped"]) == (130, "stopped by a signal"), stderr
        there, stderr = campaign.end(campaign.begin("--resume", "there"))
    else:
        there, stderr = campaign.end(campaign.start("--resume", "there"))

    here, _ = campaign.end(campaign.start(*campaign.plan("here")))
    assert get_outcomes(there) == get_outcomes(here), stderr
    with SqliteLedger.open(tmp_path / "there" / "ledger.db") as ledger:
        assert ledger.read_total().usd >= there["usd"]


@pytest.mark.parametrize("difference", ["another build of jumar", "has no jumar"])
def test_other_code_on_a_node_is_refused_in_one_sentence(tmp_path: Path, difference: str) -> None:
    campaign, other = RayCampaign(tmp_path, tasks=1, rollouts=1), tmp_path / "other"
    if difference == "has no jumar":
        other.mkdir()
        (other / "sitecustomize.py").write_text("import sys\nsys.path[:] = [p for p in sys.path if 'src' not in p]\n")
    else:
        shutil.copytree(Path(jumar.__file__).parent, other / "jumar", ignore=shutil.ignore_patterns("__pycache__"))
        with (other / "jumar" / "kernel.py").open("a") as file:
            file.write("# another build\n")

    with cluster(campaign, nodes=2, cores=1, modules=str(other)) as (address, _):
        process = campaign.begin(*campaign.plan("c"), address=address.split()[0])
        told, stderr = campaign.wait(process)

    assert process.returncode == 2, stderr
    assert difference in told["error"]
    assert "Traceback" not in stderr


def test_without_ray_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    campaign = RayCampaign(tmp_path, tasks=1, rollouts=1)

    process = campaign.start(*campaign.plan("c"), *ON_RAY, python=sys.executable)
    _, stderr = campaign.wait(process)

    assert process.returncode == 2
    assert "pip install 'jumar[ray]'" in stderr
