"""Runs everything once in one process, as plain pytest does: what that says, a green has to say at least.

The first run of a green is that for the tests that it was asked for. Here held-out tests come along, in one process
with the visible ones, and tests that only the code under test has made: a further case, a function of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
from anyio import to_thread

from jumar.core.gate.challenge_rounds import Round, check_round
from jumar.core.state.verdict import (
    CHANGED,
    EXCUSED,
    Blame,
    Cause,
    Outcome,
    Report,
    TestResult,
    Verdict,
    Void,
    get_function,
    mark_flaky,
    reconcile,
)
from jumar.ports import Record
from jumar.process.child_process import Child
from jumar.process.launch import Role
from jumar.process.room import lay_out
from jumar.verify.rounds import GreenCandidate, is_pytest, lay_held_out
from jumar.verify.untouched_tree import is_untouched

NOT_GENERAL = Void(
    Cause.HELD_OUT,
    "every visible test passed, and held-out tests of the same behaviour did not: the change is not general",
)


async def judge_plainly(
    green: GreenCandidate, first: Verdict, names: Mapping[str, str], beyond: Sequence[str]
) -> Verdict:
    """Return *first*, the verdict of a green, if one plain run of everything says the same; else what it is then.

    *names* are the visible tests by the runner's names; *beyond* are those in their files that nobody asked for. With
    other runners than pytest each fresh run is of everything.
    """
    held_out = green.verifier.held_out.ids
    new = await _list_new(green, beyond)
    if not is_pytest(green.verifier) or not (held_out or new):
        return first
    report = await _run(green, new)
    if more := [i for i in await _list_new(green, report.beyond) if i not in new]:  # in the files of held-out tests
        new += more
        report = await _run(green, new)
    if void := reconcile((), report).void:
        return Verdict({}, void=Void(void.cause, hide_output(green) or void.reason))
    answered = check_round(report, Round(challenge=False), green.ids, green.accepted)
    functions, passing = {get_function(i) for i in new}, {Outcome.PASSED, *EXCUSED}
    made = (r for r in report.results if get_function(r.id) in functions and r.id not in green.ids)
    failed = {r.id: r for r in made if r.outcome not in passing}
    visible = {_get_file(i) for i in names}
    if not (names.keys() >= {*answered.unsteady} and visible.issuperset(map(_get_file, failed))):
        return Verdict({}, void=NOT_GENERAL)
    changed = mark_flaky(first, [names[i] for i in answered.unsteady], CHANGED)
    return _mark_red(changed, failed, names) if failed else changed


def hide_output(green: GreenCandidate) -> str:
    """Return the text that replaces the output of a room with held-out tests, which could quote them; else empty."""
    if not green.verifier.held_out.ids:
        return ""
    return "a fresh run with the held-out tests was not what it must be, and what it said could quote them"


def _get_file(test_id: str) -> str:
    return test_id.partition("::")[0]


async def _run(green: GreenCandidate, new: Sequence[str]) -> Report:
    """Run all tests of *green*, and the functions of *new* ones, whose cases may be called otherwise each time."""
    ids = (*green.ids, *dict.fromkeys(map(get_function, new)))
    files = tuple(dict.fromkeys(map(_get_file, green.ids)))
    for args in (green.verifier.suite.select, files):
        green.runs.append(green.tree)
        records, child = await _run_in_room(green, green.tree, {"ids": list(ids), "args": list(args)})
        report = green.verifier.runner.report(records, child.ended, child.detail)
        # What lies outside of the folders that the project names for its tests is found by its name alone.
        if {_get_file(r.id) for r in report.results}.issuperset(files):
            break
    return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))


async def _run_in_room(green: GreenCandidate, tree: str, config: Mapping[str, object]) -> tuple[list[Record], Child]:
    """Run pytest in a room of *tree*, with *config* beside what it is told in each run of the task."""
    verifier = green.verifier
    async with lay_out(verifier.store, tree, verifier.rooms) as room:
        await to_thread.run_sync(verifier.remove_own_tests, room, "")
        run = verifier.runner.verification(verifier.suite, room, green.ids)
        run = msgspec.structs.replace(run, config={**run.config, **config})
        return await verifier.run(run, room, verifier.new_output(), role=Role.CONFIRMING)


async def _list_new(green: GreenCandidate, beyond: Sequence[str]) -> list[str]:
    """Return those of *beyond* that the untouched tree does not have; all that it has around them is asked for."""
    if not beyond or is_untouched(green):
        return []
    known, broken = await _collect_known(green)
    asked = frozenset(green.ids)
    new = (i for i in beyond if known and i not in known and _get_file(i) not in broken)
    return [i for i in new if asked.issuperset(_list_near(i, known))]


def _list_near(test_id: str, known: Collection[str]) -> Collection[str]:
    """Return those of the *known* tests that are of its function, or else of its file, or else all."""
    for part in (get_function, _get_file):
        if near := [i for i in known if part(i) == part(test_id)]:
            return near
    return known


async def _collect_known(green: GreenCandidate) -> tuple[frozenset[str], frozenset[str]]:
    """Return all tests that the untouched tree has, and the files of tests that it breaks; it is asked once."""
    verifier, experience = green.verifier, green.verifier.experience
    if experience.tests_of_base is None:
        tree = lay_held_out(verifier, verifier.base)
        select = list(verifier.suite.select)
        records, child = await _run_in_room(green, tree, {"mode": "collect", "ids": [], "args": select})
        found = verifier.runner.collected(records, child.ended, child.detail)
        experience.tests_of_base = frozenset(found.ids), frozenset(found.broken)
    return experience.tests_of_base


def _mark_red(verdict: Verdict, failed: Mapping[str, TestResult], names: Mapping[str, str]) -> Verdict:
    """Return *verdict* with the visible tests red to which the tests that *failed* belong: of a function, or a file."""
    red: dict[str, TestResult] = {}
    for test_id, result in failed.items():
        native = next(iter(_list_near(test_id, names)))
        why = f"{test_id}, which the untouched tree does not have, did not pass:\n{result.excerpt}"
        red[names[native]] = TestResult(names[native], Outcome.FAILED, result.duration_ms, why, Blame.CODE)
    return Verdict({**verdict.results, **red}, verdict.green_ids.difference(red))
