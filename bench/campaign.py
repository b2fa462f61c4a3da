"""Measures a campaign that is judged at each write: warm, and as it would be without forks and shared verdicts.

Run as `python bench/campaign.py 30`, or with fewer tasks; it takes long and is no part of `make bench`. Each task has 8
rollouts of 4 writes under `on_write`, and every write is another one, so that what is shared are the verdicts on the
untouched trees alone. The model answers at once: what is measured is jumar and the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from concurrency import PYTHON, TESTS, WRONG
from frame import Figure, interleave, median_of, ratio_of
from model_server import Action, serve

ROLLOUTS, WRITES = 8, 4
COLD = ("--no-verdict-cache",)


def compare(tasks: int) -> Iterator[Figure]:
    """Yield the seconds of both ways on so many *tasks*, and their ratio."""
    texts = count(1)

    def choose(calls: int) -> Action:
        if calls < WRITES:
            return {"name": "write_file", "arguments": {"path": "gcd.py", "text": WRONG.format(-next(texts))}}
        return {"name": "final", "arguments": {"message": "done"}}

    with tempfile.TemporaryDirectory() as name, serve(choose, 0.0) as server:
        folder = Path(name)
        for task in range(tasks):
            (folder / f"task{task}").mkdir()
            (folder / f"task{task}" / "gcd.py").write_text(WRONG.format(0))
            (folder / f"task{task}" / "test_gcd.py").write_text(TESTS)
        places = (folder / f"campaign{n}" for n in count())
        ways = {
            "warm": lambda: run(folder, next(places), server.options, {}),
            "cold": lambda: run(folder, next(places), (*server.options, *COLD), {"JUMAR_NO_WARM": "1"}),
        }
        taken = interleave(ways, 1, warm=0)
    judged = tasks * ROLLOUTS * WRITES
    yield median_of(f"{judged} writes, forks and shared verdicts", taken["warm"], "s")
    yield median_of(f"{judged} writes, all started", taken["cold"], "s")
    yield ratio_of("all started against forks and shared verdicts", taken["cold"], taken["warm"], "more")


def run(folder: Path, campaign: Path, options: list[str] | tuple[str, ...], environ: dict[str, str]) -> float:
    """Run the *campaign* on all tasks of *folder*; its seconds.

    Raises:
        RuntimeError: if not each rollout was judged at each write.
    """
    argv = [
        sys.executable, "-m", "jumar.cli.main", "batch", *map(str, sorted(folder.glob("task*"))), *options,
        "--rollouts", str(ROLLOUTS), "--agent", "driver", "--test-policy", "on_write", "--gate", "off",
        "--confirm", "0", "--python", str(PYTHON if PYTHON.is_file() else sys.executable),
        "--campaign", str(campaign), "-q",
    ]  # fmt: skip
    began = time.perf_counter()
    subprocess.run(argv, check=False, cwd=folder, env={**os.environ, **environ}, capture_output=True)  # noqa: S603  ours
    seconds = time.perf_counter() - began
    runs = [json.loads(file.read_text()) for file in campaign.glob("runs/*/result.json")]
    if [each["test_runs"] for each in runs] != [WRITES] * len(list(folder.glob("task*"))) * ROLLOUTS:
        raise RuntimeError(f"not all was judged: {[each['test_runs'] for each in runs]}")
    return seconds


if __name__ == "__main__":
    for figure in compare(int(sys.argv[1])):
        print(f"{figure.name}: {figure.value:.2f} {figure.unit}")
