"""Warm verification against cold: forked and started processes in turns, with plain pytest beside them.

Run as `python bench/warm.py [--rounds N] [--python PATH]`. All kinds of run take turns, round by round, so that a busy
machine slows them alike; the table gives medians by the clock, and ratios of medians. Goals: a warm verification 10
times as fast as a cold one for a trivial suite, and 20 times where the tests import much; a green that is accepted at
most as long as one plain run. What imports much is a suite of somebody who works with numbers, in an environment that
is made for it from the package registry, pinned.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio

from cost import Subject, tiny
from frame import Figure, Skipped, count_rounds, median_of, ratio_of
from jumar.errors import BadInput, Infra
from jumar.importing.from_pypi import make_venv
from jumar.ports import Sandbox
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WarmStarts
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.sandbox.unconfined import Unconfined

ROUNDS = 11
CONFIRM = 3


class Imports(NamedTuple):
    """Imports that come on top of the trivial suite."""

    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Packages of an environment of their own, as `PKG==VER`; empty: they have none."""

    def write_files(self) -> dict[str, str]:
        """Return the files of the suite."""
        lines = "".join(f"import {name}\n" for name in self.modules)
        return {**tiny(), "app.py": lines + tiny()["app.py"]}


SUITES: Mapping[str, Imports] = {
    "trivial": Imports(),
    "heavy imports": Imports(
        ("numpy", "pandas", "scipy.stats", "matplotlib.pyplot"),
        ("numpy==2.4.6", "pandas==3.1.1", "scipy==1.17.1", "matplotlib==3.11.2"),
    ),
}


class Measured:
    """One suite in all ways."""

    def __init__(self, subject: Subject, python: str) -> None:
        self.subject, self.python = subject, python
        # One pool for each tier, as a run has one: a spare process is made ready for what was asked before.
        self.pools = {tier: WarmPool(unpaid=0) for tier in subject.sandboxes}
        self.starts = {tier: WarmStarts(pool) for tier, pool in self.pools.items()}
        self.taken: dict[str, list[float]] = {}

    async def plain(self) -> None:
        """Run pytest as a person does."""
        argv = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        folder = self.subject.folder / "files"
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
        subprocess.run(argv, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: ASYNC221, S603  it is alone

    async def score(self) -> None:
        """Run `jumar score` on a change of the code, from the start of its process to its end."""
        folder, changed = self.subject.folder / "files", self.subject.folder / "changed"
        if not changed.exists():
            shutil.copytree(folder, changed)
            with (changed / "app.py").open("a") as file:
                file.write("# changed\n")
        jumar = str(Path(sys.executable).with_name("jumar"))
        argv = [jumar, "score", str(folder), str(changed), "--python", self.python, "--quiet"]
        subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC221, S603  it is alone

    def judged(self, tier: str, confirm: int, *, warm: bool) -> Callable[[], Awaitable[None]]:
        """Return what runs one verification, with *confirm* an accepted green."""

        async def judge() -> None:
            self.subject.verifiers[tier].warm = self.starts[tier] if warm else None
            await self.subject.judged(tier, confirm)

        return judge

    def ways(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return what is measured, by name."""
        found: dict[str, Callable[[], Awaitable[None]]] = {"plain": self.plain, "score": self.score}
        for tier in self.subject.sandboxes:
            for kind, confirm in (("feedback", 0), ("accepted", CONFIRM)):
                for warm in (False, True):
                    found[f"{kind} {tier} {'warm' if warm else 'cold'}"] = self.judged(tier, confirm, warm=warm)
        return found

    async def measure(self, rounds: int) -> None:
        """Take turns; the first two rounds are for caches, and for the zygotes to learn what is imported."""
        for turn in count_rounds(rounds, 2):
            for name, way in self.ways().items():
                started = time.perf_counter()
                await way()
                if turn > 1:
                    self.taken.setdefault(name, []).append(1000 * (time.perf_counter() - started))

    def list_figures(self, name: str) -> Iterator[Figure]:
        """Yield the figures of this suite."""
        taken = self.taken
        yield median_of(f"{name}: plain pytest", taken["plain"], "ms")
        yield ratio_of(f"{name}: jumar score against plain pytest", taken["score"], taken["plain"])
        for tier in self.subject.sandboxes:
            for kind in ("feedback", "accepted"):
                cold, warm = taken[f"{kind} {tier} cold"], taken[f"{kind} {tier} warm"]
                yield median_of(f"{name}: {kind} in {tier}, warm", warm, "ms")
                yield ratio_of(f"{name}: {kind} in {tier}, cold against warm", cold, warm, "more")
                yield ratio_of(f"{name}: {kind} in {tier}, warm against plain pytest", warm, taken["plain"])


async def measure_suite(name: str, rounds: int, python: str) -> list[Figure]:
    """Measure a suite; the interpreter is *python* where it needs none of its own.

    Raises:
        Skipped: if its packages cannot be had here.
    """
    imports = SUITES[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sandboxes: dict[str, Sandbox] = {"S0": Unconfined()}
        with suppress(BadInput):
            sandboxes["S3"] = await choose_sandbox("S3", SandboxSurroundings(place, dict(os.environ)), unattended=False)
        root = place / "suite"
        try:
            interpreter = str(await make_venv(root, imports.packages)) if imports.packages else python
        except (BadInput, Infra) as missing:
            raise Skipped(f"{name}: {missing}") from missing
        subject = Subject(root, imports.write_files(), sandboxes, python=interpreter)
        await subject.prepare()
        measured = Measured(subject, interpreter)
        await measured.measure(rounds)
        for pool in measured.pools.values():
            pool.close()
    return list(measured.list_figures(name))


def measure_suites(rounds: int, python: str) -> Iterator[Figure]:
    """Yield the figures of one suite after the other: what was measured stands where the next one is skipped."""
    for name in SUITES:
        yield from anyio.run(measure_suite, name, rounds, python)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the figures; the trivial suite is of our own interpreter."""
    yield from measure_suites(rounds, sys.executable)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    for figure in measure_suites(given.rounds, given.python):
        print(f"{figure.name:60} {figure.value:8.2f} {figure.unit:3} ({figure.low:.2f} to {figure.high:.2f})")
