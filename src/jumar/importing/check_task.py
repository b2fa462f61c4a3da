"""Checks whether a task can be worked on: red untouched, green with its reference, tests that depend on the code."""

from __future__ import annotations

import ast
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from jumar.core.failure_text import find_reason
from jumar.core.gate.excused_tests import explain_untested
from jumar.core.gate.grades import REACHABLE, describe_min_grade, is_proved
from jumar.core.gate.write_rules import WriteRules
from jumar.core.state.claims import can_provide
from jumar.core.state.settings import Settings
from jumar.core.state.verdict import Blame, TestResult, Verdict
from jumar.errors import BadInput, Infra
from jumar.ports import Sandbox
from jumar.runs.candidate import lay_over
from jumar.runs.setup.assembly import (
    RunPlace,
    build_settings,
    build_verifier,
    find_files_of_tests,
    find_targets,
    load_runner,
    protect_expected_files,
    refuse_unknown_expected,
    store_tree,
)
from jumar.runs.setup.first_event import add_held_out_tests
from jumar.runs.setup.refusals import explain_no_target
from jumar.runs.tree.task_tree import settle_tree
from jumar.task.task import Task, build_write_rules
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import EntryKind, Node

ROUNDS = 3
"""Times that the untouched tree is judged: a test that does not come out the same each time cannot judge."""


class TaskValidity(msgspec.Struct, frozen=True, kw_only=True):
    """Findings on one task."""

    task: str
    valid: bool
    problems: tuple[str, ...]
    """Reasons why it is not valid, one sentence each."""
    warnings: tuple[str, ...] = ()
    """Weaknesses that leave it valid."""
    tests: int = 0
    """Number of tests that judge it."""
    red: tuple[str, ...] = ()
    """Tests that are red on the untouched tree, in every round."""
    flaky: tuple[str, ...] = ()
    """Tests that came out differently on one and the same tree."""
    vacuous: tuple[str, ...] = ()
    """Tests that pass although the code is gone."""
    reference: str = "none"
    """`green`, `red` or `void` with the reference solution; `none`: there is none."""
    grade: str = ""
    """Grade of the reference's green."""
    seconds: float = 0.0


class CheckResources(NamedTuple):
    """Parts of the machine that a check may use."""

    sandbox: Sandbox
    environ: Mapping[str, str]
    python: str | None = None


class TaskOutcomes(NamedTuple):
    """Outcomes of the trees of a task."""

    ids: tuple[str, ...]
    rounds: tuple[Verdict, ...]
    """Of the untouched tree."""
    emptied: Verdict
    """Of the tree without code."""
    solved: Verdict | None
    """With the reference, accepted as a run's green is; None: there is no reference."""
    grade: str
    reachable: str = ""
    """The best grade that one of its tests could have had, and has not with the reference; empty: `grade`."""
    held_out: bool = False
    """True if the task has held-out tests."""
    targets: tuple[str, ...] = ()
    """Files that may be edited."""


async def examine_task(task: Task, means: CheckResources) -> TaskValidity:
    """Judge *task* untouched, without its code, and with its reference, and return the findings."""
    began = time.monotonic()
    try:
        with TemporaryDirectory(prefix="jumar-check-") as scratch:
            found = await _judge(settle_tree(task, means.environ), Path(scratch), means)
    except (BadInput, Infra) as fault:
        return TaskValidity(task=task.name, valid=False, problems=(str(fault),), seconds=_count_seconds(began))
    return replace(judge_outcomes(task.name, found), seconds=_count_seconds(began))


def _count_seconds(began: float) -> float:
    return round(time.monotonic() - began, 2)


