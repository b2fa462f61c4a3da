"""Kill -9 at any byte of the journal: the resumed run ends where an uninterrupted one does, nothing is paid twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.journal.audit import verify
from jumar.journal.writer import read_journal
from support.processes.kill_driver import lay_out

TESTS = Path(__file__).parents[1]
GROUPS = 29
"""As many groups has the uninterrupted run after its first event; a test below says so."""


def drive(folder: Path, group: int = -1, many: int = -1, kind: str = "fake") -> int:
    """One process of the run; its exit status."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": str(TESTS)}
    argv = [sys.executable, "-m", "support.processes.kill_driver", str(folder), str(group), str(many), kind]
    return subprocess.run(argv, check=False, capture_output=True, timeout=120, env=env).returncode


def run_in(folder: Path) -> Path:
    return next(p.parent for p in (folder / "runs").glob("*/events.jsonl"))


def outcome(folder: Path) -> tuple[RunState, Counter[str]]:
    """Where the run stands by its journal, and what was done by the calls' own log."""
    return replay(read_journal(run_in(folder))), Counter((folder / "calls").read_text().split())


def killed_and_resumed(folder: Path, group: int, many: int, kind: str = "fake") -> None:
    """Kill at one point, resume, and compare with a run that nobody killed."""
    whole, whole_calls = uninterrupted(kind)
    lay_out(folder)

    assert drive(folder, group, many, kind) == -signal.SIGKILL
    assert drive(folder, kind=kind) == 0

    state, calls = outcome(folder)
    assert state.end
    assert whole.end
    assert (state.end.stop, state.tree, state.best) == (whole.end.stop, whole.tree, whole.best)
    assert (run_in(folder) / "workspace" / "app.py").read_text() == "PASSING = 13  # reply 3\n"
    assert state.spend.attempts == whole.spend.attempts
    assert calls.total() <= whole_calls.total() + 1, "only the interrupted effect may be done again"
    assert 0 <= state.spend.micro_usd - whole.spend.micro_usd <= 10_000, "only the interrupted call may be paid again"
    settled = sum(isinstance(e.event, ev.ModelCall) for e in read_journal(run_in(folder)))
    assert settled == len((folder / "script.jsonl").read_text().splitlines())
    assert not verify(run_in(folder))


@cache
def uninterrupted(kind: str = "fake") -> tuple[RunState, Counter[str]]:
    """The run that nobody killed, once for each kind that is asked for."""
    with TemporaryDirectory() as folder:
        lay_out(Path(folder))
        assert drive(Path(folder), kind=kind) == 0
        return outcome(Path(folder))


def points(seed: int, per_group: int) -> list[tuple[int, int]]:
    """After every group, and at random bytes within it."""
    chance = random.Random(seed)
    within = [(g, chance.randrange(1, 100_000)) for g in range(GROUPS) for _ in range(per_group - 1)]
    return [*((g, -1) for g in range(GROUPS)), *within]


@pytest.mark.slow
def test_the_uninterrupted_run_is_the_story(tmp_path: Path) -> None:
    state, calls = uninterrupted()

    assert state.end
    assert state.end.stop is StopReason.ATTEMPTS
    assert state.best
    assert state.best.score.passed == 13
    assert calls == {"verify": 6, "call": 5}
    lay_out(tmp_path / "a")
    assert drive(tmp_path / "a", GROUPS - 1, -1) == -signal.SIGKILL, "the last group is there to be killed in"
    lay_out(tmp_path / "b")
    assert drive(tmp_path / "b", GROUPS, -1) == 0, "and it is the last"


@pytest.mark.slow
@pytest.mark.parametrize(("group", "many"), random.Random(7).sample(points(7, 7), 2))
def test_a_sample_of_the_points(tmp_path: Path, group: int, many: int) -> None:
    killed_and_resumed(tmp_path / "run", group, many)


@pytest.mark.proof
def test_a_run_killed_again_and_again_gets_there(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    lay_out(folder)
    whole, _ = uninterrupted()
    kills = 0
    while drive(folder, 3, 50 if kills % 2 else -1) == -signal.SIGKILL:
        kills += 1
        assert kills < 40

    state, _ = outcome(folder)
    assert kills > 5
    assert (state.tree, state.best) == (whole.tree, whole.best)
    assert not verify(run_in(folder))


def every_event(folder: Path) -> list[tuple[int, int]]:
    """After every single event of the run in *folder*: those inside a group are points of their own."""
    found, group, line = [], -1, 0  # the first group is the first event, which is there before the driver is
    for raw in (run_in(folder) / "events.jsonl").read_bytes().splitlines():
        line += 1
        more = json.loads(raw).get("more", 0)
        if more and group >= 0:
            found.append((group, -1 - line))
        if not more:
            group, line = group + 1, 0
    return found


@pytest.mark.proof
def test_all_points(tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    lay_out(tmp_path / "whole")
    assert drive(tmp_path / "whole") == 0
    every = [*points(11, 7), *every_event(tmp_path / "whole")]
    assert len(every) >= 300
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda p: killed_and_resumed(tmp_path / f"{p[0]}-{p[1]}", p[0], p[1]), every))
    figure("kills", f"{len(every)} of {len(every)} points: same result, same best tree, at most one effect done again")


@pytest.mark.proof
def test_points_with_real_tests(tmp_path: Path) -> None:
    every = random.Random(13).sample(points(13, 3), 20)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda p: killed_and_resumed(tmp_path / f"{p[0]}-{p[1]}", p[0], p[1], "real"), every))
