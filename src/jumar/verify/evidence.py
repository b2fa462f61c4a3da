"""Weighs the fresh runs of a green: the grade of each test, and warnings about those that nothing proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from random import SystemRandom
from typing import NamedTuple

import msgspec

from jumar.child.challenge.compared_data import WHOLE
from jumar.child.two_process import SAY
from jumar.core.gate.challenge_rounds import Round, Strength
from jumar.core.gate.grades import Evidence, Grade, Grades, grade_tests
from jumar.core.state.verdict import get_function
from jumar.process.progress import ProgressPart
from jumar.verify.rounds import GreenCandidate, Seeds, draw_seeds, is_pytest, run_round_apart
from jumar.verify.untouched_tree import Retreat, find_drawn_in, find_red_tests, find_retreated

UNPROVED_HELD_OUT = "held-out tests passed, and neither two processes nor a challenge proves it: no +H"

WITHHELD = "the reason names something of the code, which could quote held-out tests"
"""Stands in the place of the reason for a grade, where there are held-out tests."""

DECIDED = {
    Strength.AFFIRMING: "an object of the code under test is equal to something wrong, too",
    Strength.ANSWERED: "an object of the code under test decides what it is equal to, and no test names its class",
}
"""Reasons that a test is worth less than it could be."""

UNREACHED = "in two processes it did not come to what it asserts in line"
"""Reason that a test is no evidence there."""

WEAKEST_NAMED = 3
"""Tests of the lowest grade that a warning names."""

MOST_RUNS = 16
"""Runs among which held-out tests are dealt out: so many of them are alone, and of more one meets few others."""

TRIES = 3
"""Times that a held-out test is run alone if it comes to other places in one of them: it may differ in several."""


async def grade_green(
    whole: GreenCandidate,
    rest: GreenCandidate,
    apart: frozenset[str],
    ahead: RunsAhead,
    names: Mapping[str, str],
) -> tuple[Grades, tuple[str, ...], bool]:
    """Grade the tests of a green; the untouched tree is run only where that decides something.

    Those *names* count that were red, or are harder to judge than they were. Held-out tests count, too: they are asked
    what nobody could write down, so a verdict is worth no more than what proves them. Returned with the grades are
    warnings about them, and whether held-out tests agreed and something proves that.

    *rest* is the part of *whole* that was run in one process, *apart* are the tests that passed in two, and *ahead* is
    what else two showed.
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
        gone = ahead.retreat.settle(evidence.falsified)
        drawn = await find_drawn_in(whole, evidence.conversed - red - held_out)
        before = verifier.experience.base_apart
        known = evidence.conversed.union(before.conversed if before else ())
        evidence = msgspec.structs.replace(evidence, retreated=gone, conversed=known)
        grades = grade_tests(ids, evidence, red | held_out | gone | drawn)
        strengths = {i: rest.strengths[get_function(i)] for i in evidence.affirming}
        whole.doubted.update((i, DECIDED[strength]) for i, strength in strengths.items())
        told += [_describe_harder(whole, gone, names)] if gone else []
    told += [UNPROVED_HELD_OUT] if held_out and not agreed else []
    return grades, (*told, *_name_weakest(grades, red, names)), agreed


def _describe_harder(whole: GreenCandidate, gone: frozenset[str], names: Mapping[str, str]) -> str:
    """Return the warning that tells of tests which the change made harder to judge."""
    some = "1 test comes" if len(gone) == 1 else f"{len(gone)} tests come"
    some += " out alike in one process and in two on the untouched files, and not here"
    first = min((i for i in gone if i in names), key=lambda i: (i not in whole.doubted, i), default="")
    reason = f": {_word_reason(whole, whole.doubted[first])}" if first in whole.doubted else ""
    return f"{some}{first and f' ({names[first]}{reason})'}: C at best"


class RunsAhead(NamedTuple):
    """Outcome of runs in two processes that come before one in which the code sees held-out tests: it keeps no word."""

    passed: frozenset[str] = frozenset()
    """Held-out tests that passed beside few others or none, each time."""
    wavering: Mapping[str, frozenset[str]] = {}
    """Held-out test -> the places where it differs from run to run: a time, a loop that waits."""
    retreat: Retreat = Retreat()

    def list_refused(self, whole: GreenCandidate) -> dict[str, str]:
        """Return the held-out tests for which a green is refused, whatever one process would show, each with why."""
        lost = self.retreat.settle(self.retreat.in_place) if whole.verifier.held_out.best_grade else frozenset[str]()
        return {i: whole.doubted.get(i, "") for i in whole.verifier.held_out.ids if i in lost}


async def run_ahead(whole: GreenCandidate, apart: frozenset[str]) -> RunsAhead:
    """Run all that two processes are still to tell of a green, whose tests *apart* passed there.

    A held-out test that wavers is run alone more often: it may waver elsewhere, too.
    """
    passed = todo = apart.intersection(whole.verifier.held_out.ids)
    wavering = dict.fromkeys(passed, frozenset[str]())
    for _ in range(TRIES):
        if todo:
            alone = await run_alone(whole, todo)
            passed -= todo - alone.passed
            wavering.update({i: wavering[i] | list_wavering(whole, alone.green, i) for i in todo})
            todo = frozenset(i for i in todo & passed if wavering[i])
    return RunsAhead(passed, wavering, await _find_harder(whole, (apart - wavering.keys()) | passed))


