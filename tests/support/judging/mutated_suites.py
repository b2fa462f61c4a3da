"""Mutants of other people's libraries, judged by forked and by started processes, and by a part of the tests."""

from __future__ import annotations

import ast
import random
import time
from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from jumar.child.analysis.mutants_main import ENDS, apply_steps
from jumar.child.analysis.mutation_operators import build_operators
from jumar.core.state.verdict import Ended, Outcome
from jumar.ports import Sandbox, Verification
from jumar.process.warm.starts import WarmStarts
from jumar.runners.pytest import PytestRunner
from jumar.verify.selection import Question, Selection, verify_selected
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import Upstream
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON

TEST_SECONDS = 3.0
"""A mutant may never come to its end."""

NEVER = 10**9
"""Forks until one is compared by the verifier itself: here all of them are, and it must not correct any."""


@dataclass
class Figures:
    """What came of the mutants of one library."""

    name: str
    mutants: int = 0
    differing: list[str] = field(default_factory=list)
    """Mutants of which a forked process said otherwise than a started one, and that one the same again."""
    wavering: int = 0
    """Mutants of which started processes do not say the same twice."""
    red: int = 0
    overturned: list[str] = field(default_factory=list)
    """Mutants that feedback kept, and that all tests in started processes show to be red."""
    kept: int = 0
    selections: int = 0
    """Mutants of which a part of the tests was run first."""
    refuted: int = 0
    """Those that this showed to be red."""
    late: list[str] = field(default_factory=list)
    """Red ones of which that part showed nothing: the other tests were run for it."""
    wrong: list[str] = field(default_factory=list)
    """Mutants of which a part said red where all tests say green."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"cold": [], "warm": [], "selected": []})
    starts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """One line."""
        cold, warm, part = (median(t) if t else 0.0 for t in self.seconds.values())
        return (
            f"{self.name}: {self.mutants} mutants, {len(self.differing)} differ, {self.wavering} waver; cold "
            f"{cold:.3f} s, warm {warm:.3f} s ({cold / warm if warm else 0:.1f}x); {self.red} red, {self.kept} kept, "
            f"{len(self.overturned)} overturned; {self.selections} selections, {self.refuted} refute in {part:.3f} s "
            f"({cold / part if part else 0:.1f}x), {len(self.late)} late, {len(self.wrong)} wrong; {dict(self.starts)}"
        )


class Subject:
    """A release whose mutants are judged."""

    def __init__(self, release: Upstream, folder: Path, sandbox: Sandbox, rng: random.Random) -> None:
        self.release, self.folder, self.rng, self.sandbox = release, folder, rng, sandbox
        self.figures = Figures(release.name)

    async def prepare(self, cache: Path) -> None:
        """Fetch it, and judge it as it is."""
        suite = replace(
            await self.release.laid_out(cache, self.folder / "tree"),
            python=PLAIN_PYTHON, test_timeout_seconds=TEST_SECONDS, timeout_seconds=120.0, confirm=0,
        )  # fmt: skip
        self.store = Store(self.folder / "objects")
        self.base = self.store.capture(self.folder / "tree")
        self.cold = TrustedVerifier(
            self.store, PytestRunner(), suite, self.folder / "cold", base=self.base, sandbox=self.sandbox,
            environ=ENVIRON, sources=self._is_source,
        )  # fmt: skip
        self.cold.expected = (await self.cold.collect(self.base)).ids
        self.warm = TrustedVerifier(
            self.store, PytestRunner(), suite, self.folder / "warm", base=self.base, sandbox=self.sandbox,
            environ=ENVIRON, sources=self._is_source, expected=self.cold.expected, warm=WarmStarts(compared=NEVER),
        )  # fmt: skip
        self.warm.selection = Selection(least_ms=0, after=0)
        for _ in range(2):  # the zygote learns from the first
            first = (await self.warm.verify(self.base, None)).verdict
        self.accepted = {i: r.outcome for i, r in first.results.items()}
        self.green = first.green_ids
        manifest = self.store.manifest(self.base)
        self.sources = [p for p, node in manifest.items() if node.kind is EntryKind.FILE and self._is_source(p)]

    def _is_source(self, path: str) -> bool:
        parts = Path(path).parts
        tests = {"test", "tests", "conftest.py", "docs", "doc", "setup.py", "examples", "benchmarks"}
        return path.endswith(".py") and not tests.intersection(parts) and not parts[-1].startswith("test_")

    def mutant(self) -> tuple[str, str]:
        """A tree with one small change, and its description."""
        steps = build_operators()
        while True:
            path = self.rng.choice(self.sources)
            text = self.store.get(self.store.manifest(self.base)[path].sha256)
            found = list(apply_steps(text, set(range(1, len(ENDS.split(text)) + 1)), steps))
            if not found:
                continue
            start, end, new, line, what = self.rng.choice(found)
            mutated = text[:start] + new + text[end:]
            try:
                same = ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(text))
            except SyntaxError:
                continue
            if not same:
                node = replace(self.store.manifest(self.base)[path], sha256=self.store.put(mutated))
                return self.store.keep({**self.store.manifest(self.base), path: node}), f"{path}:{line} {what}"

    async def judge(self) -> None:
        """Judge one mutant in all ways."""
        (tree, what), figures = self.mutant(), self.figures
        figures.mutants += 1
        cold = await self._timed("cold", self.cold, tree)
        warm = await self._timed("warm", self.warm, tree)
        figures.starts.update(warm.starts)
        if _outcomes(cold) != _outcomes(warm):
            again = await self.cold.verify(tree, self.accepted, control=self.base)
            if _outcomes(again) != _outcomes(cold):
                figures.wavering += 1
                return
            figures.differing.append(f"{what}: {_difference(cold, warm)}")
        lost, lost_warm = (self.green - done.verdict.green_ids for done in (cold, warm))
        figures.red += bool(lost)
        refuted = await self._select(tree, what, lost)
        if not refuted and not lost_warm:
            figures.kept += 1
            if lost:
                figures.overturned.append(what)

    async def _select(self, tree: str, what: str, lost: AbstractSet[str]) -> bool:
        """Run a part of the tests; whether it shows that the mutant cannot stay."""
        figures, before, began = self.figures, self.warm.runs_beside, time.perf_counter()
        question = Question(tree, self.accepted, self.base, (self.cold.expected[0],), ())
        part = await verify_selected(self.warm, self.warm.selection, question)
        taken = time.perf_counter() - began
        figures.selections += self.warm.runs_beside > before
        if part is None:
            if self.warm.runs_beside > before and lost:
                figures.late.append(what)
            return False
        figures.refuted += 1
        figures.seconds["selected"].append(taken)
        red = self.green - part.verdict.green_ids
        if not red or not red <= lost:
            figures.wrong.append(f"{what}: {sorted(red - lost)[:3]}")
        return True

    async def _timed(self, how: str, verifier: TrustedVerifier, tree: str) -> Verification:
        began = time.perf_counter()
        done = await verifier.verify(tree, self.accepted, control=self.base)
        self.figures.seconds[how].append(time.perf_counter() - began)
        return done


def _outcomes(done: Verification) -> tuple[dict[str, Outcome], Ended, str]:
    """The ruling: outcome by id, and how it ended."""
    verdict = done.verdict
    return {i: r.outcome for i, r in verdict.results.items()}, done.ended, str(verdict.void and verdict.void.cause)


def _difference(cold: Verification, warm: Verification) -> object:
    """The first ids whose outcomes differ in two rulings, and how both ended."""
    first, second = _outcomes(cold), _outcomes(warm)
    ids = [i for i in first[0] if first[0].get(i) != second[0].get(i)]
    return [(i, first[0][i], second[0].get(i)) for i in ids[:3]], first[1:], second[1:]