async def _judge(task: Task, scratch: Path, means: CheckResources) -> TaskOutcomes:
    place = RunPlace.passing(scratch, means.environ, means.sandbox)
    store, start = place.store, store_tree(place.store, task)
    settings = build_settings(task, store, start, means.python)
    fixed = _apply_reference(place, task, start, build_write_rules(settings))
    verifier = build_verifier(place, settings, start, task.expected)
    ids = await _collect(task, verifier, fixed)
    own = find_files_of_tests(ids, place, fixed, load_runner(settings.suite.runner))
    unprotected = find_targets(settings, store.manifest(start))
    settings = protect_expected_files(settings, own)
    if not find_targets(settings, store.manifest(start)):
        raise BadInput(f"no file of {task.root} may be edited: {explain_no_target(task, unprotected, ids)}")
    if task.hidden:
        settings = await add_held_out_tests(settings, task, place, start, ids)
    verifier = build_verifier(place, settings, start, ids)
    # The reference is no cheat: where it is harder to judge than the task was, its grade is to be told all the same.
    verifier.held_out = verifier.held_out._replace(best_grade=False)
    once = build_verifier(place, replace(settings, suite=replace(settings.suite, confirm=0)), start, ids)
    rounds = [(await once.verify(start, None)).verdict for _ in range(ROUNDS)]
    emptied = (await once.verify(_remove_code(place, settings, fixed), None)).verdict
    solved = await verifier.verify(fixed, None) if task.reference else None
    found = TaskOutcomes(ids, tuple(rounds), emptied, None, "", targets=find_targets(settings, store.manifest(fixed)))
    if solved is None:
        return found
    return found._replace(
        solved=solved.verdict, grade=solved.grade, reachable=solved.reachable, held_out=task.hidden is not None
    )


def _apply_reference(place: RunPlace, task: Task, start: str, rules: WriteRules) -> str:
    """Return the tree *start* with the reference over it: only files that may be edited, and no test."""
    if task.reference is None:
        return start
    store = place.store
    fix = lay_over(store, start, task.reference)
    return store.overlay(start, fix, lambda path: rules.editable(path) and not rules.protected(path))


async def _collect(task: Task, verifier: TrustedVerifier, fixed: str) -> tuple[str, ...]:
    """Return the test ids of *task*: those it names, else those its suite has with the reference."""
    await refuse_unknown_expected(verifier, fixed)
    found = await verifier.collect(fixed)
    if found.anomaly or not found.ids:
        whys = ((path, each.why.strip()) for path, each in found.broken.items() if each.why.strip())
        broken = next((f"{path} does not load: {find_reason(why) or why.splitlines()[-1]}" for path, why in whys), "")
        raise BadInput(f"no test can be found: {found.anomaly or broken or f'there is none in {task.root}'}")
    return found.ids


def _remove_code(place: RunPlace, settings: Settings, tree: str) -> str:
    """Return *tree* with every file that may be edited emptied; in Python, with functions that only raise."""
    store = place.store
    manifest = dict(store.manifest(tree))
    for path in find_targets(settings, manifest):
        if path in manifest and manifest[path].kind is EntryKind.FILE:
            left = remove_bodies(store.get(manifest[path].sha256)) if path.endswith(".py") else b""
            manifest[path] = Node(EntryKind.FILE, store.put(left), manifest[path].executable)
    return store.keep(manifest)


