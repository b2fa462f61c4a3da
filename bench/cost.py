"""What a verdict costs: plain pytest, a feedback verification in each tier, the acceptance of a green, in turns.

Run as `python bench/cost.py [--rounds N] [--where]`. All kinds of run take turns, round by round, so that a busy
machine slows them alike; the table gives medians, by the clock and of the processors. `--where` says where the time of
one verification goes. The bounds: a feedback verification takes at most 1.15 times a plain run or 60 ms more, an
acceptance at most 8 plain runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import anyio

from jumar.child.commands import check_main
from jumar.core.state.settings import Suite
from jumar.errors import BadInput
from jumar.ports import Invocation, Sandbox
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.room import lay_out
from jumar.runners.pytest import PytestRunner
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

ROUNDS = 15
CONFIRM = 3
"""As `jumar run` has it."""

FEEDBACK, MORE_MS, ACCEPTANCE = 1.15, 60.0, 8.0
"""The bounds."""


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
        self.said[tier, confirm] = f"{done.executions} runs, grade {done.grade}"

    said: dict[tuple[str, int], str] = field(default_factory=dict)

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


def median_of(some: Sequence[Taken]) -> Taken:
    """The median by either measure."""
    return Taken(median(t.ms for t in some), median(t.cpu_ms for t in some))


async def timed(step: Callable[[], Awaitable[object]]) -> Taken:
    """What *step* takes."""
    before, started = spent(), time.perf_counter()
    await step()
    return Taken(1000 * (time.perf_counter() - started), 1000 * (spent() - before))


def spent() -> float:
    """Seconds of processor time so far; those of children count once they are gone."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


async def measured(subject: Subject, rounds: int) -> dict[str, Taken]:
    """The median of each way."""
    ways = subject.ways()
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            took = await timed(way)
            if turn:  # the first round warms the caches of the disk, and teaches the acceptance the suite
                taken[name].append(took)
    return {name: median_of(some) for name, some in taken.items()}


def shown(name: str, medians: Mapping[str, Taken], said: Mapping[tuple[str, int], str]) -> bool:
    """Print the rows of one suite; whether all bounds hold."""
    plain, held = medians["plain"], True
    print(f"{name}: plain pytest {plain.ms:.0f} ms, {plain.cpu_ms:.0f} ms of the processors")
    for way, took in medians.items():
        kind, _, tier = way.partition(" ")
        if kind == "plain":
            continue
        ratio, more = took.ms / plain.ms, took.ms - plain.ms
        within = ratio <= ACCEPTANCE if kind == "acceptance" else ratio <= FEEDBACK or more <= MORE_MS
        held = held and within
        note = said[tier, CONFIRM] if kind == "acceptance" else ""
        cpu = f"processors {took.cpu_ms:6.0f} ms  x {took.cpu_ms / plain.cpu_ms:5.2f}"
        print(
            f"  {way:15} {took.ms:6.0f} ms  x {ratio:5.2f}  {more:+6.0f} ms  {cpu}  {'' if within else 'OVER '}{note}"
        )
    return held


async def where(subject: Subject, rounds: int) -> None:
    """Print where the time of one verification goes: each step alone, as the verifier does it."""
    python = sys.executable
    nothing = Invocation(argv=(python, "-I", "-S", "-B", check_main.__file__), config={"command": ":"})
    store, rooms = Store(subject.folder / "objects"), subject.folder / "rooms"
    steps: dict[str, list[Taken]] = {}

    async def noted(name: str, step: Callable[[], Awaitable[object]]) -> None:
        steps.setdefault(name, []).append(await timed(step))

    async def started_with(*options: str) -> None:
        subprocess.run([python, *options], check=True)  # noqa: ASYNC221, S603  it is alone

    async def laid() -> None:
        async with lay_out(store, subject.tree, rooms):
            pass

    async def held(tier: str) -> None:
        async with lay_out(store, subject.tree, rooms) as room:
            confinement = Confinement(room=room, seconds=20.0, sandbox=subject.sandboxes[tier])
            async with run_confined(nothing, confinement) as child:
                while await child.receive() is not None:
                    pass

    for _ in range(rounds):
        await noted("start of python -I -S", lambda: started_with("-I", "-S", "-B", "-c", "pass"))
        await noted("start of python -I", lambda: started_with("-I", "-B", "-c", "pass"))
        await noted("the same, and import pytest", lambda: started_with("-I", "-B", "-c", "import pytest"))
        await noted("a room laid out and removed", laid)
        for tier in subject.sandboxes:
            await noted(f"a command that does nothing, in {tier}", lambda tier=tier: held(tier))  # type: ignore[misc]
    for name, some in steps.items():
        took = median_of(some)
        print(f"  {name:42} {took.ms:6.1f} ms  processors {took.cpu_ms:6.1f} ms")


async def main(rounds: int, *, explain: bool) -> bool:
    """Measure every suite; whether all bounds hold."""
    held = True
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sandboxes: dict[str, Sandbox] = {"S0": Unconfined()}
        try:
            sandboxes["S3"] = await choose_sandbox("S3", SandboxSurroundings(place, dict(os.environ)), unattended=False)
        except BadInput as missing:
            print(f"S3 is not measured: {missing}")
        for number, (name, files) in enumerate(SUITES.items()):
            subject = Subject(place / str(number), files(), sandboxes)
            await subject.prepare()
            held = shown(name, await measured(subject, rounds), subject.said) and held
            if explain:
                await where(subject, rounds)
    return held


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--where", action="store_true")
    given = parser.parse_args()
    sys.exit(0 if anyio.run(lambda: main(given.rounds, explain=given.where)) else 1)
