"""A folder of small tasks, and a script for each rollout of them, for campaigns that come to the same end each time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.processes.interpreters import PLAIN_PYTHON

WRONG = "def gcd(a, b):  # {}\n    return 3\n"
RIGHT = "def gcd(a, b):  # {}\n    return a if b == 0 else gcd(b, a % b)\n"
TESTS = (
    "from gcd import gcd\n\n\ndef test_a():\n    assert gcd(4, 6) == 2\n\n\ndef test_b():\n    assert gcd(3, 0) == 3\n"
)


class ScriptedCampaign:
    """Tasks in *root*; odd rollouts write *writes* wrong solutions, even ones end with a right one."""

    def __init__(self, root: Path, tasks: int, rollouts: int, writes: int = 1) -> None:
        self.root, self.rollouts = root, rollouts
        for number in range(tasks):
            folder = root / "tasks" / f"t{number}"
            folder.mkdir(parents=True)
            (folder / "gcd.py").write_text("def gcd(a, b):\n    return 0\n")
            (folder / "test_gcd.py").write_text(TESTS)
        for number in range(1, rollouts + 1):
            texts = [WRONG.format(f"{number // 4}.{n}") for n in range(writes)]
            if number % 2 == 0:
                texts[-1] = RIGHT.format(number // 4)
            calls = [{"name": "write_file", "arguments": {"path": "gcd.py", "text": text}} for text in texts]
            lines = [json.dumps({"tool_calls": [call], "usd": 0.01}) + "\n" for call in calls]
            (root / f"s{number}.jsonl").write_text("".join(lines))

    def plan(self, name: str, *more: str) -> list[str]:
        """The words of `jumar batch` for a new campaign called *name*."""
        return [
            "tasks/*", "--rollouts", str(self.rollouts), "--model", "script:s{rollout}.jsonl", "--sandbox", "S0",
            "--confirm", "0", "--python", PLAIN_PYTHON, "--campaign", name, *more,
        ]  # fmt: skip

    def start(
        self, *words: str, python: str = sys.executable, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start `jumar batch`; *python* has jumar."""
        with (self.root / "out.json").open("wb") as stdout:  # a pipe would be full before anybody reads it
            return subprocess.Popen(
                [python, "-m", "jumar.cli.main", "batch", *words, "--json"],
                cwd=self.root, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environ,
            )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
        """The summary that *process* printed when it had ended, and the rest of its progress."""
        told, stderr = self.wait(process)
        assert "runs" in told, stderr
        return told, stderr

    def wait(self, process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
        """As `end`, of a process that may be refused or killed: then the object is its error, or empty."""
        _, stderr = process.communicate(timeout=500)
        return json.loads(((self.root / "out.json").read_text().splitlines() or ["{}"])[-1]), stderr


def get_outcomes(told: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Of each rollout: why it stopped, what passed, of which tree, and what it cost."""
    names = ("stop", "passed", "tree", "usd", "tokens")
    return {run["rollout"]: tuple(run[name] for name in names) for run in told["runs"]}
