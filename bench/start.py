"""What jumar adds to a verdict: `jumar score` of one trivial test beside the same `python -m pytest`.

Run as `make bench ONLY=start`. Both run the same test with the same interpreter, once that of a virtual
environment with nothing but pytest in it and once jumar's own, where pytest has plug-ins to load. All of it takes
turns, round by round. *First* is a start that knows nothing of the sandbox and runs its
self-test; *terminal* is one on a pseudo-terminal, with its status line; *confirmed* is a green that is accepted, all
others are believed at once. Processor time is that of all processes.
"""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from frame import Figure, interleave, median_of, ratio_of

BARE = Path(__file__).resolve().parent.parent / ".venv" / "bare" / "bin" / "python"

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
    confirmed = [jumar, "score", str(place / "task"), str(place / "candidate"), "--python", python]
    score = [*confirmed, "--confirm", "0"]
    remembered = place / "home" / ".cache" / "jumar" / "selftest.json"

    def first() -> Taken:
        remembered.unlink(missing_ok=True)
        return timed(score, env, place)

    return {
        "pytest": lambda: timed([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], env, place / "candidate"),
        "score": lambda: timed(score, env, place),
        "score, terminal": lambda: timed(score, env, place, terminal=True),
        "score, first": first,
        "score, confirmed": lambda: timed(confirmed, env, place),
    }


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the figures of both interpreters."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, files in (("task", TASK), ("candidate", CANDIDATE)):
            (place / name).mkdir()
            for path, text in files.items():
                (place / name / path).write_text(text)
        (place / "home").mkdir(mode=0o700)
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME")}
        env |= {"HOME": str(place / "home"), "TERM": "xterm"}
        for where, python in (("bare venv", BARE), ("jumar's venv", Path(sys.executable))):
            if python.is_file():
                yield from measure_with(where, str(python), (place, env), rounds)


def measure_with(where: str, python: str, around: tuple[Path, Mapping[str, str]], rounds: int) -> Iterator[Figure]:
    """Yield the figures of the interpreter *python*."""
    taken: dict[str, list[Taken]] = {}

    def noting(name: str, way: Callable[[], Taken]) -> Callable[[], None]:
        return lambda: taken.setdefault(name, []).append(way())

    interleave({name: noting(name, way) for name, way in ways(python, *around).items()}, rounds)
    plain = taken["pytest"][1:]
    yield median_of(f"pytest, one test, {where}", [t.clock for t in plain], "ms")
    for name in ("score", "score, terminal", "score, first", "score, confirmed"):
        some = taken[name][1:]
        yield ratio_of(f"{name}, processors, {where}", [t.cpu for t in some], [t.cpu for t in plain])
        yield ratio_of(f"{name}, wall time, {where}", [t.clock for t in some], [t.clock for t in plain])
