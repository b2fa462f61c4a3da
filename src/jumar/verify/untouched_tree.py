"""Runs of the untouched tree for the grades of a green: which tests were red, and which ran in two processes.

Each test is run there at most once a task, and only where the answer decides a grade.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.gate.untouched_reports import (
    find_style,
    is_same_reason,
    list_alike,
    list_asserted,
    list_given_up,
    list_seen,
    list_tied,
    list_timeouts,
    list_unasserted,
)
from jumar.core.state.verdict import Outcome, Report, get_function, reconcile
from jumar.languages.class_methods import is_as_before, list_classes
from jumar.verify.challenge.falsified_files import list_falsifiable
from jumar.verify.challenge.literal_tests import find_literal_tests
from jumar.verify.challenge.round_challenge import UNCHALLENGED
from jumar.verify.merge_reports import merge_reports
from jumar.verify.rounds import Seeds, can_run_apart, lay_held_out, run_fresh_apart, run_parts, run_round_apart
from jumar.workspace.files.trees import EntryKind

if TYPE_CHECKING:
    import ast

    from jumar.verify.execution import SuiteKnowledge, TreeRunner
    from jumar.verify.rounds import GreenCandidate

LUCKY = 2
"""Further runs of the untouched tree in which a test has to pass that says nothing in two processes."""


async def find_red_tests(green: GreenCandidate) -> frozenset[str]:
    """Return the tests of *green* that do not pass on the untouched tree of the task; empty where there is none."""
    known = green.verifier.experience
    if known.red is None and not is_untouched(green):
        report = await _run_base(green)
        known.red = frozenset(green.ids) - reconcile(green.ids, report, green.accepted).green_ids
    return (known.red or frozenset()).intersection(green.ids)


class Retreat(NamedTuple):
    """Tests that the change seems to have made harder to judge."""

    ids: frozenset[str] = frozenset()
    seeing: frozenset[str] = frozenset()
    """Tests among them that pass in two processes as soon as they see what others do not: they are no harder."""
    in_place: frozenset[str] = frozenset()
    """The same about code that works in place: no harder, if one process shows that they can be falsified."""
    beside: frozenset[str] = frozenset()
    """Held-out tests among them that passed when they were asked again: they are to be asked without the others."""

    def settle(self, falsified: frozenset[str]) -> frozenset[str]:
        """Return the tests that are harder to judge, where *falsified* failed whenever they were."""
        return self.ids - self.seeing - (self.in_place & falsified)


async def find_retreated(green: GreenCandidate, apart: Collection[str]) -> Retreat:
    """Return the tests that come out alike in one process and in two on the untouched tree, and fail in two here.

    Where that tree did not get as far as a comparison (a stub raised, what the tests import is not there), or had an
    answer that would decide it, it says little of a test. Those are no such that compare objects of the code under test
    with their own, or that need it in their own process by what they do themselves, or by what they do with an answer
    there, too: no change could pass them in two. Nor are those that compare objects of a class that the untouched tree
    has, or that can be falsified and are about code which works in place. All these have to pass in two processes where
    they see what others do not. Held-out tests are returned, too, that pass when they are asked again beside others.
    """
    verifier, missing = green.verifier, frozenset(green.ids).difference(apart)
    known = verifier.experience
    if not missing or is_untouched(green) or not can_run_apart(verifier):
        return Retreat()
    if new := missing - known.compared:
        await _compare_base(green, new)
    decided = _list_decided(known.base_apart)
    same = frozenset(i for i, why in decided.items() if is_same_reason(green.doubted.get(i, ""), why))
    styled = frozenset(i for i in same if find_style(decided[i]))
    # The same reason is no other class, which the code called by the same name.
    same -= styled - _list_known_style(green, styled, foreign=True)
    retreated = missing & known.alike.union(decided.keys() - same)
    unknown = retreated & (known.unseen | list_unasserted(known.base_apart) | decided.keys())
    excused = unknown & green.tied.union(green.led.intersection(list_tied(known.base_apart)))
    asked = tuple(i for i in green.ids if i in retreated - excused)
    if not asked:
        return Retreat()
    # A round that falsified one of them may have compared something else, and a busy machine may have cut it short. All
    # tests run again: what one of them leaves behind, another one may meet.
    ids = tuple(i for i in green.ids if i not in list_unable(known))
    again = await run_round_apart(replace(green, ids=ids), Round(challenge=False), Seeds())
    # What this run noted of a test, a round that made its comparison stricter may not have come to.
    passed = again.kept - green.dependent
    left = retreated - (passed - frozenset(green.verifier.held_out.ids)) - excused
    own = (unknown | _list_known_style(green, left)) & green.matched
    in_place = _list_in_place(green, left) - own
    # They see what the code changes of what they hold, and how objects compare that they made of its classes.
    seeing = replace(green, ids=tuple(i for i in green.ids if i in left & (own | in_place)), in_place=True)
    seen = (await run_round_apart(seeing, Round(challenge=False), Seeds())).kept if seeing.ids else frozenset[str]()
    return Retreat(left, seen & own, seen & in_place, left & passed)


def _list_in_place(green: GreenCandidate, ids: Collection[str]) -> frozenset[str]:
    """Return those of *ids* of whose things the code changed some, as any code that works in place does.

    The untouched tree does so, too, or they compare with literals alone: code that spoils what it is given could make
    `total(rows) == sum(rows)` true.
    """
    known, functions = green.verifier.experience, {get_function(i) for i in ids}
    files = {i.partition("::")[0] for i in ids}
    literal = find_literal_tests({path: text for path, text in (known.challenge or {}).items() if path in files})
    before = frozenset(known.base_apart.copied if known.base_apart else ())
    changed = green.copied & {*ids, *functions}
    return frozenset(i for i in ids if {i, get_function(i)} & changed and {i, get_function(i)} & (before | literal))


async def _compare_base(green: GreenCandidate, new: frozenset[str]) -> None:
    """Note which *new* tests come out alike in one process and in two on the untouched tree."""
    known = green.verifier.experience
    one, two = await _run_base(green), await _run_base_apart(green, new)
    known.compared |= new
    if two is None:
        return
    # A stub that raises what does not cross, skips a test or ends its process says nothing of what the test compares.
    # After a fixture was given up, pytest itself fails in the next one that uses it.
    failed = {r.id for r in two.results if r.outcome is Outcome.FAILED}
    silent = (new & failed).difference(list_seen(one), list_tied(two))
    unseen = (silent - list_given_up(new, two)).union(new.difference(r.id for r in one.results))
    alike = unseen | (new & list_alike(one, two))
    # What it says may be another thing in each run, by chance, by the time or by the place.
    alike |= new & list_asserted(one) & list_asserted(two)
    known.unseen, known.alike = known.unseen | unseen, known.alike | alike


async def find_drawn_in(green: GreenCandidate, conversed: frozenset[str]) -> frozenset[str]:
    """Return those of *conversed*, in which more than questions and data crossed, that pass without on that tree."""
    two = None if not conversed or is_untouched(green) else await _run_base_apart(green, conversed)
    passed = reconcile(tuple(conversed), two, green.accepted).green_ids if two else frozenset[str]()
    return passed.difference(two.conversed if two else ())


def _list_decided(two: Report | None) -> dict[str, str]:
    """Return the tests that are no evidence in two processes as the untouched tree answers, each with why.

    A test that makes one of the two sides itself, or ties the code under test to its process, left it no choice.
    """
    own = {*two.matched, *list_tied(two)} if two else set[str]()
    return {i: why for i, why in two.doubted.items() if i not in own} if two else {}


def _list_known_style(green: GreenCandidate, ids: Collection[str], *, foreign: bool = False) -> frozenset[str]:
    """Return those of *ids* that ask a class for what it has, as it is, in the untouched tree already: no way out.

    Nor is there one where that class has no equality at all, which what a test compares must have. *foreign*: nor where
    it stands in neither tree, as that of a library.
    """
    styles = {i: style for i in ids if (style := find_style(green.doubted.get(i, "")))}
    if not styles:
        return frozenset()
    before, now = (_list_classes(green.verifier, tree) for tree in (green.verifier.base, green.alone))
    classes = {**before, **now}
    known = {
        style
        for style in set(styles.values())
        if is_as_before(*style, before, now) or (foreign and style[0] not in classes)
    }
    return frozenset(i for i, style in styles.items() if style in known)


def _list_classes(verifier: TreeRunner, tree: str) -> Mapping[str, Sequence[ast.ClassDef]]:
    """Return the classes of the code under test in *tree*, by name."""
    nodes = verifier.store.manifest(tree).items()
    return list_classes(
        verifier.store.get(node.sha256)
        for path, node in nodes
        if node.kind is EntryKind.FILE and path.endswith(".py") and verifier.sources(path)
    )


async def find_hollow(green: GreenCandidate, apart: Collection[str]) -> frozenset[str]:
    """Return those of *apart*, which passed in two processes, that do so on the untouched tree and are red in one.

    There they say nothing: a patch of the tests' own process does not reach the code under test, a loop has no round.
    A test that compares with a literal, and can be falsified, says something, and is not asked.
    """
    known, files = green.verifier.experience, {i.partition("::")[0] for i in apart}
    comparing = {*list_falsifiable(known.challenge or {}, files)}
    comparing -= {name for name in comparing if green.strengths.get(name, Strength.NONE) is Strength.NONE}
    doubtful = {i for i in apart if get_function(i) not in comparing}
    red = doubtful & await find_red_tests(green) if doubtful.difference(green.accepted) else frozenset()
    two = await _run_base_apart(green, red | {*green.ids}.difference(apart)) if red else None
    hollow = frozenset(red) & reconcile(tuple(red), two, green.accepted).green_ids if two else frozenset[str]()
    for _ in range(LUCKY if hollow - known.hollow else 0):  # a property that finds no example may pass there by chance
        part = replace(_lay_base(green), ids=tuple(i for i in green.ids if i in hollow))
        again = await run_fresh_apart(part, Round(challenge=False), Seeds())
        hollow &= reconcile(part.ids, again, green.accepted).green_ids if again else hollow
    known.hollow |= hollow
    return hollow


def list_unable(known: SuiteKnowledge) -> frozenset[str]:
    """Return the tests that pass on the untouched tree in one process and not in two, or that take too long in two.

    They are not tried again in two: what is in their way is how they are written, and no change of the code.
    """
    slow = list_timeouts(known.base_apart) - list_timeouts(known.base_report)
    if known.base_report is None or known.base_apart is None or known.base_apart.lost:  # then chance had a part in it
        return slow
    passed = {result.id for result in known.base_report.results if result.outcome is Outcome.PASSED}
    return slow | (passed & known.compared - known.alike)


async def _run_base(green: GreenCandidate) -> Report:
    """Run the tests of *green* on the untouched tree, in one process; once."""
    known = green.verifier.experience
    if known.base_report is None:
        tree = lay_held_out(green.verifier, green.verifier.base)
        known.base_report = await green.verifier.run_fresh(tree, green.ids, UNCHALLENGED, None)
        green.runs.append(tree)
    return known.base_report


async def _run_base_apart(green: GreenCandidate, ids: Collection[str]) -> Report | None:
    """Run those *ids* there in two processes that were not yet, and all whose grades it may decide; what is known then.

    Those are the tests that were red, and those in which more than questions and data crossed.
    """
    known = green.verifier.experience
    deciding = {*ids, *green.conversed, *(known.red or ())} - known.asked_apart
    if new := tuple(i for i in green.ids if i in deciding):
        part = replace(_lay_base(green), ids=new)
        reports = await run_parts(part, lambda one: run_fresh_apart(one, Round(challenge=False), Seeds()))
        if whole := [report for report in reports if report is not None] if None not in reports else []:
            known.asked_apart |= {*new}
            known.base_apart = reduce(merge_reports, [known.base_apart, *whole] if known.base_apart else whole)
    return known.base_apart


def is_untouched(green: GreenCandidate) -> bool:
    """Return whether there is no tree but that of *green* to compare with."""
    return green.verifier.base in ("", green.alone)


def _lay_base(green: GreenCandidate) -> GreenCandidate:
    """Return *green* with the untouched tree in the place of the candidate's."""
    return replace(green, tree=lay_held_out(green.verifier, green.verifier.base), alone=green.verifier.base)
