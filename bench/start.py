"""What jumar adds to a verdict: `jumar score` of one trivial test beside the same `python -m pytest`.

Run as `python bench/start.py [--rounds N]`. Both run the same test with the same interpreter, once that of a virtual
environment with nothing but pytest in it and once jumar's own, where pytest has plug-ins to load. All of it takes
turns, round by round; the table gives medians. *First* is a start that knows nothing of the sandbox and runs its
self-test.
The bound: with `--confirm 0`, a score takes at most 2.5 times the processor time of pytest (user and system, all
processes). Beside it stands what the status line of a terminal costs: the same score on a pseudo-terminal.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROUNDS = 9
BOUND = 2.5

TASK = {
    "app.py": "def double(n):\n    return 2 * n\n",
    "test_app.py": "from app import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
}
CANDIDATE = {**TASK, "app.py": "def double(n):\n    return n + n\n"}
"""What is judged is not the task itself: nothing that is known of one counts for the other."""


class Taken(NamedTuple):
    """What a command took, in milliseconds."""

    cpu: float
    clock: float


def timed(argv: list[str], env: Mapping[str, str], folder: Path, *, terminal: bool = False) -> Taken:
    """What *argv* takes, with all that it starts."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ours, theirs = pty.openpty() if terminal else (-1, subprocess.DEVNULL)
    subprocess.run(argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=theirs, check=True)  # noqa: S603  ours
    if terminal:
        os.close(ours)
        os.close(theirs)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(1000 * cpu, 1000 * (ended - started))


def ways(python: str, place: Path, env: Mapping[str, str]) -> dict[str, Callable[[], Taken]]:
    """What is measured with the interpreter *python*, by name."""
    jumar = str(Path(sys.executable).with_name("jumar"))
    score = [jumar, "score", str(place / "task"), str(place / "candidate"), "--confirm", "0", "--python", python]
    remembered = place / "home" / ".cache" / "jumar" / "selftest.json"

    def first() -> Taken:
        remembered.unlink(missing_ok=True)
        return timed(score, env, place)

    return {
        "pytest": lambda: timed([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], env, place / "candidate"),
        "score": lambda: timed(score, env, place),
        "score -q": lambda: timed([*score, "-q"], env, place),
        "score, terminal": lambda: timed(score, env, place, terminal=True),
        "score, first": first,
    }


def measured(python: str, place: Path, rounds: int) -> bool:
    """Print the table for *python*; whether the bound holds."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME")}
    env |= {"HOME": str(place / "home"), "TERM": "xterm"}
    kinds = ways(python, place, env)
    taken: dict[str, list[Taken]] = {name: [] for name in kinds}
    for turn in range(rounds + 1):
        for name, way in kinds.items():
            took = way()
            if turn:  # the first round warms the caches of the disk
                taken[name].append(took)
    plain = median(t.cpu for t in taken["pytest"])
    for name, some in taken.items():
        cpu, clock = median(t.cpu for t in some), median(t.clock for t in some)
        ratio = median(t.cpu / p.cpu for t, p in zip(some, taken["pytest"], strict=True))
        over = "  OVER" if name == "score" and ratio > BOUND else ""
        print(f"  {name:16} {cpu:6.0f} ms of the processors  x {ratio:4.2f}   {clock:6.0f} ms{over}")
    return median(t.cpu for t in taken["score"]) <= BOUND * plain


def main(rounds: int) -> bool:
    """Measure both interpreters; whether the bound holds for both."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, files in (("task", TASK), ("candidate", CANDIDATE)):
            (place / name).mkdir()
            for path, text in files.items():
                (place / name / path).write_text(text)
        (place / "home").mkdir(mode=0o700)
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)  # noqa: S603  ours
        bare = str(place / "venv" / "bin" / "python")
        subprocess.run([bare, "-m", "pip", "install", "--quiet", "pytest"], check=True, stderr=subprocess.DEVNULL)  # noqa: S603  ours
        held = []
        for name, python in (("a venv with pytest alone", bare), ("jumar's own", sys.executable)):
            print(name)
            held.append(measured(python, place, rounds))
    return all(held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    sys.exit(0 if main(given.rounds) else 1)
