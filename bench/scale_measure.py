"""Measures on this machine what `bench/scale.py` simulates: test times, sizes of runs, and rates of the services."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from jumar.core.state.events import Tests
from jumar.executors.archives import pack_run, unpack_run
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.judging.verdict_store import VerdictStore, hash_question
from jumar.runs.setup.marks import mark
from scale_verdict import make_verification
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds.real_task_scripts import laid_out, tasks

HERE = Path(__file__).parent
RAY = HERE.parent / ".venv" / "ray" / "bin" / "python"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one machine."""

    cores: int
    tasks: int
    calls: int
    """Model calls of each run that was measured."""
    machine_seconds: tuple[float, ...]
    """Of each run: all time of its process, with a model that answers at once, one run after another."""
    test_seconds: tuple[float, ...]
    """Of each run: its last verification alone."""
    run_bytes: int
    """Of an average run directory on the disk, with the objects of its own; so are the next two."""
    run_files: float
    archive_bytes: int
    ledger_row_bytes: float
    """Growth of the ledger with a call of a model."""
    verdict_bytes: float
    """Growth of the store with a verdict."""
    collected: float
    """Archives per second that one process unpacks, syncs and marks."""
    services: Mapping[str, float]
    """Calls per second; empty: there is no Ray."""


def write_script(solution: Path, path: Path) -> int:
    """Write the replies of a model that looks twice, writes the solution twice and is done; return their number."""
    files = [p for p in sorted(solution.rglob("*")) if p.is_file()]
    names = [p.relative_to(solution).as_posix() for p in files]
    reads = [{"name": "read_file", "arguments": {"path": name}} for name in names]
    writes = [
        [
            {"name": "write_file", "arguments": {"path": n, "text": p.read_text("utf-8") + tail}}
            for n, p in zip(names, files, strict=True)
        ]
        for tail in ("\n# once more\n", "")
    ]
    replies = (reads, reads, *writes, [{"name": "final", "arguments": {"message": "done"}}])
    lines = [json.dumps({"tool_calls": calls, "usd": 0.01}) + "\n" for calls in replies]
    path.write_text("".join(lines), "utf-8")
    return len(lines)


def measure(data: Path, sandbox: str) -> Measured:
    """Return the measurements with the Python tasks below *data*."""
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        folder = Path(name)
        (folder / "scripts").mkdir()
        calls = 0
        for task in (known := list(tasks(data))):
            laid_out(data, task, folder / "tasks")
            calls = write_script(data / "solutions" / task["id"], folder / "scripts" / f"{task['id']}.jsonl")
        subprocess.run(  # noqa: S603  it is ours
            [
                sys.executable, "-m", "jumar.cli.main", "batch", "tasks/*", "--rollouts", "2", "--model",
                "script:scripts/{task}.jsonl", "--sandbox", sandbox, "--concurrency", "1", "--no-verdict-cache",
                "--campaign", "c", "--confirm", "0", "--python", PLAIN_PYTHON, "-q",
            ],
            cwd=folder, check=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return _read(folder / "c", len(known), calls)


def _read(campaign: Path, count: int, calls: int) -> Measured:
    runs = sorted(path for path in (campaign / "runs").iterdir() if (path / EVENTS).is_file())
    journals = sorted((read_journal(run) for run in runs), key=lambda entries: entries[-1].ts)
    spans = [after[-1].ts - before[-1].ts for before, after in pairwise(journals)]
    tests = [e.event.duration_ms / 1000 for entries in journals for e in entries if isinstance(e.event, Tests)]
    archives = [pack_run(run) for run in runs]
    objects = campaign / "runs" / ".objects"
    whole = sum(_count_bytes(run) for run in runs) + _count_bytes(objects)
    files = sum(len([p for p in place.rglob("*") if p.is_file()]) for place in (*runs, objects))
    ledger = sqlite3.connect(campaign / "ledger.db").execute("SELECT count(*) FROM calls").fetchone()[0]
    return Measured(
        cores=len(os.sched_getaffinity(0)), tasks=count, calls=calls,
        machine_seconds=tuple(round(s, 3) for s in spans), test_seconds=tuple(tests),
        run_bytes=whole // len(runs), run_files=round(files / len(runs), 1),
        archive_bytes=round(mean(map(len, archives))),
        ledger_row_bytes=round((campaign / "ledger.db").stat().st_size / ledger, 1),
        verdict_bytes=_measure_verdict_bytes(), collected=round(_measure_collecting(runs, archives), 1),
        services=_measure_services(),
    )  # fmt: skip


def _count_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _measure_collecting(runs: list[Path], archives: list[bytes]) -> float:
    """Return runs per second that one process collects, each with new objects."""
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        began = time.perf_counter()
        for number, (run, archive) in enumerate(zip(runs, archives, strict=True)):
            place = Path(name, str(number))
            place.mkdir()
            folder = unpack_run(archive, place, run.name)
            mark(folder, (folder / EVENTS).read_bytes().partition(b"\n")[0], os.environ)
        return len(runs) / (time.perf_counter() - began)


def _measure_verdict_bytes() -> float:
    """Return the bytes that a verdict of thirty tests takes in the store."""
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        store = VerdictStore.open(Path(name, "v.db"))
        for number in range(200):
            store.keep(hash_question(number), make_verification(), Path("runs", "r"))
        store.close()
        return Path(name, "v.db").stat().st_size / 200


def _measure_services() -> Mapping[str, float]:
    if not RAY.exists():
        return {}
    words = [str(RAY), str(HERE / "scale_services.py")]
    done = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603  as above
    told: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def describe(seconds: tuple[float, ...]) -> str:
    """Return median and 95th percentile of *seconds*, for people."""
    return f"median {median(seconds):.2f} s, 95 % below {sorted(seconds)[int(0.95 * len(seconds))]:.2f} s"
