"""Measures what the ratchet is worth: `bench/ratchet.py --data DIR` works on simulated tasks with and without it.

A task is a real module with planted bugs and its own tests. A model of ours, behind a real server on loopback, answers
every request with the whole module: one or two bugs less, and with a chance (`--breaks`) one or two new ones. Two
campaigns of `jumar batch` have every attempt judged by the module's own tests. In the first the model goes on from
what the prompt shows, the best tree, and the run ships that. In the second it goes on from its own last answer, as a
loop without a ratchet would, and what such a loop ships is the tree of the last attempt in the same journal.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import tomli_w

from jumar.core.state import events as ev
from jumar.core.state.test_policy import Trigger
from jumar.journal.writer import read_journal

RATCHET, LAST = "ratchet", "last"
"""Names of the two campaigns: the model goes on from the best tree, or from its last answer."""

PYTHON = Path(__file__).resolve().parent.parent / ".venv" / "bare" / "bin" / "python"
"""An interpreter with pytest and no plug-in, which starts faster than ours."""

ATTEMPTS = 5
"""The first is the tree that the run begins with."""


class Trajectory(NamedTuple):
    """Tests passed by each attempt of one run, and by the tree that it shipped."""

    passed: tuple[int, ...]
    shipped: int
    total: int

    @property
    def second(self) -> int:
        """Tests passed by the second attempt; by the first one where there was no other."""
        return self.passed[min(1, len(self.passed) - 1)]


class BreakingModel:
    """Model that repairs planted bugs and plants others; *sim* is the simulator of the data."""

    def __init__(self, sim: Any, chance: float) -> None:
        self._sim, self._chance = sim, chance
        self._states: dict[tuple[str, int], dict[str, frozenset[str]]] = defaultdict(dict)
        """Campaign and task -> every text of its module so far, in order, with the bugs in it."""
        self._lock = threading.Lock()

    def answer(self, campaign: str, prompt: str) -> str:
        """Return the whole module after the next attempt."""
        sim, seed = self._sim, int(re.findall(r"simulated task (\d+)", prompt)[0])
        module, first = sim.start(seed)
        with self._lock:
            known = self._states[campaign, seed]
            known.setdefault(sim.source(module, first), first)
            seen = [text for text in known if text.strip() in prompt] if campaign == RATCHET else list(known)
            if not seen:
                raise ValueError(f"the prompt of task {seed} shows no text of its module")
            bugs = sim.step(module, known[seen[-1]], seed, len(known) + 1, self._chance)
            text = sim.source(module, bugs)
            known.pop(text, None)
            known[text] = bugs
        return f"{sim.D[module]['module']}\n```python\n{text}```\n"


@contextmanager
def serve(model: BreakingModel) -> Iterator[str]:
    """Serve *model* as chat completions; yields the address, to which a campaign's name is added."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Log nothing."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompt = "\n".join(
                part if isinstance(part, str) else str(part.get("text", ""))
                for message in asked["messages"]
                for part in (message["content"] if isinstance(message["content"], list) else [message["content"]])
            )
            text = model.answer(self.path.split("/")[1], prompt)
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4, "total_tokens": 1}
            body = {"id": "c", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice]}
            data = json.dumps({**body, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def lay_out_tasks(sim: Any, folder: Path, count: int) -> Path:
    """Lay out *count* tasks in *folder*; the list of them for `jumar batch`."""
    rows = []
    for seed in range(count):
        module, bugs = sim.start(seed)
        known, place = sim.D[module], folder / f"task-{seed:03d}"
        shutil.copytree(sim.SRC / known["repo"], place)
        (place / known["module"]).write_text(sim.source(module, bugs))
        table = {
            "task": {"instruction": f"Repair the module (simulated task {seed})."},
            "files": {"editable": [known["module"]]},
            "tests": {"select": known["tests"], "test_timeout_seconds": 5.0},
            "pipeline": {"review": False},
        }
        (place / "task.toml").write_text(tomli_w.dumps(table))
        rows.append(json.dumps({"path": place.name, "name": place.name}))
    listed = folder / "tasks.jsonl"
    listed.write_text("\n".join(rows) + "\n")
    return listed


def run_campaign(name: str, tasks: Path, address: str, folder: Path) -> list[Trajectory]:
    """Run `jumar batch` on *tasks* and return what became of each run."""
    subprocess.run(  # noqa: S603  our own program
        [
            sys.executable, "-m", "jumar.cli.main", "batch", str(tasks), "--campaign", str(folder / name),
            "--model", "openai:simulated", "--base-url", f"{address}/{name}/v1", "--agent", "pipeline",
            "--test-policy", "on_write", "--gate", "off", "--attempts", str(ATTEMPTS - 1), "--confirm", "0",
            "--sandbox", "S0", "--ratchet", "count", "-q",
            "--python", str(PYTHON if PYTHON.is_file() else sys.executable),
        ],
        check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found = [read_trajectory(run.parent) for run in sorted((folder / name / "runs").glob("*/events.jsonl"))]
    if name == LAST:
        return [trajectory._replace(shipped=trajectory.passed[-1]) for trajectory in found]
    return found


def read_trajectory(run: Path) -> Trajectory:
    """Return the attempts of *run* and what its best tree passes."""
    passed, total, best = [], 0, 0
    for entry in read_journal(run):
        match entry.event:
            case ev.Tests(trigger=Trigger.BASELINE | Trigger.WRITE, void=None, passed=count, total=total):
                passed.append(count)
            case ev.BestFound(score=score):
                best = score.passed
            case _:
                pass
    return Trajectory(tuple(passed), best, total)


def describe(name: str, runs: Sequence[Trajectory]) -> str:
    """Return the figures of one campaign in a line."""
    worse = fmean(run.shipped < run.second for run in runs)
    below = fmean(run.shipped < max(run.passed) for run in runs)
    share = fmean(run.shipped / run.total for run in runs)
    solved = fmean(run.shipped == run.total for run in runs)
    attempts = fmean(len(run.passed) for run in runs)
    return (
        f"{name:<8} {len(runs)} tasks, {attempts:.2f} attempts each: {worse:.1%} ship less than their second attempt, "
        f"{below:.1%} less than their best one; {share:.1%} of the tests pass at the end, {solved:.1%} solved"
    )


def main() -> None:
    """Print a line for each campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--breaks", type=float, default=0.8, help="chance that an attempt breaks something")
    asked = parser.parse_args()
    spec = importlib.util.spec_from_file_location("simulate", asked.data / "sim" / "simulate.py")
    if spec is None or spec.loader is None or not (asked.data / "sim" / "simulate.py").is_file():
        raise SystemExit(f"there is no sim/simulate.py in {asked.data}")
    sim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sim)
    random.seed(0)
    with tempfile.TemporaryDirectory() as name, serve(BreakingModel(sim, asked.breaks)) as address:
        tasks = lay_out_tasks(sim, Path(name), asked.tasks)
        for campaign in (LAST, RATCHET):
            print(describe(campaign, run_campaign(campaign, tasks, address, Path(name))), flush=True)


if __name__ == "__main__":
    main()
