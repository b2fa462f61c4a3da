"""Measures how near many rollouts at once come to what the machine allows: `make bench ONLY=concurrency`.

64 rollouts, all at once, of five model calls of 200 ms and three verifications each, through `jumar batch` and a real
server on loopback. The bound is the longer of one rollout's model time and the processor time that a plain `pytest` run
of the same tests needs for all verifications, divided by the cores. It is measured before and after the campaign.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from frame import Figure, median_of
from model_server import Action, serve

LATENCY_SECONDS = 0.2
ROLLOUTS = 64
CALLS, VERIFICATIONS = 5, 3
"""Of each rollout: it looks, writes, looks, writes and ends; the untouched tree and two writes are judged."""

WRONG = "def gcd(a, b):\n    return {}\n"
TESTS = "from gcd import gcd\n\n\n" + "\n\n".join(
    f"def test_{n}():\n    assert gcd({6 * n}, {4 * n}) == {2 * n}\n" for n in range(1, 21)
)
PLAIN_RUNS = 5
PYTHON = Path(__file__).resolve().parent.parent / ".venv" / "bare" / "bin" / "python"


def choose_action(calls: int) -> Action:
    """Return the action of the model that was asked *calls* times before."""
    if calls in (1, 3):
        return {"name": "write_file", "arguments": {"path": "gcd.py", "text": WRONG.format(calls)}}
    if calls == CALLS - 1:
        return {"name": "final", "arguments": {"message": "done"}}
    return {"name": "read_file", "arguments": {"path": "gcd.py"}}


def measure_children(argv: list[str], cwd: Path) -> tuple[float, float]:
    """Return the seconds and the processor seconds of *argv* and all it starts."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=False, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  ours
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_plain(python: str, task: Path) -> list[float]:
    """Return the processor seconds of some plain test runs."""
    argv = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return [measure_children(argv, task)[1] for _ in range(PLAIN_RUNS)]


def measure(_rounds: int) -> Iterator[Figure]:
    """Yield how many times the bound the rollouts took, and what else it came to; one round takes most of a minute."""
    python = str(PYTHON if PYTHON.is_file() else sys.executable)
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name, serve(choose_action, LATENCY_SECONDS) as server:
        task = Path(name) / "task"
        task.mkdir()
        (task / "gcd.py").write_text(WRONG.format(0))
        (task / "test_gcd.py").write_text(TESTS)
        plain = measure_plain(python, task)
        argv = [
            sys.executable, "-m", "jumar.cli.main", "batch", str(task), "--rollouts", str(ROLLOUTS),
            "--concurrency", str(ROLLOUTS), *server.options, "--agent", "driver", "--test-policy", "on_write",
            "--gate", "off", "--confirm", "0", "--no-verdict-cache", "--python", python,
            "--campaign", str(Path(name) / "campaign"), "-q",
        ]  # fmt: skip
        seconds, processor = measure_children(argv, Path(name))
        plain += measure_plain(python, task)
        runs = [json.loads(p.read_text()) for p in (Path(name) / "campaign").glob("runs/*/result.json")]
    done = sum(run["stop"] == "final" and run["test_runs"] + run["baseline_runs"] == VERIFICATIONS for run in runs)
    bound = max(median(plain) * VERIFICATIONS * ROLLOUTS / cores, CALLS * LATENCY_SECONDS)
    yield median_of("rollouts that ended as planned, of 64", [float(done)], "", "more")
    yield median_of("64 rollouts at once", [seconds], "s")
    yield median_of("64 rollouts against the bound", [seconds / bound], "x")
    yield median_of("cores busy meanwhile", [100 * processor / seconds / cores], "%", "more")
    each = processor / (VERIFICATIONS * ROLLOUTS) / median(plain)
    yield median_of("processor time of a verification, in plain test runs", [each], "x")
