"""Runs everything once in one process and in its own order: what plain pytest says is what a green has to say at least.

The first run of a green is that for the tests that it was asked for. Here held-out tests come along, in one process
with the visible ones, and tests that only the code under test has made: a further case, a function of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from jumar.core.gate.challenge_rounds import Round, check_round
from jumar.core.state.verdict import (
    CHANGED,
    Blame,
    Cause,
    Outcome,
    Report,
    TestResult,
    Verdict,
    Void,
    counts_as_pass,
    get_function,
    mark_flaky,
)
from jumar.process.room import lay_out
from jumar.verify.challenge.falsified_files import UNCHALLENGED
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

    *names* are the visible tests by the runner's names; *beyond* are those in their files that nobody asked for.
    """
    held_out = green.verifier.held_out.ids
    new = await _list_new(green, beyond)
    if not (held_out or new) or not is_pytest(green.verifier):  # elsewhere all rounds are of all tests
        return first
    report = await _run(green, new)
    if more := [i for i in await _list_new(green, report.beyond) if i not in new]:  # in the files of held-out tests
        new += more
        report = await _run(green, new)
    answered = check_round(report, Round(challenge=False), green.ids, green.accepted)
    if answered.void:
        return Verdict({}, void=Void(Cause.TAMPER, answered.void if not held_out else "a plain run is no evidence"))
    failed = {r.id: r for r in report.results if r.id in new and not counts_as_pass(r.outcome, None)}
    visible = {_get_file(i) for i in names}
    if not (names.keys() >= {*answered.unsteady} and visible.issuperset(map(_get_file, failed))):
        return Verdict({}, void=NOT_GENERAL)
    changed = mark_flaky(first, [names[i] for i in answered.unsteady], CHANGED)
    return _mark_red(changed, failed, names) if failed else changed


def _get_file(test_id: str) -> str:
    return test_id.partition("::")[0]


async def _run(green: GreenCandidate, new: Sequence[str]) -> Report:
    """Run all tests of *green*, and *new* ones, in the order in which pytest finds their files."""
    visible = [i for i in green.ids if i not in green.verifier.held_out.ids]
    found = sorted(green.ids, key=lambda i: _get_file(i).split("/"))
    ordered = found if [i for i in found if i in set(visible)] == visible else green.ids
    green.runs.append(green.tree)
    return await green.verifier.run_fresh(green.tree, (*ordered, *new), UNCHALLENGED, None)


async def _list_new(green: GreenCandidate, beyond: Sequence[str]) -> list[str]:
    """Return those of *beyond* that the untouched tree does not have, where it has tests in the same file."""
    if not beyond or is_untouched(green):
        return []
    known = await _collect_known(green)
    files = {_get_file(i) for i in known}
    return [i for i in beyond if i not in known and _get_file(i) in files]


async def _collect_known(green: GreenCandidate) -> frozenset[str]:
    """Return all tests in the files of *green* that the untouched tree has; they are looked for once."""
    verifier, experience = green.verifier, green.verifier.experience
    if experience.tests_of_base is None:
        async with lay_out(verifier.store, lay_held_out(verifier, verifier.base), verifier.rooms) as room:
            run = verifier.runner.verification(verifier.suite, room, green.ids)
            run = msgspec.structs.replace(run, config={**run.config, "mode": "collect", "ids": []})
            records, child = await verifier.run(run, room, verifier.new_output())
        experience.tests_of_base = frozenset(verifier.runner.collected(records, child.ended, child.detail).ids)
    return experience.tests_of_base


def _mark_red(verdict: Verdict, failed: Mapping[str, TestResult], names: Mapping[str, str]) -> Verdict:
    """Return *verdict* with the visible tests red to which the tests that *failed* belong: of a function, or a file."""
    red: dict[str, TestResult] = {}
    for test_id, result in failed.items():
        alike = [i for i in names if get_function(i) == get_function(test_id)]
        native = (alike or [i for i in names if _get_file(i) == _get_file(test_id)])[0]
        why = f"{test_id}, which the untouched tree does not have, did not pass:\n{result.excerpt}"
        red[names[native]] = TestResult(names[native], Outcome.FAILED, result.duration_ms, why, Blame.CODE)
    return Verdict({**verdict.results, **red}, verdict.green_ids.difference(red))
