"""Runs a green once as a person would, by `python -m pytest`: what that says, a green has to say at least.

Nothing is hidden or set there that is in other runs. Held-out tests come along, in one process with the visible ones,
and tests that only the code under test has made: a further case, a function of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from jumar.child import programs, start
from jumar.child.pytest.import_paths import TESTS_OF_PYTHON
from jumar.core.gate.challenge_rounds import Round, check_round
from jumar.core.state.verdict import (
    EXCUSED,
    Blame,
    Broken,
    Cause,
    Ended,
    Outcome,
    Report,
    TestResult,
    Verdict,
    Void,
    get_file,
    get_function,
    reconcile,
)
from jumar.ports import Invocation, Record
from jumar.process.child_process import Child
from jumar.process.launch import Role
from jumar.process.records import build_report
from jumar.process.room import lay_out
from jumar.verify.collection import collect_tests
from jumar.verify.merge_reports import PlainReport, split_ids
from jumar.verify.naming.test_names import SHARED
from jumar.verify.rounds import GreenCandidate, is_pytest, lay_held_out
from jumar.verify.two_process import APART
from jumar.verify.untouched_tree import is_untouched

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

NOT_GENERAL = Void(
    Cause.HELD_OUT,
    "every visible test passed, and in fresh runs with held-out tests of the same behaviour some did not: the change "
    "is not general, or comes out differently each time",
)

FAILED_APART = Void(
    Cause.HELD_OUT,
    "every visible test passed, and held-out tests of the same behaviour did not where the code is in a process of its "
    "own: the change is not general, or what it answers cannot be seen from another process (a file that it was not "
    "handed)",
)

NOT_PLAIN = Void(
    Cause.HELD_OUT,
    "in one plain run of pytest with all tests, visible and held-out ones, some did not pass, or a file did not load; "
    "which, and what they said, could quote held-out tests",
)

CUT_SHORT = (
    "in a fresh run in which another test was falsified, and failed, it was skipped, or the run ended: where a project "
    "ends its session or skips tests when one fails, nothing can prove them"
)
"""Reason for no green where tests cannot be challenged one without the other."""

PASSING = frozenset({Outcome.PASSED, *EXCUSED})
"""Outcomes with which plain pytest ends well."""


async def judge_plainly(
    green: GreenCandidate, first: Verdict, names: Mapping[str, str], beyond: Sequence[str]
) -> Verdict:
    """Return *first*, the verdict of a green, if one plain run says the same; else what it is then.

    *names* are the visible tests by the runner's names; *beyond* are those in their files that nobody asked for. With
    other runners than pytest each fresh run is a plain one.
    """
    held_out = green.verifier.held_out.ids
    if not is_pytest(green.verifier):
        return first
    new = await _list_new(green, beyond)
    ahead = None if new else green.verifier.plain_ahead
    known = await ahead(green.runs) if ahead else None
    report, broken, whole = known or await run_plainly(green, new)
    if more := [i for i in await _list_new(green, report.beyond) if i not in new]:  # in the files of held-out tests
        new += more
        report, broken, whole = await run_plainly(green, new)
    judged, failed = report, {**_find_failed(green, report, new), **broken}
    if report.distributed and not failed:
        judged = await _distribute(green, whole)
        new += await _list_new(green, [r.id for r in judged.results if r.id not in green.ids])
        failed = {**_find_failed(green, judged, new), **await _list_newly_broken(green, judged)}
    if void := reconcile((), report).void or reconcile((), judged).void:
        return Verdict({}, void=Void(void.cause, hide_output(green) or void.reason))
    if failed and held_out:  # the code under test has seen them: its output could quote them, as could names of tests
        return Verdict({}, void=NOT_PLAIN)
    return _mark_red(first, failed, names) if failed else first


def _find_failed(green: GreenCandidate, report: Report, new: Sequence[str]) -> dict[str, str]:
    """Return the tests of *green* and the *new* ones that did not pass in *report*, each with why."""
    fallen = {r.id: r.excerpt for r in report.results if r.outcome not in PASSING}
    said = {**{get_function(i): why for i, why in reversed(fallen.items())}, **fallen}
    failed = check_round(report, Round(challenge=False), green.ids, green.accepted).unsteady
    functions = {get_function(i) for i in new}
    made = (i for i in fallen if i not in green.ids and get_function(i) in functions)
    return {i: said.get(i) or said.get(get_function(i)) or report.detail or "it did not run" for i in (*failed, *made)}


def may_run_beside(green: GreenCandidate) -> bool:
    """Return whether the plain run of *green* may go on beside its rounds.

    Held-out tests are not shown as they are before they were challenged; below S2 processes share ports; the parts of a
    longer suite take all cores.
    """
    verifier = green.verifier
    alone = is_pytest(verifier) and not verifier.held_out.ids and verifier.sandbox.tier in APART
    return alone and len(split_ids(green.ids, green.took)) == 1


def hide_output(green: GreenCandidate) -> str:
    """Return the text that replaces the output of a room with held-out tests, which could quote them; else empty."""
    if not green.verifier.held_out.ids:
        return ""
    return "a fresh run with the held-out tests was not what it must be, and what it said could quote them"


async def run_plainly(green: GreenCandidate, new: Sequence[str] = ()) -> PlainReport:
    """Run all tests of *green*, and the functions of *new* ones, whose cases may be called otherwise each time."""
    whole = bool(green.verifier.held_out.ids or new) or await _asks_for_all(green)
    ids = (*green.ids, *dict.fromkeys(map(get_function, new)))
    files = tuple(dict.fromkeys(map(get_file, green.ids)))
    config = {"ids": list(ids), "whole": whole}
    report = await _run_once(green, {**config, "args": list(green.verifier.suite.select if whole else files)})
    broken = await _list_newly_broken(green, report)
    found, passed = {get_file(r.id) for r in report.results}, {r.outcome for r in report.results} <= PASSING
    if whole and report.ended is Ended.NORMAL and passed and not broken and not found.issuperset(files):
        # What lies outside of the folders that the project names for its tests is found by its name alone.
        report = await _run_once(green, {**config, "whole": False, "args": list(files)})
    # What was asked for and broke is red by itself.
    return PlainReport(report, {path: why for path, why in broken.items() if path not in files}, whole)


async def _run_once(green: GreenCandidate, config: Mapping[str, object]) -> Report:
    """Run the tree of *green*, with *config* beside what pytest is told in each run of the task."""
    records, child = await _start(green, config)
    report = green.verifier.runner.report(records, child.ended, child.detail)
    return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))


async def _distribute(green: GreenCandidate, whole: bool) -> Report:  # noqa: FBT001  as above
    """Run all tests of *green* distributed as the project says: by pytest-xdist."""
    args = green.verifier.suite.select if whole else dict.fromkeys(map(get_file, green.ids))
    config = {"distributed": True, "whole": whole, "args": list(args)}
    records, child = await _start(green, config)
    # Each worker may run each test: what one of them says of it is not taken back by another one.
    results = {record[1]: record for record in records if record[0] == "result" and record[2] in PASSING}
    results.update((record[1], record) for record in records if record[0] == "result" and record[2] not in PASSING)
    records = [record for record in records if record[0] != "result" or results[record[1]] is record]
    return build_report(records, child.ended, child.detail)


async def _start(green: GreenCandidate, config: Mapping[str, object]) -> tuple[list[Record], Child]:
    """Run `python -m pytest` itself with *config* in a fresh room, beside our plug-in that reports.

    Pytest is never forked there, but what starts it may be: a fork has what the untouched tree imported, the hashes of
    strings of the rounds before it, and the root of the project behind Python's own modules.
    """
    verifier = green.verifier
    green.runs.append(green.tree)
    async with lay_out(verifier.store, green.tree, verifier.rooms) as room:
        await to_thread.run_sync(verifier.remove_own_tests, room, green.tree)
        run = verifier.runner.verification(verifier.suite, room, green.ids)
        run = msgspec.structs.replace(run, config={**run.config, **config})
        return await verifier.run(_build_start(run, verifier), room, verifier.new_output(), role=Role.CONFIRMING)


def _build_start(run: Invocation, verifier: TreeRunner) -> Invocation:
    """Return *run* as one that starts `python -m pytest`, with what the untouched tree says of its path."""
    before = verifier.store.manifest(verifier.base)
    # A root that has such modules may not be the first on the path: pytest itself would import them.
    renamed = any(path.partition("/")[0] != TESTS_OF_PYTHON for path in _list_namesakes(before))
    known = [*{path.partition("/")[0] for path in before if "/" in path}, *(["."] if renamed else [])]
    told = {"own_folders": verifier.sandbox.tier == "S3", "renamed": renamed, "known": known, "env": run.env}
    argv = (*run.argv[:-2], *start.build_command(programs.PLAIN))
    return msgspec.structs.replace(run, argv=argv, config={**run.config, **told})


def _list_namesakes(paths: Iterable[str]) -> Iterator[str]:
    """Yield those of *paths* that are modules at the root with a name of one of Python's own."""
    for path in paths:
        head, _, rest = path.partition("/")
        is_module = rest == "__init__.py" or (not rest and head.endswith(".py"))
        if is_module and head.removesuffix(".py") in sys.stdlib_module_names:
            yield path


