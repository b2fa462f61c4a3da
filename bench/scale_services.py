"""Calls that the services of a campaign on Ray answer in a second, as JSON; `bench/scale.py` runs it where Ray is.

Run as `.venv/ray/bin/python bench/scale_services.py`. Each service is the real actor with its file on this disk, asked
by several tasks at once. What an actor does is one transaction on the disk for most calls, so the disk decides.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import ray

from jumar.core.state.budget import Cost
from jumar.executors.services import LedgerService, VerdictService
from jumar.journal.ledger import Caps, SqliteLedger
from jumar.runs.judging.verdict_store import StoredVerdict, hash_question
from scale_verdict import make_verification

CALLERS, AT_ONCE, ROUNDS = 4, 16, 25
"""Tasks that ask, the runs that each stands for, which ask at once, and the pairs of calls of each run."""

PAIRS = CALLERS * AT_ONCE * ROUNDS


def measure_ledger(ask: Any, ledger: Any, folder: Path) -> float:
    """Return reservations and settlements per second, together."""
    SqliteLedger.open(folder / "ledger.db", Caps(usd=1e9)).close()
    service = ledger.remote(str(folder / "ledger.db"))
    runs = [f"r{n}-{one}" for n in range(CALLERS) for one in range(AT_ONCE)]
    ray.get([service.begin.remote(run, "a", ()) for run in runs])
    began = time.perf_counter()
    ray.get([ask.remote(service, n) for n in range(CALLERS)])
    return 2 * PAIRS / (time.perf_counter() - began)


def measure_verdicts(ask: Any, verdicts: Any, folder: Path) -> float:
    """Return questions and new verdicts per second, together."""
    service = verdicts.remote(str(folder / "verdicts.db"))
    began = time.perf_counter()
    ray.get([ask.remote(service, n) for n in range(CALLERS)])
    return 2 * PAIRS / (time.perf_counter() - began)


def draw(service: Any, number: int) -> None:
    """Reserve and settle, one call after another, as a run does."""
    runs = [f"r{number}-{one}" for one in range(AT_ONCE)]
    for seq in range(ROUNDS):
        ray.get([service.reserve.remote(run, "a", seq, Cost(0.1, 10)) for run in runs])
        ray.get([service.settle.remote(run, "a", seq, Cost(0.05, 10)) for run in runs])


def judge(service: Any, number: int) -> None:
    """Ask new questions and answer them."""
    verdict = msgspec.json.encode(StoredVerdict(make_verification(), "runs/r"))
    for seq in range(ROUNDS):
        keys = [hash_question(number, seq, one) for one in range(AT_ONCE)]
        ray.get([service.ask.remote(key, f"a{number}") for key in keys])
        ray.get([service.answer.remote(key, f"a{number}", verdict) for key in keys])


def nothing() -> None:
    """Do nothing, as a task."""


def measure_tasks() -> float:
    """Return empty tasks per second that one driver starts and hears of, in workers that are there already."""
    task = ray.remote(num_cpus=0.25)(nothing)
    ray.get([task.remote() for _ in range(200)])
    began = time.perf_counter()
    ray.get([task.remote() for _ in range(2000)])
    return 2000 / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    usual = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": 1000}
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        folder = Path(name)
        ledger = ray.remote(LedgerService).options(**usual)
        verdicts = ray.remote(VerdictService).options(**usual)
        told = {
            "ledger_calls": measure_ledger(ray.remote(num_cpus=0.25)(draw), ledger, folder),
            "verdict_calls": measure_verdicts(ray.remote(num_cpus=0.25)(judge), verdicts, folder),
            "tasks": measure_tasks(),
        }
    print(json.dumps({name: round(value) for name, value in told.items()}))
    ray.shutdown()


if __name__ == "__main__":
    main()
