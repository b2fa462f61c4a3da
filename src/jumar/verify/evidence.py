"""Weighs the fresh runs of a green: the grade of each test, and warnings about those that nothing proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import msgspec

from jumar.child.challenge.compared_data import WHOLE
from jumar.child.two_process import SAY
from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.gate.grades import Evidence, Grade, Grades, grade_tests
from jumar.core.state.verdict import get_function
from jumar.verify.rounds import GreenCandidate, draw_seeds, is_pytest, run_round_apart
from jumar.verify.untouched_tree import find_drawn_in, find_red_tests, find_retreated

UNPROVED_HELD_OUT = "held-out tests passed, and neither two processes nor a challenge proves it: no +H"

WITHHELD = "the reason names something of the code, which could quote held-out tests"
"""Stands in the place of the reason for a grade, where there are held-out tests."""

UNREACHED = "in two processes it did not come to what it asserts in line"
"""Reason that a test is no evidence there."""

WEAKEST_NAMED = 3
"""Tests of the lowest grade that a warning names."""


async def grade_green(
    whole: GreenCandidate,
    rest: GreenCandidate,
    apart: frozenset[str],
    names: Mapping[str, str],
) -> tuple[Grades, tuple[str, ...], bool]:
    """Grade the tests of a green; the untouched tree is run only where that decides something.

    Those *names* count that were red, or are harder to judge than they were. Held-out tests count, too: they are asked
    what nobody could write down, so a verdict is worth no more than what proves them. Returned with the grades are
    warnings about them, and whether held-out tests agreed and something proves that.

    *rest* is the part of *whole* that was run in one process, *apart* are the tests that passed in two.
    """
    verifier = whole.verifier
    evidence = _gather(whole, rest, apart)
    held_out = frozenset(verifier.held_out.ids)
    ids = (*names, *held_out)
    red = frozenset(i for i in names if i not in whole.accepted) or frozenset(names)  # until it is known
    grades = grade_tests(ids, evidence, red | held_out)
    if len(grades.counts) > 1:
        red = (await find_red_tests(whole)).intersection(names) or red
        grades = grade_tests(ids, evidence, red | held_out)
    agreed = bool(held_out) and (not is_pytest(verifier) or evidence.proved.issuperset(held_out))
    told: list[str] = []
    if len(grades.counts) > 1 or (grades.lowest is not Grade.A and is_pytest(verifier)):
        gone = await find_retreated(whole, apart)
        drawn = await find_drawn_in(whole, evidence.conversed - red - held_out)
        before = verifier.experience.base_apart
        known = evidence.conversed.union(before.conversed if before else ())
        evidence = msgspec.structs.replace(evidence, retreated=gone, conversed=known)
        grades = grade_tests(ids, evidence, red | held_out | gone | drawn)
        if gone:
            some = "1 test comes" if len(gone) == 1 else f"{len(gone)} tests come"
            some += " out alike in one process and in two on the untouched files, and not here"
            first = min((i for i in gone if i in names), key=lambda i: (i not in whole.doubted, i), default="")
            reason = f": {_word_reason(whole, whole.doubted[first])}" if first in whole.doubted else ""
            told.append(f"{some}{first and f' ({names[first]}{reason})'}: C at best")
    told += [UNPROVED_HELD_OUT] if held_out and not agreed else []
    return grades, (*told, *_name_weakest(grades, red, names)), agreed


async def find_unlike(whole: GreenCandidate, rest: GreenCandidate) -> frozenset[str]:
    """Return the held-out tests that come to something in one process that they do not come to in two.

    What they do there is not what two processes have seen: an assertion or a comparison more, or of other data, or an
    object of the code decides, and none does in two. Data may differ that differs in two processes, too, from run to
    run: a time, an order. To know that, those tests run there once more.
    """
    heard = {i for i, why in whole.conversed.items() if why.endswith(SAY)}
    ids = whole.verifier.held_out.ids
    unlike = {i for i in ids if get_function(i) in rest.swayed and i not in heard}
    beyond = {i: list_beyond(whole, rest, i) for i in ids if i not in unlike}
    differing = {i: places for i, places in beyond.items() if places and None not in places}
    unlike.update(i for i, places in beyond.items() if None in places)
    if not differing:
        return frozenset(unlike)
    again = replace(whole, ids=rest.ids, reached={}, swayed=set(), strengths={}, missed={})
    draw = draw_seeds(shuffled=not whole.verifier.experience.ordered)
    passed = (await run_round_apart(again, Round(), draw)).kept
    steady = (i for i, places in differing.items() if not places <= list_beyond(whole, again, i))
    return frozenset((*unlike, *steady, *(i for i in differing if i not in passed)))


def list_beyond(whole: GreenCandidate, other: GreenCandidate, test_id: str) -> frozenset[str | None]:
    """Return the places of the tests where *test_id* compares other data in *other* than in *whole*.

    None is among them if it comes to more there: to an assertion or a comparison, more often, or of another kind.
    """
    key = test_id if test_id in other.reached and test_id in whole.reached else get_function(test_id)
    found = other.reached.get(key, Counter()) - whole.reached.get(key, Counter())
    parts = (place.partition(WHOLE) for place in found)
    return frozenset(place if mark else None for place, mark, _ in parts)


def note_unreached(green: GreenCandidate, ids: Collection[str]) -> frozenset[str]:
    """Return those of *ids* of which no case came to some assertion of its own, and note why they are no evidence.

    What stands there was not checked where the code under test is in another process: a loop over handlers of loggers,
    say, has no round where the code has added none.
    """
    lines = {i: green.missed.get(get_function(i), ()) for i in ids if i not in green.accepted}
    missed = {i: min(some) for i, some in lines.items() if some}
    green.doubted.update((i, f"{UNREACHED} {line}") for i, line in missed.items())
    return frozenset(missed)


def list_left_out(whole: GreenCandidate, rest: GreenCandidate, unreached: Collection[str]) -> frozenset[str]:
    """Return those of *unreached* that come in one process to an assertion to which they did not come in two.

    The others have a branch for another platform, say: as in any run, nothing is checked there. Their reasons are gone.
    """
    functions = {i: get_function(i) for i in unreached}
    left = {i for i, name in functions.items() if not whole.missed[name] <= rest.missed.get(name, set())}
    for test_id in functions.keys() - left:
        del whole.doubted[test_id]
    return frozenset(left)


def list_weaker(whole: GreenCandidate, grades: Mapping[str, Grade]) -> Iterator[tuple[str, str]]:
    """Yield the tests that are not at A, each with why, as far as two processes told."""
    for test_id, grade in grades.items():
        reasons = {Grade.A: {}, Grade.B: whole.conversed}.get(grade, whole.doubted)
        if why := reasons.get(test_id):
            yield test_id, _word_reason(whole, why)


def _word_reason(whole: GreenCandidate, why: str) -> str:
    """Return *why*, if it may be told: a class of the code, which it names, may be called after a held-out test."""
    return WITHHELD if whole.verifier.held_out.ids else why


def _name_weakest(grades: Grades, red: Collection[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warning that names tests which were red and which nothing but their report proves."""
    weakest = [names[i] for i in grades.list_weakest(red) if i in names]
    if grades.lowest is not Grade.D or not weakest:
        return ()
    more = f" and {len(weakest) - WEAKEST_NAMED} more" if len(weakest) > WEAKEST_NAMED else ""
    some = ", ".join(weakest[:WEAKEST_NAMED])
    return (f"grade D: {some}{more} could be checked neither in two processes nor by changing what is expected",)


def _gather(whole: GreenCandidate, rest: GreenCandidate, apart: frozenset[str]) -> Evidence:
    # What is equal to everything could decide a comparison that no round changes: partial is not enough.
    sound = {name for name, strength in rest.strengths.items() if strength is Strength.WHOLE}
    proved = sound.difference(rest.unproved) if any(step.challenge for step in rest.done) else set()
    judged = [i for i in rest.ids if i not in apart and i not in rest.accepted]
    return Evidence(
        runner=Grade(rest.verifier.runner.grade),
        apart=apart,
        conversed=apart.intersection(whole.conversed),
        falsified=frozenset(i for i in judged if get_function(i) in proved),
        open_to_it=frozenset(i for i in judged if get_function(i) in sound),
    )