async def _find_harder(whole: GreenCandidate, apart: Collection[str]) -> Retreat:
    """Return the tests that the change made harder to judge; held-out ones are asked again without the others.

    One that was red has to come to an assertion then. Another may have none here, as on another platform.
    """
    retreat = await find_retreated(whole, apart)
    held_out = retreat.beside - retreat.seeing
    red = await find_red_tests(whole) if held_out else frozenset[str]()
    for ids, step in ((held_out & red, Round()), (held_out - red, Round(challenge=False))):
        passed = (await run_alone(whole, ids, step)).passed if ids else frozenset[str]()
        retreat = retreat._replace(ids=retreat.ids - passed)
    return retreat


class AloneRuns(NamedTuple):
    """Outcome of runs in two processes in which few tests or a single one is."""

    passed: frozenset[str]
    green: GreenCandidate
    """All that was come to there."""


async def run_alone(whole: GreenCandidate, chosen: Collection[str], step: Round | None = None) -> AloneRuns:
    """Run each held-out test that is *chosen* in two processes again, dealt out at random among fresh ones.

    One test may give in what another one expects, and the code under test remembers it. So that no two of them can
    talk to each other, one process follows another.
    """
    ids = tuple(i for i in whole.verifier.held_out.ids if i in chosen)
    green = replace(whole, reached={}, swayed=set(), strengths={}, missed={})
    dealt, passed = SystemRandom().sample(ids, len(ids)), frozenset[str]()
    hands = min(MOST_RUNS, len(ids))
    for number in range(hands):
        whole.verifier.tell(ProgressPart.ROUND, number + 1, hands)
        hand = frozenset(dealt[number::hands])
        part = replace(green, ids=tuple(i for i in ids if i in hand))
        passed |= (await run_round_apart(part, step or Round(), draw_seeds(shuffled=False))).kept
    return AloneRuns(passed, green)


def find_unproved(
    whole: GreenCandidate, rest: GreenCandidate, apart: frozenset[str], ahead: RunsAhead
) -> frozenset[str]:
    """Return the held-out tests in *apart* that two processes do not prove, although they passed there.

    They have to pass alone, too, *ahead* of all runs in one process, and to come to all that they come to in one, in
    *rest*, but for what differs from run to run. And no object of the code may decide there, where none does in two.
    """
    held_out = apart.intersection(whole.verifier.held_out.ids)
    unproved = list_swayed(whole, rest) | (held_out - ahead.passed)
    return unproved.union(i for i in held_out - unproved if list_beyond(whole, rest, i) - ahead.wavering[i])


async def find_dependent(green: GreenCandidate, kept: frozenset[str]) -> frozenset[str]:
    """Return those of *kept* that pass only as long as they do not see what the code changes of what they hold.

    Values cross by copy, so a change that must not be would go unseen, and one that must be made alike could be. What
    comes to the same in both ways depends on neither. All tests of a file run, as a later one may hold the same thing.
    """
    copied = {i for i in kept if i in green.copied or get_function(i) in green.copied}
    files = {i.partition("::")[0] for i in copied}
    if not (ids := tuple(i for i in green.ids if i in kept and i.partition("::")[0] in files)):
        return frozenset()
    seeing = replace(green, ids=ids, copied=set(), in_place=True)
    shown = await run_round_apart(seeing, Round(challenge=False), Seeds())
    return frozenset(ids) - frozenset(i for i in shown.kept if i not in copied or i in seeing.copied)


def list_swayed(whole: GreenCandidate, rest: GreenCandidate) -> frozenset[str]:
    """Return the held-out tests in which an object of the code under test decides in one process, and none in two."""
    heard = {i for i, why in whole.conversed.items() if why.endswith(SAY)}
    return frozenset(i for i in whole.verifier.held_out.ids if get_function(i) in rest.swayed and i not in heard)


def list_beyond(whole: GreenCandidate, other: GreenCandidate, test_id: str) -> frozenset[str]:
    """Return the places to which *test_id* comes in *other*, and not in *whole*, or less often, or with other data."""
    key = test_id if test_id in other.reached and test_id in whole.reached else get_function(test_id)
    found = other.reached.get(key, Counter()) - whole.reached.get(key, Counter())
    return frozenset(place.partition(WHOLE)[0] for place in found)


def list_wavering(whole: GreenCandidate, alone: GreenCandidate, test_id: str) -> frozenset[str]:
    """Return the places where *test_id* differs in two processes from run to run: a time, a loop that waits."""
    return list_beyond(whole, alone, test_id) | list_beyond(alone, whole, test_id)


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
    return WITHHELD if whole.verifier.held_out.ids and why not in DECIDED.values() else why


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
    affirming = {name for name, strength in rest.strengths.items() if strength in DECIDED}
    judged = [i for i in rest.ids if i not in apart and i not in rest.accepted]
    return Evidence(
        runner=Grade(rest.verifier.runner.grade),
        apart=apart,
        conversed=apart.intersection(whole.conversed),
        falsified=frozenset(i for i in judged if get_function(i) in proved),
        open_to_it=frozenset(i for i in judged if get_function(i) in sound),
        affirming=frozenset(i for i in judged if get_function(i) in affirming),
    )
