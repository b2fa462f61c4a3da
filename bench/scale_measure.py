"""Measures on this machine what `bench/scale.py` simulates: test times, sizes of runs, and rates of the services."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from jumar.core.state.budget import Cost
from jumar.core.state.events import Tests
from jumar.executors.archives import pack_run, unpack_run
from jumar.journal.ledger_file import Caps
from jumar.journal.ledger_rows import LedgerRows
from jumar.journal.writer import EVENTS, read_journal
from jumar.runs.judging.verdict_store import VerdictStore, hash_question
from jumar.runs.setup.marks import mark
from scale_verdict import make_verification
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds.real_task_scripts import laid_out, tasks

HERE = Path(__file__).parent
RUNS = 2
"""Of each task."""

ROWS = 5000

RAY = HERE.parent / ".venv" / "ray" / "bin" / "python"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one machine."""

    sandbox: str
    load: float
    """Processes that wanted a core, for each core: above 1 the rates are lower than the machine's own."""
    cores: int
    tasks: int
    calls: int
    """Model calls of each run that was measured."""
    core_seconds: tuple[float, ...]
    """Of each run: the processor time of all its processes, whatever else the machine did."""
    test_seconds: tuple[float, ...]
    """Of each run: its last verification, by the clock."""
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


def measure(data: Path, sandbox: str, most: int) -> Measured:
    """Return the measurements with at most *most* of the Python tasks below *data*, evenly chosen."""
    known = list(tasks(data))
    known = known[:: -(-len(known) // most)]
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        folder, calls, seconds = Path(name), 0, list[float]()
        for task in known:
            place, script = laid_out(data, task, folder / "tasks"), folder / f"{task['id']}.jsonl"
            calls = write_script(data / "solutions" / task["id"], script)
            for _ in range(RUNS):
                seconds.append(_run(place, script, folder / "runs", sandbox))
        return msgspec.structs.replace(_read(folder / "runs", len(known), calls, seconds), sandbox=sandbox)


def _run(task: Path, script: Path, runs: Path, sandbox: str) -> float:
    """Run *task* as a rollout does by default, judged once, and return the processor time of all its processes."""
    process = subprocess.Popen(  # noqa: S603  it is ours
        [
            sys.executable, "-m", "jumar.cli.main", "run", str(task), "--model", f"script:{script}",
            "--runs", str(runs), "--test-policy", "on_final", "--gate", "off", "--sandbox", sandbox,
            "--python", PLAIN_PYTHON, "-q",
        ],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def _read(folder: Path, count: int, calls: int, seconds: Sequence[float]) -> Measured:
    runs = sorted(path for path in folder.iterdir() if (path / EVENTS).is_file())
    entries = [entry for run in runs for entry in read_journal(run)]
    archives = [pack_run(run) for run in runs]
    objects = folder / ".objects"
    files = sum(len([p for p in place.rglob("*") if p.is_file()]) for place in (*runs, objects))
    return Measured(
        sandbox="",
        load=round(os.getloadavg()[1] / len(os.sched_getaffinity(0)), 1),
        cores=len(os.sched_getaffinity(0)),
        tasks=count,
        calls=calls,
        core_seconds=tuple(seconds),
        test_seconds=tuple(e.event.duration_ms / 1000 for e in entries if isinstance(e.event, Tests)),
        run_bytes=(sum(map(_count_bytes, runs)) + _count_bytes(objects)) // len(runs),
        run_files=files / len(runs),
        archive_bytes=round(mean(map(len, archives))),
        ledger_row_bytes=_measure_row_bytes(),
        verdict_bytes=_measure_verdict_bytes(),
        collected=_measure_collecting(runs, archives),
        services=_measure_services(),
    )


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


def _measure_row_bytes() -> float:
    """Return the bytes that a call takes in the ledger."""
    with tempfile.TemporaryDirectory(prefix="jumar-scale-") as name:
        rows = LedgerRows(Path(name, "ledger.db"), Caps())
        with rows.transact():
            for number in range(ROWS):
                rows.settle(f"20261123-142655-some-task-r{number // 5:03d}", {number % 5: Cost(0.1, 10)})
        rows.close()
        return Path(name, "ledger.db").stat().st_size / ROWS


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
