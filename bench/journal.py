"""The journal: writing groups, and reading and reducing a million events.

Run as `make bench ONLY=journal`. The events are those of a driver's run on a suite of 60 tests: requests, replies,
actions, and a verification with its 60 results in each turn. Reading checks the chain of hashes, as everywhere.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio

from frame import Figure, interleave, median_of, ratio_of
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate, TestPolicy, Trigger
from jumar.core.state.verdict import Outcome
from jumar.journal.group_commit import GroupCommit
from jumar.journal.line_format import JournalEnd, format_group, hash_line
from jumar.journal.read_groups import read_groups
from jumar.journal.writer import EVENTS, Journal

EVENTS_READ, TESTS, TREE = 1_000_000, 60, "a" * 64
SAMPLE = 200_000
"""Events that are read in a round; the figure is for a million."""

WRITERS, APPENDS = 64, 5
"""Runs of one process, and events that each of them writes in a round."""

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  reading is measured, not a disk


def build_start() -> ev.RunStart:
    """Return the first event."""
    return ev.RunStart(
        run="r", task="t", agent="driver", model="m", test_policy=TestPolicy.ON_WRITE, gate=Gate.STRICT,
        budget=Budget(), expected=tuple(f"tests/test_app.py::test_{n}" for n in range(TESTS)), tree=TREE,
    )  # fmt: skip


def build_turn() -> list[list[ev.Event]]:
    """Return the groups of one turn."""
    results: list[ev.Event] = [
        ev.TestRun(
            test_id=f"tests/test_app.py::test_{n}", status="pass" if n else "fail",
            outcome=Outcome.PASSED if n else Outcome.FAILED, command="pytest", duration_ms=3,
        )
        for n in range(TESTS)
    ]  # fmt: skip
    tests = ev.Tests(trigger=Trigger.MODEL, ok=False, passed=TESTS - 1, failed=1, errors=0, total=TESTS, tree=TREE)
    shown = ev.Observation(name="driver.run_tests", call_id="c", content={"ok": False, "output": "59 of 60 passed"})
    read = ev.Observation(name="read_file", call_id="b", content={"ok": True, "output": "return a + b\n" * 20})
    return [
        [ev.ModelRequest(tier="mid", model="m", stage="turn", reserved_usd=0.1)],
        [ev.ModelCall(reply=Reply(content="I look."), tier="mid", model="m", stage="turn", usd=0.01, ms=200)],
        [ev.ActionTaken(name="read_file", args={"path": "app.py"}, admitted=True), read],
        [ev.ActionTaken(name="run_tests", args={}, admitted=True, last=True)],
        [*results, tests, shown],
    ]


def write_sample(file: Path) -> int:
    """Write a journal of about `SAMPLE` events; their number."""
    end, turn = JournalEnd(), build_turn()
    with file.open("wb") as out:
        groups: list[list[ev.Event]] = [[build_start()]]
        while end.seq < SAMPLE:
            for group in groups:
                entries, lines = format_group(group, 1.5 + end.seq, end)
                out.write(b"".join(line + b"\n" for line in lines))
                end = JournalEnd(entries[-1].seq, hash_line(lines[-1]))
            groups = turn
    return end.seq + 1


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the figures of reading, then those of writing."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / EVENTS
        count = write_sample(file)

        def read() -> float:
            began = time.process_time()
            with file.open("rb") as lines:
                for _ in read_groups(lines, print):
                    pass
            return time.process_time() - began

        def read_and_reduce() -> float:
            began, state = time.process_time(), RunState()
            with file.open("rb") as lines:
                for groups in read_groups(lines, print):
                    state = replay(groups.entries, state)
            return time.process_time() - began

        def hash_all() -> float:
            began = time.process_time()
            for line in file.read_bytes().splitlines():
                hash_line(line)
            return time.process_time() - began

        taken = interleave({"read": read, "both": read_and_reduce, "hash": hash_all}, rounds)
        scale = EVENTS_READ / count
        yield median_of("a million events read, chain checked, processor time", [scale * s for s in taken["read"]], "s")
        yield median_of("a million events read and reduced, processor time", [scale * s for s in taken["both"]], "s")
        decoded = [scale * (both - chain) for both, chain in zip(taken["both"], taken["hash"], strict=True)]
        yield median_of("of it decoding and reducing, processor time", decoded, "s")
        yield median_of("of it the hashes of the chain, processor time", [scale * s for s in taken["hash"]], "s")
    yield from measure_writing(rounds)
    yield from measure_writers(rounds)


def measure_writing(rounds: int) -> Iterator[Figure]:
    """Yield what an event costs: alone with its sync, and in the group of a verification."""
    results = build_turn()[-1]
    with tempfile.TemporaryDirectory() as folder, Journal.create(Path(folder) / "run") as journal:
        plain = os.open(Path(folder) / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def append_each() -> None:
            for event in results:
                journal.append([event], 1.0)

        def sync_alone() -> None:
            os.write(plain, b"x")
            os.fsync(plain)

        ways = {"each": append_each, "group": lambda: journal.append(results, 1.0), "sync": sync_alone}
        taken = interleave(ways, rounds)
        os.close(plain)
    yield median_of("a sync of one byte", [1000 * s for s in taken["sync"]], "ms")
    yield ratio_of("62 events one by one against one group", taken["each"], taken["group"], "more")


def measure_writers(rounds: int) -> Iterator[Figure]:
    """Yield how much faster many runs of one process write when they share their syncs."""
    event = build_turn()[0]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        journals = [held.enter_context(Journal.create(Path(folder) / str(n))) for n in range(WRITERS)]
        commits = GroupCommit()
        for journal in journals:
            journal.commits = commits

        async def write(journal: Journal) -> None:
            for _ in range(APPENDS):
                await journal.commit(event, 1.0)

        async def write_all() -> None:
            async with anyio.create_task_group() as tasks:
                for journal in journals:
                    tasks.start_soon(write, journal)

        def write_each() -> None:
            for _ in range(APPENDS):
                for journal in journals:
                    journal.append(event, 1.0)

        taken = interleave({"each": write_each, "together": lambda: anyio.run(write_all)}, rounds)
    count = WRITERS * APPENDS
    yield median_of(f"{WRITERS} writers, an event with its own sync", [1000 * s / count for s in taken["each"]], "ms")
    yield median_of(
        f"{WRITERS} writers, an event under group commit", [1000 * s / count for s in taken["together"]], "ms"
    )
    yield ratio_of(f"{WRITERS} writers, own syncs against group commit", taken["each"], taken["together"], "more")
