"""Measures vitest kept against vitest started: by a fresh process, by a kept one after a pause and at once, in turns.

Run as `make bench ONLY=warm_vitest`; it needs node, and vitest in the folder that `JUMAR_NODE_MODULES` names. Each
verification judges another edit of the same size, sandbox and channel included, and its outcome is checked. After a
pause the processes for the tests are started already, as when a model thinks between two edits; at once they are not.
The bound: four times.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import anyio

from frame import Figure, Skipped, count_rounds, median_of, ratio_of
from jumar.core.state.settings import Suite
from jumar.ports import Sandbox
from jumar.runners.vitest import VitestRunner
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.verify.kept_process import KeptRuns
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

PAUSE = 1.0
"""Seconds in which a kept process gets ready, before anything is measured."""

HEAD = "import { expect, test } from 'vitest'\n"
RED = "test('is always red', () => { expect(1).toBe(2) })\n"
FRESH, KEPT, AT_ONCE = "fresh process", "kept, after a pause", "kept, at once"


ANSWER = 42
IMPORT = "import { answer } from './calc'\n"
ANSWERS = f"test('answers', () => {{ expect(answer()).toBe({ANSWER}) }})\n"


def tiny() -> dict[str, str]:
    """Two tests of one function."""
    return {"calc.test.js": HEAD + IMPORT + RED + ANSWERS}


def grown() -> dict[str, str]:
    """Eighty-two tests in five files, of twenty modules in TypeScript."""
    made = tiny()
    for n in range(20):
        text = f"export const part = (x: number): number => answer() + x * {n}\n"
        made[f"src/part{n}.ts"] = "import { answer } from '../calc'\n" + text
    for file in range(4):
        names = range(file * 5, file * 5 + 5)
        imports = "".join(f"import {{ part as part{n} }} from './src/part{n}'\n" for n in names)
        cases = (
            f"test.each([1, 2, 3, 4])('part {n} of %i', (x) => {{ expect(part{n}(x)).toBeLessThan(200) }})\n"
            for n in names
        )
        made[f"t{file}.test.ts"] = HEAD + imports + "".join(cases)
    return made


SUITES = {"tiny (2 tests, 1 file)": tiny, "grown (82 tests, 5 files)": grown}


class Subject:
    """One suite, judged by a fresh process and by a kept one."""

    def __init__(self, folder: Path, files: Mapping[str, str], sandbox: Sandbox) -> None:
        self.folder, self.files = folder, {"package.json": '{"type": "module"}\n', **files}
        runner, store = VitestRunner(), Store(folder / "objects")
        around = runner.surroundings(folder, os.environ)
        if around.missing:
            raise SystemExit(around.missing)
        environ = {"PATH": os.environ["PATH"]}
        self.fresh, self.kept = (
            TrustedVerifier(store, runner, Suite(), folder / name, environ=environ, around=around, sandbox=sandbox)
            for name in ("fresh", "kept")
        )
        self.warm = self.kept.kept = KeptRuns()
        self._edits = 0

    async def prepare(self) -> None:
        """Find the ids, and start the process that is kept."""
        base = self.tree(ANSWER - 1)
        expected = (await self.fresh.collect(base)).ids
        for verifier in (self.fresh, self.kept):
            verifier.base, verifier.expected = base, expected
        for _ in range(3):
            await self.judge(self.kept)

    def tree(self, answer: int) -> str:
        """The tree whose code answers *answer*, with an edit of its own that keeps the size."""
        self._edits += 1
        source = self.folder / f"source{self._edits}"
        files = {**self.files, "calc.js": f"export const answer = () => {answer} // {self._edits:06d}\n"}
        for path, text in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text, "utf-8")
        return self.fresh.store.capture(source)

    async def judge(self, verifier: TrustedVerifier) -> float:
        """Seconds of one verification."""
        answer = ANSWER + self._edits % 2
        tree = self.tree(answer)
        began = time.perf_counter()
        done = await verifier.verify(tree, {})
        took = time.perf_counter() - began
        right = next(str(r.outcome) for i, r in done.verdict.results.items() if i.endswith("::answers"))
        if right != ("passed" if answer == ANSWER else "failed"):
            raise AssertionError(f"wrong after edit {self._edits}: {right}")
        return took

    async def judge_kept(self) -> float | None:
        """Seconds of one verification by the kept process; None if a fresh one was asked, too."""
        before = self.warm.counts["warm"]
        took = await self.judge(self.kept)
        if self.warm.off:
            raise AssertionError(self.warm.off)
        return took if self.warm.counts["warm"] > before else None


async def measure_ways(subject: Subject, rounds: int) -> dict[str, list[float]]:
    """Seconds of each way, in turns."""
    took: dict[str, list[float]] = {FRESH: [], KEPT: [], AT_ONCE: []}
    await subject.prepare()
    for _ in count_rounds(rounds, 0):
        await anyio.sleep(PAUSE)
        took[FRESH].append(await subject.judge(subject.fresh))
        await anyio.sleep(PAUSE)
        for way in (KEPT, AT_ONCE):
            if (seconds := await subject.judge_kept()) is not None:
                took[way].append(seconds)
    subject.warm.release()
    return took


async def measure_suite(make: Callable[[], dict[str, str]], rounds: int) -> dict[str, list[float]]:
    """Measure one suite in all ways: seconds of each."""
    with tempfile.TemporaryDirectory(prefix="jumar-bench-") as temporary:
        folder = Path(temporary)
        around = SandboxSurroundings(folder, {"PATH": os.environ["PATH"]}, (folder,))
        sandbox = await choose_sandbox("auto", around, unattended=False)
        return await measure_ways(Subject(folder, make(), sandbox), rounds)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the seconds of each way, and how many times as fast the kept process was."""
    if shutil.which("node") is None or not Path(os.environ.get("JUMAR_NODE_MODULES", ""), "vitest").is_dir():
        raise Skipped("there is no node, or no vitest in the folder that JUMAR_NODE_MODULES names")
    for name, make in SUITES.items():
        taken = anyio.run(measure_suite, make, rounds)
        for way in (KEPT, AT_ONCE):
            # A kept process is compared with a fresh one now and then, and such a round has no time of its own.
            pairs = min(len(taken[FRESH]), len(taken[way]))
            yield median_of(f"{name}: {way}", taken[way], "s")
            yield ratio_of(f"{name}: {FRESH} against {way}", taken[FRESH][:pairs], taken[way][:pairs], better="more")
