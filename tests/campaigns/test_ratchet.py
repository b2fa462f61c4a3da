"""What a campaign ships is the best attempt, not the last; time while it is down is billed to nobody."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jumar.core.state import events as ev
from jumar.journal.writer import read_journal
from support.processes.interpreters import PLAIN_PYTHON

TESTS = "".join(f"from word import {name}\n" for name in ("first", "last", "longest")) + (
    "\n\ndef test_first():\n    assert first('a b') == 'a'\n"
    "\n\ndef test_last():\n    assert last('a b') == 'b'\n"
    "\n\ndef test_longest():\n    assert longest('a bb c') == 'bb'\n"
)


def source(*right: str) -> str:
    """The module, of which only the functions *right* are."""
    bodies = {"first": "s.split()[0]", "last": "s.split()[-1]", "longest": "max(s.split(), key=len)"}
    return "".join(f"def {n}(s):\n    return {b if n in right else None}\n\n\n" for n, b in bodies.items())


def lay_out(root: Path, name: str, attempts: Sequence[Sequence[str]]) -> None:
    """A task, and a model that tries *attempts* one after the other."""
    folder = root / "tasks" / name
    folder.mkdir(parents=True)
    (folder / "word.py").write_text(source())
    (folder / "test_word.py").write_text(TESTS)
    calls = [{"name": "write_file", "arguments": {"path": "word.py", "text": source(*right)}} for right in attempts]
    (root / f"{name}.jsonl").write_text("".join(json.dumps({"tool_calls": [call]}) + "\n" for call in calls))


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    words = ("batch", *words, "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.main", *words],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


AT_WORK = """

def test_somebody_listens():
    import os
    from word import last
    if last("a b") == "b":
        try:
            os.write(os.open({fifo!r}, os.O_WRONLY | os.O_NONBLOCK), b".")
        except OSError:
            pass  # nobody does any more
"""
"""Test that tells whoever listens that the second attempt is judged."""

PLAN = (
    "tasks/*", "--model", "script:{task}.jsonl", "--gate", "off", "--test-policy", "on_write", "--confirm", "0",
    "--sandbox", "S0", "--python", PLAIN_PYTHON, "--processes", "1", "--campaign", "c",
)  # fmt: skip


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The object that *process* printed when it had ended."""
    stdout, stderr = process.communicate(timeout=300)
    told: dict[str, Any] = json.loads((stdout.splitlines() or ["{}"])[-1])
    assert "runs" in told, stderr
    return told


@pytest.mark.slow
def test_what_ships_is_never_worse_than_an_attempt_before(tmp_path: Path) -> None:
    lay_out(tmp_path, "falls", [["first"], ["first", "last"], ["longest"]])
    lay_out(tmp_path, "rises", [["first"], ["last"], ["last", "longest"]])

    told = end(start(tmp_path, *PLAN))

    for run in told["runs"]:
        entries = read_journal(tmp_path / "c" / "runs" / Path(run["run"]).name)
        passed = [e.event.passed for e in entries if isinstance(e.event, ev.Tests) and e.event.trigger == "write"]
        assert passed == {"falls": [1, 2, 1], "rises": [1, 1, 2]}[run["task"]]
        assert (run["passed"], run["stop"]) == (2, "final")
    shipped = {run["task"]: run["tree"] for run in told["runs"]}
    assert shipped["falls"] != shipped["rises"]


@pytest.mark.proof
def test_no_time_is_billed_while_a_campaign_is_down(tmp_path: Path) -> None:
    lay_out(tmp_path, "t", [["first"], ["last"], ["longest"], ["first", "last"]])
    test = tmp_path / "tasks" / "t" / "test_word.py"
    test.write_text(TESTS + AT_WORK.format(fifo=str(tmp_path / "fifo")))
    os.mkfifo(tmp_path / "fifo")
    ear = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    process = start(tmp_path, *PLAN)
    assert select.select([ear], [], [], 120)[0], "the second attempt is judged"
    os.close(ear)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    down = 1.0
    select.select([], [], [], down)  # nobody is at work: the time that must not be counted

    (run,) = end(start(tmp_path, "--resume", "c"))["runs"]

    entries = read_journal(tmp_path / "c" / "runs" / Path(run["run"]).name)
    gaps = [later.ts - earlier.ts for earlier, later in pairwise(entries)]
    idle = [gap for gap, entry in zip(gaps, entries[1:], strict=True) if isinstance(entry.event, ev.Resume)]
    assert sum(idle) >= down, "the journal shows the time it was down"
    assert run["seconds"] == pytest.approx(sum(gaps) - sum(idle), abs=0.01)
    assert run["stop"] == "final"
