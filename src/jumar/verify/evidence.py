"""Weighs the fresh runs of a green: the grade of each test, and warnings about those that nothing proved."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from jumar.core.gate.challenge_rounds import Strength
from jumar.core.gate.grades import Evidence, Grade, Grades, grade_tests
from jumar.sandbox.probes.channels import has_channels_between_rounds
from jumar.verify.rounds import GreenCandidate, is_pytest
from jumar.verify.untouched_tree import find_red_tests, find_retreated

UNPROVED_HELD_OUT = "held-out tests passed, and neither two processes nor a challenge proves it: no +H"

WEAKEST_NAMED = 3
"""Tests of the lowest grade that a warning names."""


async def grade_green(
    whole: GreenCandidate,
    rest: GreenCandidate,
    apart: frozenset[str],
    strengths: Mapping[str, Strength],
    names: Mapping[str, str],
) -> tuple[Grades, tuple[str, ...], bool]:
    """Grade the tests *names* of a green; the untouched tree is run only where that decides something.

    Returned with the grades are warnings about them, and whether held-out tests agreed and something proves that.

    *rest* is the part of *whole* that was run in one process, *apart* are the tests that passed in two, *strengths* say
    how the functions of the others can be falsified.
    """
    verifier = whole.verifier
    evidence = _gather(rest, apart, strengths)
    red = frozenset(i for i in names if i not in whole.accepted) or frozenset(names)  # until it is known
    grades = grade_tests(names, evidence, red)
    if len(grades.counts) > 1 or Grade.B in grades.tests.values():
        red = (await find_red_tests(whole)).intersection(names) or red
        grades = grade_tests(names, evidence, red)
    held_out = verifier.held_out.ids
    agreed = bool(held_out) and (not is_pytest(verifier) or evidence.proved.issuperset(held_out))
    told: list[str] = []
    if grades.lowest is not Grade.A and is_pytest(verifier):
        gone = (await find_retreated(whole, apart)).intersection(names)
        grades = grade_tests(names, msgspec.structs.replace(evidence, retreated=gone), red)
        if gone:
            some = f"{len(gone)} tests come out alike in one process and in two on the untouched files, and not here"
            reason = (f" ({names[i]}: {whole.doubted[i]})" for i in sorted(gone) if i in whole.doubted)
            told.append(f"{some}{next(reason, '')}: they are graded C at best")
    if looked := rest.looked:
        said = f"the code under test looks, or may unseen, where tests keep what they expect ({looked}): C at best"
        told.append(said)
    if verifier.experience.reading and rest.ids:
        told.append("tests read their own files, so the code under test could read there what they expect: C at best")
    if held_out and not agreed:
        told.append(UNPROVED_HELD_OUT)
    return grades, (*told, *_name_weakest(grades, red, names)), agreed


def _name_weakest(grades: Grades, red: Collection[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warning that names tests which were red and which nothing but their report proves."""
    if grades.lowest is not Grade.D:
        return ()
    weakest = [names[i] for i in grades.list_weakest(red)]
    more = f" and {len(weakest) - WEAKEST_NAMED} more" if len(weakest) > WEAKEST_NAMED else ""
    some = ", ".join(weakest[:WEAKEST_NAMED])
    return (f"grade D, as neither two processes nor a challenge proved {some}{more}",)


def _gather(rest: GreenCandidate, apart: frozenset[str], strengths: Mapping[str, Strength]) -> Evidence:
    challenge = rest.verifier.experience.challenge
    unasked = challenge.unasked if challenge else frozenset()
    strong = {name for name, strength in strengths.items() if strength is Strength.STRONG}
    proved = strong.difference(rest.unproved)
    family = {i: i.partition("[")[0] for i in rest.ids if i not in apart and i not in rest.accepted}
    pairs = sum(step.challenge for step in rest.done) // 2
    verifier = rest.verifier
    # In an order that never changes, answers go by the number of the call; in frames and files stands what is expected;
    # and a round that can leave a word for the next one tells it what was falsified.
    shared = is_pytest(verifier) and has_channels_between_rounds(verifier.sandbox)
    foreseen = verifier.experience.ordered or verifier.experience.reading or rest.looked or shared
    return Evidence(
        runner=Grade(verifier.runner.grade),
        apart=apart,
        falsified=frozenset(i for i, name in family.items() if pairs and name in proved),
        open_to_it=frozenset(i for i, name in family.items() if name in strong),
        coins={i: name for i, name in family.items() if pairs and name in proved},
        pairs=pairs,
        unasked=frozenset(i for i, name in family.items() if name in unasked),
        at_best_c=frozenset(family if foreseen else ()),
    )
