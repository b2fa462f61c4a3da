"""Only what an agent changed is looked at, and nothing gets out of sight by its size."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jumar.challenges.challenge_file import load_challenge
from jumar.challenges.changed_files import read_changed_files
from jumar.challenges.judging import CODE_CHARACTERS, Judge, judge_runs
from jumar.challenges.ranking.run_score import RunScore
from jumar.runs.setup.result import read_state
from jumar.scorers.scars.search import LARGEST_BYTES
from jumar.testing import script
from support.worlds.challenge_world import ChallengeWorld
from support.worlds.rollout_world import work, write_passing


def test_what_was_written_is_read_with_what_it_was(tmp_path: Path) -> None:
    run = work(tmp_path / "run", (write_passing(9, "mine"),))
    changed = read_changed_files(run, read_state(run))

    assert set(changed.after) == set(changed.before) == {"app.py"}
    assert b"mine" in changed.after["app.py"]
    assert b"mine" not in changed.before["app.py"]
    assert changed.large == ()


def test_a_padded_file_is_named(tmp_path: Path) -> None:
    run = work(tmp_path / "run", (write_passing(9, "x" * LARGEST_BYTES),))
    changed = read_changed_files(run, read_state(run))

    assert changed.large == ("app.py",)
    assert "app.py" not in changed.after


@pytest.mark.slow
def test_more_than_a_judge_reads_is_void_and_not_cut(tmp_path: Path) -> None:
    """The bad part would be in the middle."""
    work(tmp_path / "runs" / "a", (write_passing(9, "x" * CODE_CHARACTERS),))
    ChallengeWorld(tmp_path).challenge()
    challenge = load_challenge(tmp_path)
    run = RunScore(agent="a", task="t", rollout=1, run="runs/a", stop="final", passed=9, total=10)

    (judged,), standing, report = anyio.run(judge_runs, challenge, tmp_path, [run], Judge(script(), 1.0))

    assert [mark.mark for mark in judged.marks] == [None]
    assert "more than is judged" in judged.marks[0].why
    assert (standing.withheld, report.calls) == ("", 0)
