"""Judges somebody's tree by the task's own tests. Only the files of that tree that were editable are used."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from jumar.core.failure_text import find_reason
from jumar.core.gate.excused_tests import explain_untested
from jumar.core.gate.grades import Grade, describe_min_grade, is_proved, list_below
from jumar.core.state.settings import Settings
from jumar.core.state.verdict import EXCUSED, Outcome, TestResult
from jumar.errors import BadInput
from jumar.ports import Verification
from jumar.process.progress import Tell, Work, ignore_progress
from jumar.runs.judging.ahead import begin_ahead
from jumar.runs.judging.plain_ahead import verify_expected_green
from jumar.runs.setup.assembly import (
    RunPlace,
    build_settings,
    build_verifier,
    find_expected_ids,
    find_files_of_tests,
    load_runner,
    protect_expected_files,
    refuse_unloaded,
    store_tree,
)
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
from jumar.runs.setup.refusals import refuse_probe
from jumar.runs.setup.selftest_cache import SelftestCache
from jumar.runs.tree.plain_suite import read_plain_ids
from jumar.runs.tree.task_tree import settle_tree
from jumar.task.task import Task, build_write_rules
from jumar.verify.mutation_probe import MutationFindings, probe
from jumar.verify.rounds import expect_rounds
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.safe_paths import replace_file
from jumar.workspace.files.trees import EntryKind, find_differences, overlay
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

CONFIRMING = ("jumar.verify.acceptance", "jumar.process.sandbox_probe")
"""Modules that take a while to import, and judge a green."""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of `jumar score`."""

    ok: bool
    """True if it is green, and proved as well as `--min-grade` asks for."""
    unproved: str
    """Reason that a green is not enough: its grade; empty where it is."""
    untested: str = ""
    """Reason that nothing was tested: each test is skipped, as on the untouched files; empty: one is not."""
    void: str
    """Reason that there is no usable evidence; empty if there is."""
    grade: str
    """Lowest of the tests that were red on the task as it came."""
    grades: Mapping[str, int]
    """Grade -> how many tests have it; empty where nothing is green."""
    below: Mapping[str, str] = {}
    """Test below the letter that `--min-grade` asks for -> its grade, the weakest first; empty where it is enough."""
    weaker: Mapping[str, str] = {}
    """Test that is not at grade A -> one line of why, as far as that is known."""
    asked: int | None
    """Requests that the code under test made of the tests, in two processes; None: they ran in one."""
    sandbox: str
    passed: int | None
    """Passed tests; None where there is no usable evidence, which is not the same as 0. So are the next two."""
    excused: Mapping[str, int] = {}
    """Outcome -> number of the tests that have it and count in `passed`: the untouched files skip them, too."""
    failed: int | None
    errors: int | None
    total: int
    held_out: tuple[str, ...] = ()
    """Tests among these that are held out."""
    red: tuple[str, ...]
    """Tests that did not pass."""
    reasons: Mapping[str, str] = {}
    """Test that did not pass -> one line of why: its error, or its outcome where there is none."""
    flaky: tuple[str, ...]
    """Tests whose outcome changed while the tree did not: no pass, and no failure either."""
    warnings: tuple[str, ...]
    probed: MutationFindings | None
    """Mutants of the change that the tests killed; None: not asked for, or not green."""
    tree: str


async def score_tree(
    task: Task, where: Path, *, python: str | None, environ: Mapping[str, str], tell: Tell = ignore_progress
) -> Scored:
    """Judge the tree in *where*: a folder, or the directory of a run, beside whose journal `score.json` is written.

    Raises:
        BadInput: if there is no such tree, or the task has no tests.
    """
    if not where.is_dir():  # noqa: ASYNC240  one look, before anything runs
        raise BadInput(f"there is no folder {where}; name the tree to be judged, or the directory of a run")
    refuse_probe(task)
    begin_ahead(task, python, environ)
    task = settle_tree(task, environ)
    is_run = (where / "events.jsonl").is_file()
    with tempfile.TemporaryDirectory(prefix="jumar-score-") as temporary:
        scratch = Path(temporary)
        around = SandboxSurroundings(scratch, environ, (task.root, where), tell=tell)
        box = await choose_sandbox(task.sandbox, around, unattended=False)
        place = replace(RunPlace.passing(scratch, environ, box), tell=tell)
        folder = _lay_out_run(where, place.folder / "candidate") if is_run else where
        scored = await _score(task, folder, place, python)
    if scored.void:
        SelftestCache(environ).forget()  # it may have been the sandbox: the next start looks at it again
    if is_run:
        replace_file(where / "score.json", msgspec.json.format(msgspec.json.encode(scored)) + b"\n")
    return scored


