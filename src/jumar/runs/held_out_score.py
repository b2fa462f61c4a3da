"""Scores a tree with the held-out tests of its task, which no room has before those in which tests are falsified."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from jumar.core.gate.grades import Grade
from jumar.core.state.verdict import EXCUSED, Outcome, TestResult
from jumar.ports import Verification
from jumar.process.progress import Work
from jumar.runs.judging.plain_ahead import verify_expected_green
from jumar.runs.setup.assembly import find_expected_ids, load_runner
from jumar.runs.setup.refusals import find_namesakes, refuse_lost_tests, refuse_namesakes, refuse_unloaded
from jumar.task.task import Task
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import overlay
from jumar.workspace.store.object_store import Store


def add_hidden(store: Store, tree: str, hidden: str) -> str:
    """Return *tree* with the held-out tests in it."""
    files = store.manifest(hidden) if hidden else {}
    return store.keep(overlay(store.manifest(tree), files, files.__contains__)) if files else tree


async def verify_with_hidden(
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
    suite, both = verifier.suite, add_hidden(verifier.store, candidate, hidden)
    later = list_held_out(verifier, hidden)
    first = tuple(i for i in verifier.expected if i not in set(later))
    if not (later and first and suite.confirm):
        done = await verify_expected_green(verifier, both)
        return mark_hidden(done, hidden) if suite.confirm and done.grade != Grade.D else done
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
        return await verify_with_hidden(verifier, base, candidate, hidden, silent)
    if told.verdict.green and done.reachable:
        return replace(done, verdict=told.verdict)  # two processes alone refused it: it is harder to judge
    return done if told.verdict.green or told.verdict.void else told


def list_held_out(verifier: TrustedVerifier, hidden: str) -> tuple[str, ...]:
    """Return the expected tests that stand in files of *hidden*."""
    files = verifier.store.manifest(hidden) if hidden else {}
    return tuple(i for i in verifier.expected if i.partition("::")[0] in files)


def mark_hidden(done: Verification, hidden: str) -> Verification:
    """Return *done* with `+H` behind its grade, if it is green and held-out tests judged with the others."""
    return replace(done, grade=f"{done.grade}+H") if hidden and done.verdict.green else done


async def check_hidden(
    task: Task, expected: Sequence[str], before: TrustedVerifier, both: TrustedVerifier, hidden: str
) -> None:
    """Refuse held-out tests that are none, do not load, or take the place of others.

    *before* judges the task without them, and *both* with them. Files are collected again if one has no *expected*
    test, or the name or the place of another one.
    """
    tests, folder = both.runner.test_files(tuple(both.store.manifest(hidden)), ()), task.hidden or Path()
    have = {i.partition("::")[0] for i in expected}
    namesakes = find_namesakes(have.difference(tests), tests)
    if not tests or namesakes or not have.issuperset(tests):
        found = await both.collect(both.base)
        refuse_namesakes(folder, namesakes, found)
        refuse_unloaded(folder, tests, found)
    if not set(before.runner.test_files(tests, task.suite.select)).isdisjoint(before.store.manifest(before.base)):
        refuse_lost_tests(folder, await find_expected_ids(before, task), expected)


def judge_by_hidden(task: Task, paths: tuple[str, ...]) -> Task:
    """Return *task* judged by its held-out tests too; it expects the ids of both."""
    tests = load_runner(task.suite.runner).test_files(paths, ())
    select = (*task.suite.select, *tests) if task.suite.select else ()
    return replace(task, suite=replace(task.suite, select=select), expected=())
