"""What a verdict costs: plain pytest, a feedback verification in each tier, the acceptance of a green, in turns.

Run as `make bench ONLY=cost`. All kinds of run take turns, round by round, so that a busy machine slows them alike.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio

from frame import Figure, count_rounds, median_of, ratio_of
from jumar.core.state.settings import Suite
from jumar.errors import BadInput
from jumar.ports import Sandbox
from jumar.runners.pytest import PytestRunner
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

CONFIRM = 3
"""As `jumar run` has it."""


def tiny() -> dict[str, str]:
    """Two tests of one function."""
    test = """from app import double


def test_two():
    assert double(2) == 4


def test_three():
    assert double(3) == 6
"""
    return {"app.py": "def double(n):\n    return 2 * n\n", "test_app.py": test}


def middle() -> dict[str, str]:
    """Sixty tests that do a little each, in three files, with a fixture and parameters."""
    return grown(files=3, functions=10, cases=2, work=2_000)


def big() -> dict[str, str]:
    """Four hundred tests in twenty files, a second of work together."""
    return grown(files=20, functions=10, cases=2, work=8_000)


def grown(*, files: int, functions: int, cases: int, work: int) -> dict[str, str]:
    """A suite of so many *files*, with so many *functions* in each, of so many *cases*, each with some *work*."""
    app = "def total(n, start=0):\n    for i in range(n):\n        start += i\n    return start\n"
    made = {"app.py": app, "conftest.py": f"import pytest\n\n\n@pytest.fixture\ndef work():\n    return {work}\n"}
    for number in range(files):
        body = ["import pytest", "from app import total"]
        for f in range(functions):
            rows = ", ".join(f"({n}, {n * (n - 1) // 2})" for n in range(f + 3, f + 3 + cases))
            body += [
                "", "", f'@pytest.mark.parametrize("n, want", [{rows}])', f"def test_{f}(work, n, want):",
                "    assert total(n) == want", f"    assert total(work) == {work * (work - 1) // 2}",
            ]  # fmt: skip
        made[f"tests/test_{number}.py"] = "\n".join([*body, ""])
    return made


SUITES: Mapping[str, Callable[[], dict[str, str]]] = {"tiny (2 tests)": tiny, "middle (60)": middle, "big (400)": big}


@dataclass
class Subject:
    """One suite, ready to be run in every way."""

    folder: Path
    files: dict[str, str]
    sandboxes: Mapping[str, Sandbox]
    tree: str = ""
    verifiers: dict[str, TrustedVerifier] = field(default_factory=dict)
    python: str = ""

    async def prepare(self) -> None:
        """Write it, find its ids."""
        for path, text in self.files.items():
            (self.folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "files" / path).write_text(text)
        store = Store(self.folder / "objects")
        self.tree = store.capture(self.folder / "files")
        for tier, sandbox in self.sandboxes.items():
            verifier = TrustedVerifier(
                store, PytestRunner(), Suite(python=self.python), self.folder / tier, base=self.tree, sandbox=sandbox
            )
            verifier.environ, verifier.sources = {"PATH": os.environ["PATH"]}, "app.py".__eq__
            verifier.expected = (await verifier.collect(self.tree)).ids
            self.verifiers[tier] = verifier

    async def plain(self) -> None:
        """As a person starts pytest; no bytecode is left behind, as in a room that is made afresh."""
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.folder / "files")}
        subprocess.run(argv, cwd=self.folder / "files", env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: ASYNC221, S603  it is alone

    async def judged(self, tier: str, confirm: int) -> None:
        """One verification; with *confirm* its acceptance too."""
        verifier = self.verifiers[tier]
        verifier.suite = Suite(python=self.python, confirm=confirm)
        done = await verifier.verify(self.tree, {}, control="")
        if not done.verdict.green:
            raise SystemExit(f"not green in {tier}: {done.verdict.void or done.verdict.red_ids[:3]}")

    def ways(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What is measured, by name."""
        found: dict[str, Callable[[], Awaitable[None]]] = {"plain": self.plain}
        for tier in self.sandboxes:
            found[f"feedback {tier}"] = lambda tier=tier: self.judged(tier, 0)  # type: ignore[misc]
            found[f"acceptance {tier}"] = lambda tier=tier: self.judged(tier, CONFIRM)  # type: ignore[misc]
        return found


class Taken(NamedTuple):
    """What something took."""

    ms: float
    """By the clock."""
    cpu_ms: float
    """Of the processors, by jumar and all that it started."""


async def timed(step: Callable[[], Awaitable[object]]) -> Taken:
    """What *step* takes."""
    before, started = spent(), time.perf_counter()
    await step()
    return Taken(1000 * (time.perf_counter() - started), 1000 * (spent() - before))


def spent() -> float:
    """Seconds of processor time so far; those of children count once they are gone."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


async def measured(subject: Subject, rounds: int) -> dict[str, list[Taken]]:
    """All rounds of each way, in turns."""
    ways = subject.ways()
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for turn in count_rounds(rounds, 1):
        for name, way in ways.items():
            took = await timed(way)
            if turn:  # the first round warms the caches of the disk, and teaches the acceptance the suite
                taken[name].append(took)
    return taken


def measure(rounds: int) -> Iterator[Figure]:
    """Yield what a verdict costs, in times of a plain run of pytest."""
    taken = anyio.run(measure_all, max(rounds // 3, 3))
    for name, ways in taken.items():
        yield median_of(f"plain pytest, {name}", [took.ms for took in ways["plain"]], "ms")
        for way, some in ways.items():
            if way != "plain":
                yield ratio_of(f"{way}, {name}", [took.ms for took in some], [took.ms for took in ways["plain"]])


async def measure_all(rounds: int) -> dict[str, dict[str, list[Taken]]]:
    """Measure every suite in every way and tier."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sandboxes: dict[str, Sandbox] = {"S0": Unconfined()}
        with suppress(BadInput):  # there is no S3 here
            sandboxes["S3"] = await choose_sandbox("S3", SandboxSurroundings(place, dict(os.environ)), unattended=False)
        for number, (name, files) in enumerate(SUITES.items()):
            subject = Subject(place / str(number), files(), sandboxes)
            await subject.prepare()
            found[name] = await measured(subject, rounds)
    return found
