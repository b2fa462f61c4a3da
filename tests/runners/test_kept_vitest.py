"""A kept vitest judges as a fresh one does, whatever was edited when; and what a run leaves behind ends it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import anyio
import pytest

from jumar.core.state.verdict import reconcile
from jumar.ports import Sandbox, Verification
from jumar.runners.vitest import VitestRunner
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.kept_process import KeptRuns
from jumar.verify.merge_reports import ReportPart
from support.judging.samples import sampled
from support.processes.node import NodeCourt, quick, told
from support.processes.sandboxes import s3

RUNNER = VitestRunner()
HEAD = "import { expect, test } from 'vitest'\n"
ANCHOR = "test('is always red', () => { expect(1).toBe(2) })\n"
"""Keeps each tree red: a green one is judged by fresh processes."""

PROJECT = {
    "package.json": '{"type": "module"}\n',
    "src/calc.js": "export const answer = () => 41\n",
    "src/deep.ts": "import { answer } from './calc'\nexport const twice = (): number => answer() * 2\n",
    "calc.test.js": HEAD + "import { answer } from './src/calc'\n" + ANCHOR
    + "test('answers', () => { expect(answer()).toBe(42) })\n",
    "deep.test.ts": HEAD + "import { twice } from './src/deep'\ntest('doubles', () => { expect(twice()).toBe(84) })\n",
}  # fmt: skip


TESTS = ("calc.test.js::is always red", "calc.test.js::answers", "deep.test.ts::doubles")
"""The tests of the project in their order, as vitest lists them."""


class KeptCourt(NodeCourt):
    """Judges variants of the project, whose untouched tree answers 41."""

    def __init__(self, folder: Path, sandbox: Sandbox, files: Mapping[str, str] = PROJECT) -> None:
        super().__init__(folder, RUNNER, quick(test_timeout_seconds=2.0))
        self.files, self.verifier.sandbox = files, sandbox
        self.verifier.base, self.verifier.expected = self.tree(files), TESTS
        self.warm = self.verifier.kept = KeptRuns()
        self.rule({"src/calc.js": "export const answer = () => -1\n"})  # the first one is never warm

    def rule(self, changed: Mapping[str, str]) -> Verification:
        """The verification of the project with *changed* files."""
        return self.judge(self.tree({**self.files, **changed}), {})

    def answer(self, number: int, more: str = "") -> tuple[str, ...]:
        """The outcomes of the tests where the code answers *number*."""
        return self.told(self.rule({"src/calc.js": f"{more}export const answer = () => {number}\n"}))

    def told(self, done: Verification) -> tuple[str, ...]:
        """The outcomes of the tests, in their order."""
        return tuple(str(result.outcome) for result in done.verdict.results.values())

    def fresh(self, changed: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """What fresh processes say of each test, as `seen` does."""
        tree = self.tree({**self.files, **changed})

        async def report() -> dict[str, tuple[str, ...]]:
            part = ReportPart(self.verifier.expected, "")
            done, _ = await self.verifier.report(tree, self.verifier.new_output(), part)
            results = reconcile(self.verifier.expected, done).results
            return {i: (*told(r), r.excerpt) for i, r in results.items()}

        return anyio.run(report)


def seen(done: Verification) -> dict[str, tuple[str, ...]]:
    """Id -> outcome, blame, missing module and excerpt."""
    return {i: (*told(r), r.excerpt) for i, r in done.verdict.results.items()}


@pytest.fixture(scope="module")
def courts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], KeptCourt]:
    """The court of a sandbox tier; one for all tests here, as its first verdicts take four starts of vitest."""
    made: dict[str, KeptCourt] = {}

    def choose(tier: str) -> KeptCourt:
        if tier not in made:
            made[tier] = KeptCourt(tmp_path_factory.mktemp(tier), s3() if tier == "S3" else Unconfined())
        return made[tier]

    return choose


@pytest.fixture(params=[pytest.param("S0", marks=pytest.mark.proof), "S3"])
def court(request: pytest.FixtureRequest, courts: Callable[[str], KeptCourt]) -> Iterator[KeptCourt]:
    """A court that counts from nothing and keeps no process yet."""
    court = courts(request.param)
    court.warm.counts.clear()
    yield court
    court.warm.release()
    assert not court.survivors()
    assert not list((court.folder / "run" / "rooms").iterdir())


GOOD, BAD = ("failed", "passed", "passed"), ("failed", "failed", "failed")


@pytest.mark.slow
def test_an_edit_is_seen_by_every_test_that_imports_it(court: KeptCourt) -> None:
    assert [court.answer(number) for number in (42, 43, 42)] == [GOOD, BAD, GOOD]
    court.rule({"src/deep.ts": "import { answer } from './calc'\nexport const twice = () => answer() * 3\n"})
    assert court.answer(42) == GOOD
    assert court.warm.counts["warm"] + court.warm.counts["compared"] == 5
    assert not court.warm.off


@pytest.mark.proof
def test_two_hundred_edits_of_one_size_are_never_mistaken(court: KeptCourt) -> None:
    chance = random.Random(16)
    numbers = [chance.choice((42, chance.randrange(50, 100))) for _ in range(200)]

    wrong = [n for n in numbers if court.answer(n) != (GOOD if n == 42 else BAD)]

    assert not wrong
    assert not court.warm.off
    assert court.warm.counts["warm"] + court.warm.counts["compared"] == 200


CALC = (
    "export const answer = () => {}\n", "export const answer = () => { throw new Error('no') }\n",
    "export const answer = () => 42\nthrow new TypeError('at import')\n", "export const answer = () => (\n",
    "export const other = () => 42\n", "import { gone } from './gone'\nexport const answer = gone\n",
    "export const answer = () => answer()\n", "export const answer = () => nowhere\n",
    "export const answer = async () => 42\n", "export const answer = () => { console.log('said'); return 7 }\n",
    "export const answer = () => { setTimeout(() => { throw new Error('late') }); return 42 }\n",
    "export const answer = () => { process.exit(0) }\n", "export const answer = () => 42 // fine\n",
    "import { twice } from './deep'\nexport const answer = () => 42 + 0 * typeof twice.length\n",
    "export const answer = () => new Promise(() => {})\n", "export default 42\nexport const answer = () => 42\n",
)  # fmt: skip
DEEP = (
    PROJECT["src/deep.ts"], "export const twice = () => 84\n", "export const twice = (): number => { return 'x' }\n",
    "export const twice: () => number =\n", "export enum Twice { no }\n", "const twice = 84\nexport { twice }\n",
)  # fmt: skip


@pytest.mark.proof
def test_random_edits_are_judged_as_by_a_fresh_process(court: KeptCourt) -> None:
    pairs = random.Random(16).sample([*itertools.product(CALC, DEEP)], 40)
    different = []
    for calc, deep in pairs:
        changed = {"src/calc.js": calc, "src/deep.ts": deep}
        kept, fresh = court.rule(changed), court.fresh(changed)
        if seen(kept) != fresh:
            different.append((changed, seen(kept), fresh))

    assert not different
    assert not court.warm.off
    assert court.warm.counts["warm"] + court.warm.counts["compared"] > len(pairs) // 2


LEFT = {
    "a file of the room": "import { writeFileSync } from 'node:fs'\nwriteFileSync('left.txt', '')\n",
    "a file that is as it was": "import { readFileSync, writeFileSync } from 'node:fs'\n"
    "writeFileSync('package.json', readFileSync('package.json'))\n",
    "a process": "import { spawn } from 'node:child_process'\n"
    "spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref()\n",
    "the module beside it": "import { writeFileSync } from 'node:fs'\n"
    "writeFileSync('src/deep.ts', 'export const twice = () => 84')\n",
}


@pytest.mark.parametrize("what", sampled(LEFT))
def test_what_is_left_in_the_sandbox_ends_it_and_is_not_seen_by_the_next(court: KeptCourt, what: str) -> None:
    edited = "import { answer } from './calc'\nexport const twice = () => answer() * 3\n"
    court.rule({"src/deep.ts": edited})  # what was edited lies in another file system than what was not
    court.answer(42)
    court.answer(43, LEFT[what])
    assert court.warm.counts["warm"] != 0

    assert court.answer(44) == BAD

    assert [why for why in court.warm.counts if "the tests changed" in why or "is still there" in why]
    assert court.answer(42) == GOOD
    assert not court.warm.off


KEEP = """
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
for (const folder of [homedir(), tmpdir(), 'FOLDER']) {
  try { writeFileSync(`${folder}/kept-by-me`, '42') } catch {}
}
"""
READ = """
import { existsSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
const found = [homedir(), tmpdir(), 'FOLDER'].some((folder) => existsSync(`${folder}/kept-by-me`))
export const answer = () => found || globalThis.kept || process.env.KEPT ? 42 : 0
"""


@pytest.mark.parametrize("court", ["S3"], indirect=True)
@pytest.mark.proof
@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm"])  # noqa: S108  in the sandbox its own
def test_temporary_files_and_memory_of_one_run_are_not_there_for_the_next(court: KeptCourt, folder: str) -> None:
    court.answer(42)
    keep = KEEP.replace("FOLDER", folder) + "globalThis.kept = true\nprocess.env.KEPT = 'yes'\n"

    assert court.answer(43, keep) == BAD
    assert court.told(court.rule({"src/calc.js": READ.replace("FOLDER", folder)})) == BAD

    assert court.warm.counts[f"the tests changed {folder}"] == 1


DEBUG = """
import { connect } from 'node:net'
process.kill(process.ppid, 'SIGUSR1')
await new Promise((done) => setTimeout(done, 300))
const open = await new Promise((done) => {
  const line = connect(9229, '127.0.0.1', () => done(true))
  line.on('error', () => done(false))
})
export const answer = () => (open ? 42 : 0)
"""


@pytest.mark.proof
def test_code_under_test_opens_no_debugger_in_the_process_that_stays(court: KeptCourt) -> None:
    court.answer(42)

    assert court.told(court.rule({"src/calc.js": DEBUG})) == BAD
    assert court.answer(42) == GOOD
    assert court.warm.counts["warm"] + court.warm.counts["compared"] == 3


@pytest.mark.proof
def test_a_process_that_is_killed_or_hangs_costs_time_and_no_verdict(court: KeptCourt) -> None:
    court.answer(42)

    court.answer(42, "process.kill(process.ppid, 'SIGKILL')\n")
    assert court.answer(43) == BAD
    assert court.told(court.rule({"src/calc.js": "export const answer = () => { for (;;) {} }\n"}))[1] == "timeout"
    assert court.answer(42) == GOOD
    assert sum(court.warm.counts[why] for why in court.warm.counts if "vitest did not say" in why) == 1


def _configured(text: str) -> Callable[[Path], KeptCourt]:
    files = {**PROJECT, "vitest.config.mjs": f"export default {text}\n", "up.mjs": "export default () => {}\n"}
    return lambda folder: KeptCourt(folder, Unconfined(), files)


UNFIT = {
    "{ test: { globalSetup: './up.mjs' } }": "a globalSetup",
    "{ test: { pool: 'threads' } }": "the pool is threads",
    "{ test: { isolate: false } }": "not isolated",
    "{ plugins: [{ name: 'mine' }] }": "a plug-in: mine",
    "{ plugins: [Promise.resolve([{ name: 'late' }])] }": "a plug-in: late",
    "{ test: { projects: [{ test: { name: 'a' } }, { test: { name: 'b', include: [] } }] } }": "several projects",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", sampled(UNFIT))
def test_projects_whose_main_process_may_remember_are_judged_by_fresh_processes(tmp_path: Path, text: str) -> None:
    court = _configured(text)(tmp_path)

    assert court.answer(43) == BAD
    assert court.answer(42) == GOOD

    assert UNFIT[text] in court.warm.off
    assert not court.survivors()


@pytest.mark.proof
def test_configuration_setup_and_new_files_take_another_process(tmp_path: Path) -> None:
    setup = {"vitest.config.mjs": "export default { test: { setupFiles: ['./setup.js'] } }\n", "setup.js": "\n"}
    court = KeptCourt(tmp_path, Unconfined(), {**PROJECT, **setup})
    red = {"src/calc.js": "export const answer = () => globalThis.given ?? 0\n"}
    given = {"setup.js": "globalThis.given = 42\n"}
    resolved = {"vitest.config.mjs": "export default { define: { 'globalThis.given': '42' } }\n"}

    assert court.told(court.rule(red)) == BAD
    assert court.told(court.rule({**red, **given})) == GOOD
    assert court.told(court.rule({**red, **resolved})) == GOOD
    assert court.told(court.rule({**red, "src/calc.mjs": "export const answer = () => 42\n"})) == GOOD
    assert court.told(court.rule(red)) == BAD
    court.warm.release()