async def _asks_for_all(green: GreenCandidate) -> bool:
    """Return whether the task asks for all tests of the untouched tree. There may be files without one that must load.

    Files whose names are not those of tests may have others like them: doctests, names of the project's own.
    """
    verifier = green.verifier
    if is_untouched(green):
        return False
    asked, paths = {get_file(i) for i in green.ids}, verifier.store.manifest(verifier.base)
    files = {*verifier.runner.test_files(paths, verifier.suite.select)}
    folders = {folder for file in asked for folder in PurePosixPath(file).parents}
    shared = [p for p in map(PurePosixPath, paths) if p.name == SHARED and p.parent not in folders]
    if asked == files and not shared:
        return True
    known, _ = await _collect_known(green)
    return known.issubset(green.ids)


async def _list_newly_broken(green: GreenCandidate, report: Report) -> dict[str, str]:
    """Return what broke in *report* and did not on the untouched tree: what is asked for, not for that reason.

    Where the task asks for all tests there are, a file has to load that lacks something of the code under test: no test
    of it may have been known.
    """
    if not report.broken or is_untouched(green):
        return {}
    known, before = await _collect_known(green)
    asked, whole = {get_file(i) for i in green.ids}, known.issubset(green.ids)

    def is_known(path: str, found: Broken) -> bool:
        if path not in before:
            return False
        return before[path].why == found.why if path in asked else not whole or found.blame is Blame.TEST

    return {path: found.why for path, found in report.broken.items() if not is_known(path, found)}


