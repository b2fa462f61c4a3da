"""Lists the tests of a tree, also those in files that the tree cannot load.

What such a file has is read off its syntax tree, or, where pytest runs it, found with placeholders for what the code
under test lacks: in one run all of them are true, in another one false. Tests that these do not have, or do not run,
would be asked for in vain: a mark excuses them here, the platform, or the options of the project, and not the code.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread
from msgspec.structs import replace

from jumar.core.state.verdict import Broken, Ended, Outcome, get_file, get_function
from jumar.ports import Collected
from jumar.process import records as decode
from jumar.process.room import lay_out
from jumar.verify.merge_reports import run_side_by_side
from jumar.verify.naming.test_names import complete_collected
from jumar.verify.rounds import is_pytest

if TYPE_CHECKING:
    from jumar.process.child_process import Child
    from jumar.verify.execution import TreeRunner

TEST_SECONDS, RUN_SECONDS = 1, 20
"""Seconds for a test with placeholders, which may wait for something in vain, and for all of them."""


class Supplied(NamedTuple):
    """Tests of files that were loaded with placeholders."""

    cases: Mapping[str, Collection[str]]
    """Function -> its cases."""
    skipped: Collection[str]
    xfailed: Collection[str]
    broken: Collection[str]
    """Files and folders that did not load, with placeholders neither; `""` stands for all."""


async def collect_tests(verifier: TreeRunner, tree: str) -> tuple[Collected, Mapping[str, Broken]]:
    """Return the tests of *tree* by the names of the runner, and the files and folders that the runner cannot load.

    With an anomaly the tests are no evidence.

    Raises:
        BadInput: if the runner cannot work here.
    """
    runner, suite = verifier.runner, verifier.suite
    async with lay_out(verifier.store, tree, verifier.rooms) as room:
        records, child = await verifier.run(runner.collection(suite, room), room, verifier.new_output())
        found = _explain_timeout(runner.collected(records, child.ended, child.detail), verifier, child)
        # Files are named as in the tree: the room is going to be gone.
        found = replace(found, anomaly=found.anomaly.replace(f"{room}/", ""))
        whole = await to_thread.run_sync(complete_collected, found, room, runner, suite.select)
    if not is_pytest(verifier) or not whole.broken:
        return whole, found.broken
    one, two = await run_side_by_side([partial(_collect_supplied, verifier, tree, truth) for truth in (True, False)])
    ids = [*found.ids]
    for path in whole.broken:
        static = [i for i in whole.ids[len(found.ids) :] if get_file(i) == path]
        ids += static if _is_broken(path, one) or _is_broken(path, two) else _list_agreed(path, (one, two))
    return replace(whole, ids=tuple(dict.fromkeys(ids))), found.broken


def _explain_timeout(found: Collected, verifier: TreeRunner, child: Child) -> Collected:
    """Return *found*; if the time was over before the tests were listed, say what was running, and how to give more."""
    if child.ended is not Ended.TIMEOUT or not found.anomaly:
        return found
    suite = verifier.suite
    what = f"`{suite.command}`" if suite.command else verifier.runner.name
    longer = "give it longer by --timeout, or [tests] timeout_seconds"
    return replace(found, anomaly=f"{what} was {child.detail}, before it had named the tests: {longer}")


async def _collect_supplied(verifier: TreeRunner, tree: str, truth: bool) -> Supplied:  # noqa: FBT001  not named by `partial`
    """Run *tree* with placeholders that are true, or are not, in a process of its own."""
    cold = copy.copy(verifier)
    cold.warm = None
    async with lay_out(verifier.store, tree, verifier.rooms) as room:
        run = verifier.runner.collection(verifier.suite, room)
        seconds = min(TEST_SECONDS, verifier.suite.test_timeout_seconds)
        config = {**run.config, "placeholders": truth, "quiet": True, "patience": (seconds, {})}
        records, child = await cold.run(replace(run, config=config), room, verifier.new_output(), RUN_SECONDS)
    found = decode.parse_collection(records, child.ended, child.detail)
    results = decode.build_report(records, child.ended, child.detail).results
    cases: dict[str, list[str]] = {}
    for test_id in found.ids:
        cases.setdefault(get_function(test_id), []).append(test_id)
    skipped, xfailed = ({r.id for r in results if r.outcome is o} for o in (Outcome.SKIPPED, Outcome.XFAILED))
    return Supplied(cases, skipped, xfailed, {*found.broken} if any(r[0] == "collected" for r in records) else {""})


def _is_broken(path: str, run: Supplied) -> bool:
    return any(not where or path == where or path.startswith(where + "/") for where in run.broken)


def _list_agreed(path: str, runs: tuple[Supplied, Supplied]) -> Iterable[str]:
    """Return the tests of *path* that both *runs* have and do not excuse. What one has is for the code to say.

    Of a function whose cases are others in each run the code makes them: all that it makes are asked for.
    """
    one, two = runs
    failing = {*one.xfailed, *two.xfailed}
    for function in (i for i in one.cases if get_file(i) == path and i in two.cases):
        here, there = one.cases[function], two.cases[function]
        if {*here} == {*there}:
            excused = failing.union({*one.skipped} & {*two.skipped})
            yield from (case for case in here if case not in excused)
        elif not failing.union(one.skipped, two.skipped).issuperset((*here, *there)):
            yield function
