"""Challenges of suites whose code is right: how often is the outcome of a test another than it must be?"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import msgspec

from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome
from jumar.ports import Verification
from jumar.runners.pytest import PytestRunner
from jumar.verify.rounds import GreenCandidate, draw_seeds, run_round
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import Upstream


@dataclass(frozen=True)
class Subject:
    """A suite that is about to be challenged."""

    name: str
    folder: Path
    """All that is made for it."""
    suite: Suite

    @property
    def root(self) -> Path:
        """Its files."""
        return self.folder / "files"


@dataclass(frozen=True)
class Figures:
    """What came out."""

    TITLES: ClassVar[str] = f"{'suite':24} tests  functions  whole/partial/none  outcomes  wrong  void"

    name: str
    counts: Counter[str]
    wrong: list[str] = field(default_factory=list)
    """Tests that came out otherwise than they had to, and why."""

    def __str__(self) -> str:
        """One line of a table."""
        c = self.counts
        strengths = "/".join(str(c[strength.name]) for strength in reversed(Strength))
        functions = sum(c[strength.name] for strength in Strength)
        counted = f"{c['outcomes']:8}  {c['wrong']:5}  {c['void']:4}"
        return f"{self.name:24} {c['tests']:5}  {functions:9}  {strengths:>11}  {counted}"


async def of_upstream(release: Upstream, cache: Path, folder: Path, python: str = "") -> Subject:
    """The suite of *release*, in *folder*; *python* has what it wants to be installed, empty is our own."""
    suite = await release.laid_out(cache, folder / "files")
    return Subject(release.called, folder, msgspec.structs.replace(suite, python=python))


def tasks(data: Path) -> Iterator[Mapping[str, Any]]:
    """The Python tasks of a folder of real ones."""
    index = json.loads((data / "index.json").read_text("utf-8"))
    yield from (task for task in index["tasks"] if task["language"] == "python")


def of_task(data: Path, task: Mapping[str, Any], folder: Path) -> Subject:
    """The suite of a real task, with its solution."""
    shutil.copytree(data / "tasks" / task["id"], folder / "files")
    shutil.copytree(data / "solutions" / task["id"], folder / "files", dirs_exist_ok=True)
    select = tuple(a for a in task["run"][3:] if not a.startswith("-"))
    limits = [float(a.partition("=")[2]) for a in task["run"] if a.startswith("--timeout=")]
    limit = limits[0] if limits else 30.0
    suite = Suite(select=select, env=task.get("env") or {}, test_timeout_seconds=limit)
    return Subject(task["id"], folder, suite)


def _read_files(root: Path, suite: Suite) -> dict[str, bytes]:
    """The files of the tests below *root*, with those that help them."""
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.py") if p.is_file()}
    tests = PytestRunner().test_files(tuple(files), suite.select)
    beside = tuple({path.rpartition("/")[0] for path in tests})
    return {p: s for p, s in files.items() if p in tests or p.startswith(beside) or "conftest" in p}


async def challenged(subject: Subject, rounds: int, random: Random) -> Figures:
    """Run the suite once as it is, and then in *rounds* in each of which a random half of its tests is falsified."""
    store = Store(subject.folder / "objects")
    tree = store.capture(subject.root)
    verifier = TrustedVerifier(store, PytestRunner(), subject.suite, subject.folder / "run", base=tree)
    verifier.expected = (await verifier.collect(tree)).ids
    first = await verifier.verify(tree, None, control="")
    accepted = _accepted(first)
    steady = tuple(
        i for i, o in accepted.items() if o in (Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED, Outcome.XPASSED)
    )
    verifier.experience.challenge = _read_files(subject.root, subject.suite)
    families = sorted({i.partition("[")[0] for i in steady})
    green = GreenCandidate(verifier, tree, tree, steady, accepted)
    figures = Figures(subject.name, Counter())
    figures.counts["tests"] = len(steady)
    for _ in range(rounds):
        chosen = frozenset(name for name in families if random.random() < 0.5)
        said, _cause = await run_round(green, Round(chosen), draw_seeds(shuffled=False))
        figures.counts["outcomes"] += len(steady)
        figures.counts["void"] += bool(said.void)
        wrong = [*said.forged, *said.unsteady]
        figures.counts["wrong"] += len(wrong)
        figures.wrong.extend(f"passed: {i}" for i in said.forged)
        figures.wrong.extend(f"another outcome: {i}" for i in said.unsteady)
        figures.wrong.extend([said.void] if said.void else [])
    figures.counts.update(strength.name for strength in green.strengths.values())
    return figures


def _accepted(first: Verification) -> dict[str, Outcome]:
    return {i: r.outcome for i, r in first.verdict.results.items()}