def _lay_out_run(run: Path, folder: Path) -> Path:
    """Lay out in *folder* the present tree of the run in *run*; return it."""
    from jumar.runs.setup.result import read_state  # noqa: PLC0415  it imports all that reads journals

    Store(find_objects_folder(run)).materialise(read_state(run).tree, folder)
    return folder


async def _score(task: Task, folder: Path, place: RunPlace, python: str | None, *, reads: bool = True) -> Scored:
    """Return the verdict on the tree in *folder*.

    With *reads* the ids are read off the task's files, where that is sure.
    """
    store = place.store
    base, given = (store_tree(store, task, where, place.tell) for where in (None, folder))
    visible = build_write_rules(build_settings(task, store, base, python))
    candidate = store.overlay(base, given, lambda path: visible.editable(path) and not visible.protected(path))
    hidden = store.capture(task.hidden) if task.hidden else ""
    own = _judge_by_hidden(task, tuple(store.manifest(hidden))) if hidden else task
    whole = _add_hidden(store, base, hidden)
    settings = build_settings(own, store, whole, python)
    plain = _read_plain_ids(store, whole, settings) if reads and not own.expected else ()
    expected = plain or await find_expected_ids(build_verifier(place, settings, whole, own.expected), own)
    if hidden:
        await _check_hidden(task, expected, build_verifier(place, settings, whole, ()), hidden)
    guard = build_write_rules(
        protect_expected_files(
            settings, find_files_of_tests(expected, place, whole, load_runner(settings.suite.runner))
        )
    )
    candidate = store.overlay(base, candidate, lambda path: guard.editable(path) and not guard.protected(path))
    ignored = find_differences(store.manifest(candidate), store.manifest(given))
    verifier = build_verifier(place, settings, whole, expected)
    expect_rounds(verifier)
    # While the first run goes on: a green needs them as soon as it is over.
    Thread(target=lambda: list(map(import_module, CONFIRMING)), name="jumar-import", daemon=True).start()
    done = await _verify_with_hidden(verifier, base, candidate, hidden)
    absent = any(result.outcome is Outcome.MISSING for result in done.verdict.results.values())
    if plain and (absent or done.verdict.void):  # perhaps it is not as plain as it looked, or pytest does not work here
        return await _score(task, folder, place, python, reads=False)
    candidate = _add_hidden(store, candidate, hidden)
    probed = await probe(verifier, whole, candidate, seed=task.seed) if task.probe and done.verdict.green else None
    scored = _build_scored(done, candidate, len(verifier.expected), probed, ignored)
    scored = replace(scored, held_out=_list_held_out(verifier, hidden))
    return _apply_min_grade(scored, done, settings.min_grade)


def _build_scored(
    done: Verification, tree: str, total: int, probed: MutationFindings | None, ignored: Iterable[str]
) -> Scored:
    """Build the score from the verdict *done* on *tree*; its files in *ignored* were not used."""
    verdict = done.verdict
    return Scored(
        ok=verdict.green,
        unproved="",
        untested=explain_untested(verdict.excused, verdict.total),
        excused=verdict.excused,
        void=f"{verdict.void.cause}: {verdict.void.reason}" if verdict.void else "",
        grade=done.grade,
        grades=dict(sorted(Counter(done.grades.values()).items())),
        weaker=done.weaker,
        asked=done.asked,
        sandbox=done.sandbox,
        passed=None if verdict.void else verdict.passed,
        failed=None if verdict.void else verdict.failed,
        errors=None if verdict.void else verdict.errors,
        total=total,
        red=verdict.red_ids,
        reasons={
            i: find_reason(verdict.results[i].excerpt) or str(verdict.results[i].outcome) for i in verdict.red_ids
        },
        flaky=verdict.flaky_ids,
        warnings=(
            *(f"{path} differs from the task's own and was not taken: it is not editable" for path in ignored),
            *done.warnings,
        ),
        probed=probed,
        tree=tree,
    )


def _apply_min_grade(scored: Scored, done: Verification, wanted: str) -> Scored:
    """Return *scored*, not as green if the evidence is weaker than the grade *wanted*."""
    if not scored.ok or is_proved(done.grade, done.reachable, wanted):
        return scored
    why = f"grade {done.grade}, and --min-grade {describe_min_grade(done.reachable, wanted)}"
    judging = (i for i, result in done.verdict.results.items() if result.outcome not in EXCUSED)
    grades = done.grades or dict.fromkeys(judging, done.grade)  # it has one for all where it was not confirmed
    return replace(scored, ok=False, unproved=why, below=list_below(grades, done.better, wanted))


