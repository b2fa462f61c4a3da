"""Contract of every runner, checked on the sample projects in its module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from secrets import token_hex

import anyio
from msgspec.structs import replace

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import ERRORS, EXCUSED, Blame, Ended, Outcome
from jumar.ports import Collected, Runner, Site, Surroundings, Verification
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

WHOLE_SECONDS = 3.0
"""Seconds that the last test of the sample `several` may go on before the whole is killed."""


async def check_runner(
    runner: Runner,
    into: Path,
    suite: Suite | None = None,
    *,
    origin: Path | None = None,
    environ: Mapping[str, str] = {},
) -> None:
    """Check the contract of a `Runner` on the sample projects of its module, in processes below *into*.

    `SAMPLES` of its module maps names to projects (path -> text). Four have the same one test, in the same file:
    `passing`, `failing`, `broken_import` (its file does not import or compile) and `broken_fixture` (its set-up
    fails). `several` has three tests in one file, of which the first passes, the second fails and the last never ends.

    A runner whose one test stands for the whole suite says so by an attribute `single = True`. It is held to what can
    be told without names: its `several` has a test that passes and one that never ends.

    Args:
        runner: the adapter.
        into: an empty directory to work in.
        suite: how the samples are run, for runners that need to be told; its timeouts do not count.
        origin: the folder in which the toolchain's packages were installed (`node_modules`), if it needs any.
        environ: the environment the toolchain is found by.

    Raises:
        AssertionError: naming the clause that is broken.
    """
    suite = replace(suite or Suite(), runner=runner.name, timeout_seconds=120.0)
    around = runner.surroundings(origin or into, environ)
    hold(not around.missing, f"what the runner needs is there: {around.missing}")
    hold(around == runner.surroundings(origin or into, environ), "the surroundings of a run stay the same")
    hold(all(target.is_absolute() for target in around.links.values()), "a link leads to an absolute path")
    hold(not any(set(Path(p).parts) & {"..", "/"} for p in around.links), "a link lies in the room")
    hold(runner.grade in ("D", "X"), "the grade of the evidence is authenticated (D) or what the runner says (X)")
    trial = _Trial(runner, suite, into, around, environ)
    if getattr(runner, "single", False):
        await _check_single(trial)
        return
    await _check_outcomes(trial, await _check_names(trial))
    await _check_selection(trial)


class _Trial:
    """The samples of a runner, ready to be judged."""

    def __init__(
        self, runner: Runner, suite: Suite, into: Path, around: Surroundings, environ: Mapping[str, str]
    ) -> None:
        self.runner, self.suite = runner, suite
        self.samples: Mapping[str, Mapping[str, str]] = import_module(type(runner).__module__).SAMPLES
        self._into, self._around, self._environ = into, around, environ
        self._store = Store(into / "objects")
        self._trees = dict[str, str]()
        for name in ("passing", "failing", "broken_import", "broken_fixture", "several"):
            hold(name in self.samples, f"SAMPLES has a project called {name}")
            for path, text in self.samples[name].items():
                (into / name / path).parent.mkdir(parents=True, exist_ok=True)
                (into / name / path).write_text(text, "utf-8")
            self._trees[name] = self._store.capture(into / name)

    def build_verifier(self, suite: Suite | None = None) -> TrustedVerifier:
        """Return a new verifier."""
        room = self._into / "runs" / token_hex(4)
        return TrustedVerifier(
            self._store, self.runner, suite or self.suite, room, environ=self._environ, around=self._around
        )

    async def collect(self, name: str) -> Collected:
        """Collect the tests of a sample."""
        return await self.build_verifier().collect(self._trees[name])

    async def judge(self, name: str, ids: Sequence[str], suite: Suite | None = None) -> Verification:
        """Return the verification of a sample on *ids*."""
        verifier = self.build_verifier(suite)
        verifier.expected = tuple(ids)
        return await verifier.verify(self._trees[name], {})

    def find_sites(self, name: str, tests: Sequence[str]) -> tuple[Site, ...]:
        """Return the tests of a sample as its syntax trees show them."""
        files = self.samples[name]
        return tuple(s for path in tests if path in files for s in self.runner.sites(path, files[path].encode()))


async def _check_names(trial: _Trial) -> tuple[str, ...]:
    """Check the functions that find tests without judging them; return the id of the samples' one test."""
    runner, files = trial.runner, trial.samples["passing"]
    tests = runner.test_files(files, ())
    hold(bool(tests), "the names of test files are known")
    hold(runner.test_files(files, tests) == tests, "a test file may be selected by its path")
    found = await trial.collect("passing")
    hold(len(found.ids) == 1 and not found.anomaly, f"the id of a healthy project is collected: {found.anomaly}")
    for name in ("passing", "failing", "broken_fixture"):
        sites = trial.find_sites(name, tests)
        hold(
            tuple(s.id for s in sites) in (found.ids, ()), f"a syntax tree gives the ids that the runner gives ({name})"
        )
        lines = [len(trial.samples[name][s.id.partition("::")[0]].splitlines()) for s in sites]
        hold(all(0 < s.start <= s.end <= n for s, n in zip(sites, lines, strict=True)), "a site lies in its file")
    broken = await trial.collect("broken_import")
    if trial.find_sites("passing", tests):
        hold(broken.ids == found.ids, "a file that does not import keeps its ids")
        hold(set(broken.broken) == set(tests), "a file that does not import is named as broken")
    return found.ids


