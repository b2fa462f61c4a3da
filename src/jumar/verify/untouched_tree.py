"""Runs of the untouched tree for the grades of a green: which tests were red, and which ran in two processes.

Each is run at most once a task, and only where the answer decides a grade.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.state.verdict import Outcome, Report, TestResult, counts_as_pass, reconcile
from jumar.verify.rounds import Seeds, can_run_apart, lay_held_out, run_fresh_apart, run_round_apart

if TYPE_CHECKING:
    from jumar.verify.execution import SuiteKnowledge
    from jumar.verify.rounds import GreenCandidate

ASSERTED = re.compile("[Aa]ssert|Failed:")
"""Stands in what a test says that failed by an assertion of its own, or by one of pytest's."""


async def find_red_tests(green: GreenCandidate) -> frozenset[str]:
    """Return the tests of *green* that do not pass on the untouched tree of the task; empty where there is none."""
    known = green.verifier.experience
    if known.red is None and green.verifier.base not in ("", green.tree):
        report = await _run_base(green)
        known.red = frozenset(green.ids) - reconcile(green.ids, report, green.accepted).green_ids
    return (known.red or frozenset()).intersection(green.ids)


async def find_retreated(green: GreenCandidate, apart: Collection[str]) -> frozenset[str]:
    """Return the tests that come out alike in one process and in two on the untouched tree, and fail in two here.

    Where that tree did not get as far as a comparison (a stub raised, what the tests import is not there), it says
    little of a test. Those are no such that compare objects of the code under test with their own, or that need it in
    their own process by what they do themselves: no change could pass them in two.
    """
    verifier, missing = green.verifier, frozenset(green.ids).difference(apart)
    known = verifier.experience
    if not missing or not verifier.base or not can_run_apart(verifier):
        return frozenset()
    if known.alike is None:
        one, two = await _run_base(green), await _run_base_apart(green)
        loaded = {result.id for result in one.results}
        known.unseen = frozenset() if two is None else frozenset(green.ids).difference(loaded)
        known.alike = known.unseen if two is None else known.unseen | _compare(one, two)
        known.apart = bool(known.alike or apart)
    retreated = missing & known.alike
    unknown = retreated & (known.unseen | _list_unasserted(known.base_apart))
    asked = tuple(i for i in green.ids if i in retreated and not (i in unknown and i in green.matched | green.tied))
    if not asked:
        return frozenset()
    # A round that falsified one of them may have compared something else, and a busy machine may have cut it short.
    plain = replace(green, ids=asked)
    again = await run_round_apart(plain, Round(challenge=False), Seeds())
    green.executions = plain.executions
    return retreated - (unknown & (green.matched | green.tied)) - again.kept


async def find_hollow(green: GreenCandidate, apart: Collection[str]) -> frozenset[str]:
    """Return those of *apart*, which passed in two processes, that do so on the untouched tree and are red in one.

    There they say nothing: a patch of the tests' own process does not reach the code under test, a loop has no round.
    What was falsified and failed says something, and is not asked.
    """
    challenge = green.verifier.experience.challenge
    strengths = challenge.strengths if challenge else {}
    doubtful = {i for i in apart if strengths.get(i.partition("[")[0], Strength.NONE) is Strength.NONE}
    red = doubtful & await find_red_tests(green) if doubtful.difference(green.accepted) else frozenset()
    two = await _run_base_apart(green) if red else None
    return frozenset() if two is None else frozenset(red & reconcile(tuple(red), two, green.accepted).green_ids)


def list_slow_tests(known: SuiteKnowledge) -> frozenset[str]:
    """Return the tests that took too long in two processes on the untouched tree, as far as it ran there yet."""
    results = known.base_apart.results if known.base_apart else ()
    return frozenset(result.id for result in results if result.outcome is Outcome.TIMEOUT)


async def _run_base(green: GreenCandidate) -> Report:
    """Run the tests of *green* on the untouched tree, in one process; once."""
    known = green.verifier.experience
    if known.base_report is None:
        tree = lay_held_out(green.verifier, green.verifier.base)
        known.base_report = await green.verifier.run_fresh(tree, green.ids, {}, None)
        green.executions += 1
    return known.base_report


async def _run_base_apart(green: GreenCandidate) -> Report | None:
    """Run them there in two processes; once, unless that came to nothing."""
    known = green.verifier.experience
    if known.base_apart is None:
        untouched = replace(green, tree=lay_held_out(green.verifier, green.verifier.base), alone=green.verifier.base)
        known.base_apart = await run_fresh_apart(untouched, Round(challenge=False), Seeds())
        green.executions += 1
    return known.base_apart


def _compare(one: Report, two: Report) -> frozenset[str]:
    """Return the tests that came out the same: passed, or failed in the same words.

    What fails before it comes to a file that the code under test should have written tells nothing of two processes:
    there that code does not have the temporary folder of the tests.
    """
    said = {result.id: _describe(result) for result in two.results}
    return frozenset(
        result.id
        for result in one.results
        if said.get(result.id) == _describe(result)
        and (result.id not in two.tied or counts_as_pass(result.outcome, None))
    )


def _list_unasserted(two: Report | None) -> frozenset[str]:
    """Return the tests that ended without an assertion: a stub raised, so what they compare was not seen there."""
    results = two.results if two else ()
    return frozenset(r.id for r in results if r.outcome is Outcome.FAILED and not ASSERTED.search(_describe(r)[1]))


def _describe(result: TestResult) -> tuple[Outcome, str]:
    lines = result.excerpt.strip().splitlines()
    return result.outcome, lines[-1].strip() if lines else ""
