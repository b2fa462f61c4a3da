"""Prepares the first event of a run: finds its files, the tests that will judge it, and which of them can."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from jumar.core.gate.excused_tests import list_passed_over
from jumar.core.state import events as ev
from jumar.core.state.run_state import EXTERNAL, HOST
from jumar.core.state.settings import Settings, Suite
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import EXCUSED, Outcome, Verdict
from jumar.errors import BadInput
from jumar.process.progress import ProgressPart, Work
from jumar.runs.setup.assembly import (
    RunPlace,
    build_settings,
    build_verifier,
    find_expected,
    find_files_of_tests,
    find_targets,
    load_runner,
    protect_expected_files,
    store_tree,
)
from jumar.runs.setup.refusals import (
    explain_no_target,
    find_namesakes,
    refuse_lost_tests,
    refuse_namesakes,
    refuse_unloaded,
    refuse_unrun_held_out,
)
from jumar.runs.tree.missing_files import find_needed_by
from jumar.sandbox.barred_places import explain_left_out, list_barred_places
from jumar.sandbox.personal_files import find_homes
from jumar.task.suites import find_judging_files
from jumar.task.task import Task
from jumar.task.untested import ELSE, SET_VERIFY, find_verify_commands
from jumar.verify.execution import SuiteKnowledge
from jumar.verify.rounds import begin_rounds
from jumar.verify.selection import Selection
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import overlay
from jumar.workspace.workspace import Workspace

WORD = re.compile(r"[\w.+-]+")
"""The first word of a command, if it is the name of a program and nothing else."""

PROGRAM_SECONDS = 30.0
"""Longest time to find out whether a program is there."""

PAIR = 2
"""A single run cannot differ from itself."""

LEAST_SECONDS = 1.0
"""Shortest time for a run of the untouched tree."""

SHARE_OF_A_TEST = 0.8
"""Share of that time which one test may take."""

NAMED = 3
"""Tests that a note names."""


async def build_first_event(task: Task, place: RunPlace, python: str | None) -> ev.RunStart:
    """Copy the task, find the ids that will judge it, and return the first event.

    Raises:
        BadInput: if there are none, or none that comes out the same twice, or nothing may be edited.
    """
    tree = store_tree(place.store, task, tell=place.tell)
    settings = replace(build_settings(task, place.store, tree, python), sandbox=place.sandbox.tier)
    collected = await find_expected(build_verifier(place, settings, tree, task.expected), task)
    found, notes = collected.ids, (*settings.notes, *list_passed_over(collected.passed_over))
    if not found:
        task = await _settle_untested(task, place, settings, tree)
    settings = replace(settings, verify=task.verify, notes=notes)
    await _refuse_missing_program(task, build_verifier(place, settings, tree, ()))
    settings = _add_path_notes(_add_judging_files(settings, task.root), task, place.environ)
    unprotected = find_targets(settings, place.store.manifest(tree))
    files = find_files_of_tests(found, place, tree, load_runner(settings.suite.runner))
    settings = protect_expected_files(settings, files)
    if task.hidden:
        settings = await add_held_out_tests(settings, task, place, tree, found)
    if task.in_place is None:
        Workspace(place.folder / "workspace", place.store).reset(tree)
    if task.gate is not Gate.REFACTOR and not find_targets(settings, place.store.manifest(tree)):
        raise BadInput(f"no file of {task.root} may be edited: {explain_no_target(task, unprotected, found)}")
    judges = task.test_policy is not TestPolicy.NEVER
    seen = await _try_tests(task, build_verifier(place, settings, tree, found)) if judges else UntouchedRuns()
    needed = find_needed_by(task, place.store.manifest(tree), seen.texts)
    return ev.RunStart(
        run=place.folder.name,
        task=task.name,
        agent=task.agent,
        model=task.model,
        test_policy=task.test_policy,
        gate=task.gate,
        budget=task.budget,
        expected=tuple(i for i in found if i not in seen.flaky),
        tree=tree,
        settings=replace(settings, flaky=seen.flaky, needed=needed, notes=(*settings.notes, *seen.notes)),
        excused=seen.excused,
    )


def _add_judging_files(settings: Settings, root: Path) -> Settings:
    """Return *settings* with the files that the commands of the run start in *root*."""
    commands = (settings.verify, settings.suite.command, settings.suite.command_for)
    found = {path for command in commands for path in find_judging_files(command, root)}
    return replace(settings, judging=tuple(sorted(found)))


def _add_path_notes(settings: Settings, task: Task, environ: Mapping[str, str]) -> Settings:
    """Return *settings* with a note on each folder of PATH that is not shown as a whole, where PATH is shown."""
    if not (task.agent == EXTERNAL or task.verify or task.suite.single or task.suite.runner == "junit"):
        return settings
    left_out = explain_left_out(environ.get("PATH", ""), list_barred_places(task.root, settings.reserved), find_homes())
    return replace(settings, notes=(*settings.notes, *left_out))


async def _settle_untested(task: Task, place: RunPlace, settings: Settings, tree: str) -> Task:
    """Return *task*, which has no test, with the gate it can have.

    In refactor mode where no gate was chosen, with a command that guards it if one can.

    Raises:
        BadInput: if nobody said what to do.
    """
    if not (task.instruction or task.verify or task.agent == HOST):
        raise BadInput(
            f"there is no test in {task.root} and no instruction: say what to do with -i '...'; {SET_VERIFY}, {ELSE}"
        )
    if task.gate_chosen and task.gate is not Gate.REFACTOR:
        return task
    task = replace(task, gate=Gate.REFACTOR)
    for command in () if task.verify else find_verify_commands(task, place.environ):
        verifier = build_verifier(place, replace(settings, verify=command), tree, ())
        # One that fails on the untouched files would send every edit back, whatever that did.
        if (await verifier.check(tree, command, settings.verify_seconds)).ok:
            return replace(task, verify=command)
    return task


async def _refuse_missing_program(task: Task, verifier: TrustedVerifier) -> None:
    """Refuse a command of `[gate] verify` whose program is not there: it would send every edit back.

    Raises:
        BadInput: if it is not, as the shell says that would run it.
    """
    words = task.verify.split()
    if not words or not WORD.fullmatch(words[0]):
        return
    if not (await verifier.check(verifier.base, f"command -v -- {words[0]}", PROGRAM_SECONDS)).ok:
        raise BadInput(f"the program {words[0]} of [gate] verify is not on PATH; install it, or name another command")


class UntouchedRuns(NamedTuple):
    """Outcome of fresh runs of the untouched tree, before the run begins."""

    flaky: tuple[str, ...] = ()
    """Ids whose outcome varies."""
    texts: tuple[str, ...] = ()
    """Excerpts of those that are red."""
    excused: Mapping[str, int] = {}
    """Outcome -> number of ids, where all are excused in each of the runs."""
    notes: tuple[str, ...] = ()
    """One line about those that took too long."""


async def _try_tests(task: Task, verifier: TrustedVerifier) -> UntouchedRuns:
    """Return what the untouched tree's tests say; begin what a green is going to be forked from.

    Raises:
        BadInput: if every outcome varies.
    """
    seen = await find_unsteady_ids(verifier, task.budget.seconds)
    if seen.flaky and len(seen.flaky) == len(verifier.expected):
        raise BadInput(f"every test of {task.root} comes out differently from run to run: none of them can judge")
    if verifier.suite.confirm:
        begin_rounds(verifier, ahead=True)  # it is ready before the agent has said anything
    return seen


async def find_unsteady_ids(verifier: TrustedVerifier, seconds: float | None = None) -> UntouchedRuns:
    """Return the ids whose outcome varies in fresh runs of the untouched tree, and what is said of the others.

    There are as many runs as confirm a green, and none where a single one does. All together take about *seconds* at
    most, and a test that took too long is not run again: it would take as long each time.
    """
    if verifier.suite.confirm < PAIR or not verifier.expected:
        return UntouchedRuns()
    until = time.monotonic() + (inf if seconds is None else seconds)
    judge, verdicts, slow = copy.copy(verifier), list[Verdict](), dict[str, float]()
    verifier.tell(Work.STEADYING, 0, 0)
    for number in range(1, verifier.suite.confirm + 1):
        judge.expected = tuple(i for i in verifier.expected if i not in slow)
        left = until - time.monotonic()
        if not judge.expected or (verdicts and left <= 0):
            break
        if slow:  # what is known of the suite is known of all of it
            judge.experience, judge.selection = SuiteKnowledge(), Selection()
        verifier.tell(ProgressPart.ROUND, number, verifier.suite.confirm)
        judge.suite = _limit_suite(verifier.suite, max(LEAST_SECONDS, left))
        verdict = (await judge.verify(judge.base, None)).verdict
        if verdicts and time.monotonic() > until:
            break  # it may have been cut short, and says nothing of what varies
        verdicts.append(verdict)
        late = (i for i, result in verdict.results.items() if result.outcome is Outcome.TIMEOUT)
        slow |= dict.fromkeys(late, judge.suite.test_timeout_seconds)
    return _compare_verdicts(verifier.expected, verdicts, slow)


def _limit_suite(suite: Suite, seconds: float) -> Suite:
    """Return *suite* for one run of at most *seconds*, in which a test that hangs is named before they are over."""
    return replace(
        suite,
        confirm=0,  # what changes is counted here
        timeout_seconds=min(suite.timeout_seconds, seconds),
        test_timeout_seconds=min(suite.test_timeout_seconds, seconds * SHARE_OF_A_TEST),
    )


def _compare_verdicts(
    expected: tuple[str, ...], verdicts: Sequence[Verdict], slow: Mapping[str, float]
) -> UntouchedRuns:
    """Return what *verdicts* on the same tree say; *slow* are the tests that timed out, each with its time."""
    greens = [verdict.green_ids for verdict in verdicts if verdict.void is None]
    always, ever = greens[0].intersection(*greens) if greens else frozenset(), frozenset[str]().union(*greens)
    texts = tuple(r.excerpt for r in verdicts[0].results.values() if r.excerpt)
    excused = verdicts[0].excused if all(verdict.untested for verdict in verdicts) else {}
    flaky = tuple(i for i in expected if i in ever - always and i not in slow)
    return UntouchedRuns(flaky, texts, excused, describe_slow(slow))


def describe_slow(slow: Mapping[str, float]) -> tuple[str, ...]:
    """Return a note on the tests *slow*, if there are any: each with the seconds after which it was stopped."""
    if not slow:
        return ()
    named = ", ".join([*slow][:NAMED]) + (f" and {len(slow) - NAMED} more" if len(slow) > NAMED else "")
    took = f"{max(slow.values()):.3g} s"
    return (f"stopped after {took} on the untouched files, where it is not run again (--test-timeout): {named}",)


async def add_held_out_tests(
    settings: Settings, task: Task, place: RunPlace, tree: str, visible: Sequence[str]
) -> Settings:
    """Return *settings* with the held-out tests of *task*: their files and their ids. *visible* are the other ids.

    Raises:
        BadInput: if there is no test in their folder, they would never run, or others would not for them.
    """
    refuse_unrun_held_out(confirm=settings.suite.confirm)
    store, hidden = place.store, place.store.capture(task.hidden) if task.hidden else ""
    files = store.manifest(hidden)
    tests = load_runner(settings.suite.runner).test_files(tuple(files), ())
    both = store.keep(overlay(store.manifest(tree), files, files.__contains__))
    namesakes = find_namesakes({i.partition("::")[0] for i in visible}, tests)
    narrow = replace(settings, suite=replace(settings.suite, select=(*tests, *namesakes.values()), confirm=0))
    found, folder = await build_verifier(place, narrow, both, ()).collect(both), task.hidden or Path()
    refuse_namesakes(folder, namesakes, found)
    refuse_unloaded(folder, tests, found)
    ids = tuple(i for i in found.ids if i.partition("::")[0] in tests)
    refuse_lost_tests(folder, visible, ids)
    before = (await build_verifier(place, narrow, both, ids).verify(both, {})).verdict.results
    # What the task itself skips says nothing; what a candidate skips is no pass.
    judging = tuple(i for i in ids if i not in before or before[i].outcome not in EXCUSED)
    return replace(settings, hidden=hidden, held_out=judging)