def remove_bodies(source: bytes) -> bytes:
    """Return Python *source* in which every function only raises; imports from it still work.

    What does not parse comes back empty.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return b""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = ast.parse("raise NotImplementedError").body
    return ast.unparse(module).encode()


def judge_outcomes(name: str, found: TaskOutcomes) -> TaskValidity:
    """Return the validity of the task called *name* by its outcomes."""
    problems = []
    void = next((v.void for v in found.rounds if v.void is not None), None)
    if void is not None:
        problems.append(f"the untouched tree cannot be judged: {void.reason}")
    greens = [v.green_ids for v in found.rounds if v.void is None]
    always, ever = (
        (frozenset.intersection(*greens), frozenset[str]().union(*greens)) if greens else (frozenset(), frozenset())
    )
    flaky = tuple(i for i in found.ids if i in ever - always)
    red = tuple(i for i in found.ids if i not in ever)
    vacuous = tuple(i for i in found.ids if found.emptied.void is None and i in found.emptied.green_ids)
    if flaky:
        problems.append(f"{len(flaky)} tests are flaky on the untouched tree: {_format_ids(flaky)}")
    untested = explain_untested(found.rounds[0].excused, len(found.ids))
    if untested:
        problems.append(untested)
    elif void is None and not red:
        problems.append("nothing is red before any work: an agent that does nothing solves it")
    if len(vacuous) == len(found.ids):
        problems.append(f"every test passes although the code is gone: {_format_ids(vacuous)}")
    return TaskValidity(
        task=name,
        valid=not (problems := [*problems, *_judge_reference(found.solved)]),
        problems=tuple(problems),
        warnings=(*_warn_of_unanswerable(found, red), *_warn(found, vacuous)),
        tests=len(found.ids),
        red=red,
        flaky=flaky,
        vacuous=vacuous,
        reference="none" if found.solved is None else _name_outcome(found.solved),
        grade=found.grade if found.solved is not None and found.solved.green else "",
    )


def _warn_of_unanswerable(found: TaskOutcomes, red: tuple[str, ...]) -> tuple[str, ...]:
    """Return a warning if a test of *red* is broken itself, or none fails by the code, as far as that is known."""
    if not red or found.rounds[-1].void is not None or (found.solved is not None and found.solved.green):
        return ()
    results = found.rounds[-1].results
    reasons = [_explain_unanswerable(results[test_id], found.targets) for test_id in red]
    if all(reasons):
        return (f"no red test fails by the code under test, so no edit can answer one: {red[0]} {reasons[0]}",)
    broken = [f"{i} {why}" for i, why in zip(red, reasons, strict=True) if results[i].blame is Blame.TEST]
    more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
    return (f"no edit can answer every red test: {broken[0]}{more}",) if broken else ()


def _explain_unanswerable(result: TestResult, targets: tuple[str, ...]) -> str:
    """Return why no edit of *targets* can answer *result*; empty: one may, or it is not known."""
    if result.blame is Blame.TEST:
        return f"is broken itself ({find_reason(result.excerpt) or result.outcome})"
    if result.blame is not Blame.ABSENT or not result.absent:
        return ""
    if place := next((path for path in targets if _stands_beside(path, result.absent)), ""):
        folder = place[: place.rindex(result.absent.partition(".")[0]) - 1]
        return f"misses {result.absent!r}, though {place} has it: put {folder} on PYTHONPATH, in [task] env"
    if any(can_provide(path, result.absent) for path in targets):
        return ""
    return f"misses {result.absent!r}, which no file that may be edited provides; install it, or add the file"


def _stands_beside(path: str, module: str) -> bool:
    """Return whether *path*, in the tree, has *module* in a folder from which it could be imported: not the top."""
    wanted = module.replace(".", "/")
    return "/" not in module and path.endswith((f"/{wanted}.py", f"/{wanted}/__init__.py"))


def _judge_reference(solved: Verdict | None) -> list[str]:
    if solved is None or solved.green:
        return []
    if solved.void is not None:
        return [f"with the reference it cannot be judged: {solved.void.reason}"]
    if solved.untested:
        return []  # as is the untouched tree, of which that is said
    flaky = f", {len(solved.flaky_ids)} of them flaky" if solved.flaky_ids else ""
    red = (*solved.red_ids, *solved.flaky_ids)
    return [f"{len(red)} tests fail with the reference{flaky}: {_format_ids(red)}"]


def _warn(found: TaskOutcomes, vacuous: tuple[str, ...]) -> tuple[str, ...]:
    warnings = []
    if 0 < len(vacuous) < len(found.ids):
        counted = f"{len(vacuous)} tests pass" if vacuous[1:] else "1 test passes"
        warnings.append(f"{counted} although the code is gone: {_format_ids(vacuous)}")
    if found.solved is not None and found.solved.green and not is_proved(found.grade, found.reachable, REACHABLE):
        asked = describe_min_grade(found.reachable, REACHABLE)
        warnings.append(
            f"the reference is green at grade {found.grade}, and --min-grade {asked}: it would be `unproved`, unless "
            "`[run] min_grade` asks for less"
        )
    if found.held_out and found.solved is not None and found.solved.green and not found.grade.endswith("+H"):
        warnings.append(
            f"held-out tests agree with the reference, and nothing proves it (grade {found.grade}, no +H): code that "
            "means to cheat could be green, too"
        )
    if found.solved is None:
        warnings.append("no reference: nobody knows whether it can be solved ([task] reference, or --references)")
    return tuple(warnings)


def _name_outcome(verdict: Verdict) -> str:
    return "void" if verdict.void is not None else "green" if verdict.green else "red"


def _format_ids(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")  # noqa: PLR2004  a few, for people