async def _check_outcomes(trial: _Trial, ids: Sequence[str]) -> None:
    """Check the four outcomes of one test."""
    want = {
        "passing": (Outcome.PASSED, (None,)),
        "failing": (Outcome.FAILED, (Blame.CODE,)),
        "broken_import": (Outcome.IMPORT_ERROR, (Blame.TEST, Blame.ABSENT)),
        "broken_fixture": (Outcome.ERROR, (Blame.TEST,)),
    }
    for name, (outcome, blames) in want.items():
        done = await trial.judge(name, (*ids, f"{ids[0]}_that_is_not_there"))
        hold(
            done.verdict.void is None and done.ended is Ended.NORMAL, f"the sample {name} can be judged: {done.verdict}"
        )
        said, absent = done.verdict.results.values()
        hold(said.outcome is outcome, f"the sample {name} comes out as {outcome}, not as {said.outcome}")
        hold(outcome is Outcome.PASSED or bool(said.excerpt), f"the sample {name} says why")
        hold(
            said.blame in blames, f"the sample {name} fell over {' or '.join(map(str, blames))}, not over {said.blame}"
        )
        hold(bool(said.absent) <= (said.blame is Blame.ABSENT), "only what is absent is named as absent")
        hold(absent.outcome not in (Outcome.PASSED, *EXCUSED), "a test that is not there has not passed")
        hold(done.executions == 1, "ids are judged together, by one process")


async def _check_single(trial: _Trial) -> None:
    """Check a runner with one test for the whole suite: it passes or not, and always ends."""
    tests = trial.runner.test_files(trial.samples["passing"], ())
    hold(bool(tests), "the names of test files are known")
    hold(not trial.find_sites("passing", tests), "no test of a file is an id of its own")
    found = {name: await trial.collect(name) for name in ("passing", "broken_import", "several")}
    ids = found["passing"].ids
    hold(len(ids) == 1 and all(f.ids == ids and not f.anomaly for f in found.values()), f"there is one id: {found}")
    for name in ("passing", "failing", "broken_import", "broken_fixture"):
        done = await trial.judge(name, (*ids, f"{ids[0]}_that_is_not_there"))
        hold(done.verdict.void is None and done.ended is Ended.NORMAL, f"the sample {name} can be judged")
        said, absent = done.verdict.results.values()
        outcome = Outcome.PASSED if name == "passing" else Outcome.FAILED
        hold(said.outcome is outcome, f"the sample {name} comes out as {outcome}, not as {said.outcome}")
        hold(said.outcome is Outcome.PASSED or bool(said.excerpt), f"the sample {name} says why")
        hold(said.blame is None, "an exit status does not tell what a test fell over")
        hold(absent.outcome not in (Outcome.PASSED, *EXCUSED), "a test that is not there has not passed")
        hold(done.executions == 1, "the suite is run once, by one process")
    await _check_end(trial, ids, ids[0])


async def _check_selection(trial: _Trial) -> None:
    """Check that the requested tests run, no others, and that they end."""
    found = await trial.collect("several")
    hold(len(found.ids) == 3 and not found.anomaly, "the sample several has three tests")  # noqa: PLR2004  as said
    first, second, endless = found.ids
    for asked, outcomes in (((first,), [Outcome.PASSED]), ((second, first), [Outcome.FAILED, Outcome.PASSED])):
        done = await trial.judge("several", asked)
        hold(done.ended is Ended.NORMAL and done.executions == 1, "nothing is run but what was asked for, all at once")
        said = [r.outcome for r in done.verdict.results.values()]
        hold(said == outcomes, f"each of the asked ids has its own outcome: {said}")
    await _check_end(trial, found.ids, endless)


async def _check_end(trial: _Trial, ids: Sequence[str], endless: str) -> None:
    """Check that the sample `several` ends, by the limit of a test or by that of the whole."""
    hurried = replace(trial.suite, timeout_seconds=WHOLE_SECONDS + 1, test_timeout_seconds=1.0)
    patient = replace(trial.suite, timeout_seconds=WHOLE_SECONDS, test_timeout_seconds=600.0)
    ended: dict[str, Verification] = {}

    async def note(name: str, asked: Sequence[str], suite: Suite) -> None:
        ended[name] = await trial.judge("several", asked, suite)

    async with anyio.create_task_group() as both:
        both.start_soon(note, "test", ids, hurried)
        both.start_soon(note, "whole", (endless,), patient)
    last = ended["test"].verdict.results[endless]
    ended_it = ended["test"].ended is Ended.NORMAL and last.outcome is Outcome.TIMEOUT and last.blame is Blame.CODE
    hold(ended_it or ended["test"].ended is Ended.TIMEOUT, f"a test that does not end is a timeout: {last}")
    whole = ended["whole"]
    hold(whole.ended is Ended.TIMEOUT, f"a run that does not end is ended, and says so: {whole.ended}")
    hold(whole.verdict.results[endless].outcome in ERRORS, "a test that did not end has not passed")


def hold(clause: bool, said: str) -> None:  # noqa: FBT001  a clause is true or it is not
    """Raise AssertionError unless *clause* holds; *said* is the clause in words."""
    if not clause:
        raise AssertionError(f"broken contract: {said}")