def _read_plain_ids(store: Store, tree: str, settings: Settings) -> tuple[str, ...]:
    """Return the ids of *tree*, the task's own, where they can be read off its files; else empty."""
    nodes = store.manifest(tree)
    paths = tuple(path for path, node in nodes.items() if node.kind is EntryKind.FILE)
    return read_plain_ids(paths, lambda path: store.get(nodes[path].sha256), settings.suite) or ()


def _add_hidden(store: Store, tree: str, hidden: str) -> str:
    """Return *tree* with the held-out tests in it."""
    files = store.manifest(hidden) if hidden else {}
    return store.keep(overlay(store.manifest(tree), files, files.__contains__)) if files else tree


async def _verify_with_hidden(
    verifier: TrustedVerifier,
    base: str,
    candidate: str,
    hidden: str,
    excused: Mapping[str, TestResult] = MappingProxyType({}),
) -> Verification:
    """Judge *candidate*, by *verifier* for both, with the held-out tests of *hidden* added.

    They lie in no room before those in which tests are falsified, as a run could leave word for the next ones: a green
    is accepted with them, and only what is none is run with all of them at once. *excused* are those that the task
    itself skips or fails expectedly: they say nothing, as in a run.
    """
    verifier.tell(Work.JUDGING, 0, 0)
    suite, both = verifier.suite, _add_hidden(verifier.store, candidate, hidden)
    later = _list_held_out(verifier, hidden)
    first = tuple(i for i in verifier.expected if i not in set(later))
    if not (later and first and suite.confirm):
        done = await verify_expected_green(verifier, both)
        return _mark_hidden(done, hidden) if suite.confirm and done.grade != Grade.D else done
    judge = copy.copy(verifier)
    judge.base, judge.expected = base, first
    judge.held_out = verifier.held_out._replace(tree=hidden, ids=tuple(i for i in later if i not in excused))
    done = await verify_expected_green(judge, candidate)
    if done.verdict.green:
        results = {**done.verdict.results, **{i: excused.get(i) or TestResult(i, Outcome.PASSED) for i in later}}
        green_ids = done.verdict.green_ids.union(later)
        return replace(done, verdict=replace(done.verdict, results=results, green_ids=green_ids))
    verifier.suite = replace(suite, confirm=0)
    told = await verifier.verify(both, None, control=verifier.base)
    told = replace(told, warnings=(*told.warnings, *(done.warnings if done.verdict.void else ())))
    verifier.suite = suite
    silent = {i: result for i, result in told.verdict.results.items() if i in later and result.outcome in EXCUSED}
    if told.verdict.green and silent and not excused:
        return await _verify_with_hidden(verifier, base, candidate, hidden, silent)
    if told.verdict.green and done.reachable:
        return replace(done, verdict=told.verdict)  # two processes alone refused it: it is harder to judge
    return done if told.verdict.green or told.verdict.void else told


def _list_held_out(verifier: TrustedVerifier, hidden: str) -> tuple[str, ...]:
    """Return the expected tests that stand in files of *hidden*."""
    files = verifier.store.manifest(hidden) if hidden else {}
    return tuple(i for i in verifier.expected if i.partition("::")[0] in files)


def _mark_hidden(done: Verification, hidden: str) -> Verification:
    """Return *done* with `+H` behind its grade, if it is green and held-out tests judged with the others."""
    return replace(done, grade=f"{done.grade}+H") if hidden and done.verdict.green else done


async def _check_hidden(task: Task, expected: Iterable[str], verifier: TrustedVerifier, hidden: str) -> None:
    """Refuse held-out tests that are none or do not load; files are collected again if one has no *expected* test."""
    tests = verifier.runner.test_files(tuple(verifier.store.manifest(hidden)), ())
    have = {i.partition("::")[0] for i in expected}
    if not tests or not have.issuperset(tests):
        refuse_unloaded(task.hidden or Path(), tests, await verifier.collect(verifier.base))


def _judge_by_hidden(task: Task, paths: tuple[str, ...]) -> Task:
    """Return *task* judged by its held-out tests too; it expects the ids of both."""
    tests = load_runner(task.suite.runner).test_files(paths, ())
    select = (*task.suite.select, *tests) if task.suite.select else ()
    return replace(task, suite=replace(task.suite, select=select), expected=())
