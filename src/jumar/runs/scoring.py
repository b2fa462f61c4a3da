"""Judges somebody's tree by the task's own tests. Only the files of that tree that were editable are used."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from threading import Thread

import msgspec
from msgspec.structs import replace

from jumar.core.failure_text import find_reason
from jumar.core.gate.excused_tests import explain_untested, list_passed_over
from jumar.core.gate.grades import describe_min_grade, is_proved, list_below
from jumar.core.state.settings import Settings
from jumar.core.state.verdict import EXCUSED, Outcome
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS
from jumar.ports import Verification
from jumar.process.progress import Tell, ignore_progress
from jumar.runs.candidate import describe_ignored, store_candidate
from jumar.runs.held_out_score import (
    add_hidden,
    check_hidden,
    judge_by_hidden,
    list_held_out,
    verify_with_hidden,
)
from jumar.runs.judging.ahead import begin_ahead
from jumar.runs.setup.assembly import (
    RunPlace,
    build_settings,
    build_verifier,
    find_expected,
    find_files_of_tests,
    load_runner,
    protect_expected_files,
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
from jumar.workspace.files.safe_paths import replace_file
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store

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
    with tempfile.TemporaryDirectory(prefix="jumar-score-") as temporary:
        scratch = Path(temporary)
        around = SandboxSurroundings(scratch, environ, (task.root, where), tell=tell)
        box = await choose_sandbox(task.sandbox, around, unattended=False)
        place = replace(RunPlace.passing(scratch, environ, box), tell=tell)
        base = store_tree(place.store, task, None, tell)
        scored = await _score(task, (base, store_candidate(task, where, place, base)), place, python)
    if scored.void:
        SelftestCache(environ).forget()  # it may have been the sandbox: the next start looks at it again
    if (where / EVENTS).is_file():
        replace_file(where / "score.json", msgspec.json.format(msgspec.json.encode(scored)) + b"\n")
    return scored


async def _score(
    task: Task, trees: tuple[str, str], place: RunPlace, python: str | None, *, reads: bool = True
) -> Scored:
    """Return the verdict on the second of *trees*; the first is the task's own.

    With *reads* the ids are read off the task's files, where that is sure.
    """
    store, (base, given) = place.store, trees
    visible = build_write_rules(build_settings(task, store, base, python))
    candidate = store.overlay(base, given, lambda path: visible.editable(path) and not visible.protected(path))
    hidden = store.capture(task.hidden) if task.hidden else ""
    own = judge_by_hidden(task, tuple(store.manifest(hidden))) if hidden else task
    whole = add_hidden(store, base, hidden)
    settings = build_settings(own, store, whole, python)
    plain = _read_plain_ids(store, whole, settings) if reads and not own.expected else ()
    collected = None if plain else await find_expected(build_verifier(place, settings, whole, own.expected), own)
    expected, passed_over = (collected.ids, list_passed_over(collected.passed_over)) if collected else (plain, [])
    if hidden:
        before = build_verifier(place, build_settings(task, store, base, python), base, task.expected)
        await check_hidden(task, expected, before, build_verifier(place, settings, whole, ()), hidden)
    guard = build_write_rules(
        protect_expected_files(
            settings, find_files_of_tests(expected, place, whole, load_runner(settings.suite.runner))
        )
    )
    candidate = store.overlay(base, candidate, lambda path: guard.editable(path) and not guard.protected(path))
    ignored = describe_ignored(*(store.manifest(tree) for tree in (candidate, given, base)))
    verifier = build_verifier(place, settings, whole, expected)
    expect_rounds(verifier)
    # While the first run goes on: a green needs them as soon as it is over.
    Thread(target=lambda: list(map(import_module, CONFIRMING)), name="jumar-import", daemon=True).start()
    done = await verify_with_hidden(verifier, base, candidate, hidden)
    absent = any(result.outcome is Outcome.MISSING for result in done.verdict.results.values())
    if plain and (absent or done.verdict.void):  # perhaps it is not as plain as it looked, or pytest does not work here
        return await _score(task, trees, place, python, reads=False)
    candidate = add_hidden(store, candidate, hidden)
    probed = await probe(verifier, whole, candidate, seed=task.seed) if task.probe and done.verdict.green else None
    scored = _build_scored(done, candidate, len(verifier.expected), probed, ignored)
    scored = replace(scored, held_out=list_held_out(verifier, hidden), warnings=(*scored.warnings, *passed_over))
    return _apply_min_grade(scored, done, settings.min_grade)


def _build_scored(
    done: Verification, tree: str, total: int, probed: MutationFindings | None, ignored: Iterable[str]
) -> Scored:
    """Build the score from the verdict *done* on *tree*; *ignored* says which files were not used."""
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
        warnings=(*ignored, *done.warnings),
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