async def _list_new(green: GreenCandidate, beyond: Sequence[str]) -> list[str]:
    """Return those of *beyond* that the untouched tree does not have; all that it has around them is asked for.

    Of a held-out file all are: those that are left out are skipped there on the untouched tree.
    """
    if not beyond or is_untouched(green):
        return []
    known, _ = await _collect_known(green)
    asked, hidden = frozenset(green.ids), {get_file(i) for i in green.verifier.held_out.ids}

    def is_new(test_id: str) -> bool:
        return bool(known) and test_id not in known and asked.issuperset(_list_near(test_id, known))

    return [i for i in beyond if get_file(i) in hidden or is_new(i)]


def _list_near(test_id: str, known: Collection[str]) -> Collection[str]:
    """Return those of the *known* tests that are of its function, or else of its file, or else all."""
    for part in (get_function, get_file):
        if near := [i for i in known if part(i) == part(test_id)]:
            return near
    return known


async def _collect_known(green: GreenCandidate) -> tuple[frozenset[str], Mapping[str, Broken]]:
    """Return all tests that the untouched tree has, and the files and folders that it breaks; it is asked once."""
    verifier, experience = green.verifier, green.verifier.experience
    if experience.tests_of_base is None:
        found, broken = await collect_tests(verifier, lay_held_out(verifier, verifier.base))
        experience.tests_of_base = frozenset(found.ids), {**broken, **found.broken}
    return experience.tests_of_base


def _mark_red(verdict: Verdict, failed: Mapping[str, str], names: Mapping[str, str]) -> Verdict:
    """Return *verdict* with the visible tests red to which what *failed* belongs: of a function, or a file, or any."""
    red: dict[str, TestResult] = {}
    for test_id, reason in failed.items():
        native = test_id if test_id in names else next(iter(_list_near(test_id, names)))
        what = " did not pass in one plain run of pytest, after it had passed before"
        if test_id not in names:
            new = ", which the untouched tree does not have, did not pass"
            what = new if "::" in test_id else " breaks when it is loaded"
        red[names[native]] = TestResult(names[native], Outcome.FAILED, 0, f"{test_id}{what}:\n{reason}", Blame.CODE)
    return Verdict({**verdict.results, **red}, verdict.green_ids.difference(red))
