"""Mutants of other people's libraries, judged by forked and by started processes, and by a part of the tests."""

from __future__ import annotations

import ast
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from jumar.child.analysis.mutants_main import ENDS, apply_steps
from jumar.child.analysis.mutation_operators import build_operators
from jumar.core.state.verdict import Ended
from jumar.ports import Sandbox, Verification
from jumar.process.warm.starts import WarmStarts
from jumar.runners.pytest import PytestRunner
from jumar.verify.selection import Selection
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import Upstream
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON

TEST_SECONDS = 5.0
"""A mutant may never come to its end."""


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
    refuted: int = 0
    """Red ones that a part of the tests showed to be red."""
    wrong: list[str] = field(default_factory=list)
    """Mutants of which a part said something else than all tests."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"cold": [], "warm": [], "selected": []})
    starts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """One line."""
        cold, warm, part = (median(t) if t else 0.0 for t in self.seconds.values())
        return (
            f"{self.name}: {self.mutants} mutants, {len(self.differing)} differ, {self.wavering} waver; cold "
            f"{cold:.3f} s, warm {warm:.3f} s ({cold / warm if warm else 0:.1f}x); {self.refuted} of {self.red} red by "
            f"a part in {part:.3f} s ({cold / part if part else 0:.1f}x), {len(self.wrong)} wrong; {dict(self.starts)}"
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
            environ=ENVIRON, sources=self._is_source, expected=self.cold.expected, warm=WarmStarts(),
        )  # fmt: skip
        self.warm.selection = Selection(least_ms=0, after=0)
        for _ in range(2):  # the zygote learns from the first
            self.accepted = {i: r.outcome for i, r in (await self.warm.verify(self.base, None)).verdict.results.items()}
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
            again = await self.cold.verify(tree, self.accepted)
            if _outcomes(again) == _outcomes(cold):
                figures.differing.append(what)
            else:
                figures.wavering += 1
            return
        lost = set(self.accepted) - cold.verdict.green_ids
        if cold.ended is Ended.NORMAL and lost:
            figures.red += 1
        part = await self._timed("selected", self.warm, tree, first=(self.cold.expected[0],))
        if part.selected:
            figures.refuted += 1
            ran = {i for i, r in part.verdict.results.items() if i not in part.verdict.green_ids}
            if not ran or not ran <= lost:
                figures.wrong.append(what)
        else:
            figures.seconds["selected"].pop()

    async def _timed(self, how: str, verifier: TrustedVerifier, tree: str, first: Sequence[str] = ()) -> Verification:
        began = time.perf_counter()
        done = await verifier.verify(tree, self.accepted, control=self.base, first=first)
        self.figures.seconds[how].append(time.perf_counter() - began)
        return done


def _outcomes(done: Verification) -> tuple[object, ...]:
    """The ruling: outcome by id, and how it ended."""
    verdict = done.verdict
    return {i: r.outcome for i, r in verdict.results.items()}, done.ended, verdict.void and verdict.void.cause
