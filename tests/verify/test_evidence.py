"""Evidence beside held-out tests: which reasons are told, and which tests two processes prove."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jumar.child.two_process import SAY
from jumar.core.gate.grades import Grade
from jumar.core.state.verdict import Outcome
from jumar.verify.evidence import WITHHELD, list_unlike, list_weaker, note_unreached
from jumar.verify.execution import HeldOut, TreeRunner
from jumar.verify.rounds import GreenCandidate
from support.judging.real_verifier import Court

VISIBLE, HIDDEN = "test_app.py::test_one", "test_more.py::test_more"


def candidate(verifier: TreeRunner) -> GreenCandidate:
    return GreenCandidate(verifier, "whole", "alone", (VISIBLE, HIDDEN), {})


@pytest.mark.parametrize("grade", [Grade.B, Grade.C, Grade.D])
@pytest.mark.parametrize(("hidden", "why"), [((), "Heard_secret.__eq__ would decide"), ((HIDDEN,), WITHHELD)])
def test_beside_held_out_tests_no_reason_names_what_the_code_defines(
    tmp_path: Path, grade: Grade, hidden: tuple[str, ...], why: str
) -> None:
    """A class of the code may have its name from what a held-out test asked."""
    court = Court(tmp_path)
    court.verifier.held_out = HeldOut("tree", hidden)
    green = candidate(court.verifier)
    (green.conversed if grade is Grade.B else green.doubted)[VISIBLE] = "Heard_secret.__eq__ would decide"

    assert dict(list_weaker(green, {VISIBLE: grade})) == {VISIBLE: why}


def test_a_held_out_test_that_an_object_of_the_code_decides_in_one_process_is_not_proved_by_two(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.held_out = HeldOut("tree", (HIDDEN,))
    whole, rest = candidate(court.verifier), candidate(court.verifier)
    rest.swayed = {VISIBLE, HIDDEN}

    assert list_unlike(whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = "the code calls into the tests"

    assert list_unlike(whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = f"__eq__ of a Heard{SAY}"

    assert list_unlike(whole, rest) == frozenset()


def test_a_held_out_test_that_comes_to_more_in_one_process_is_not_proved_by_two(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.held_out = HeldOut("tree", (HIDDEN,))
    whole, rest = candidate(court.verifier), candidate(court.verifier)
    whole.reached = {VISIBLE: Counter({"a.py:1": 1}), HIDDEN: Counter({"b.py:1": 2, "b.py:2": 1})}
    rest.reached = {VISIBLE: Counter({"a.py:1": 3, "a.py:2": 1}), HIDDEN: Counter({"b.py:1": 2})}

    assert list_unlike(whole, rest) == frozenset()

    rest.reached[HIDDEN]["b.py:1"] += 1

    assert list_unlike(whole, rest) == {HIDDEN}

    rest.reached[HIDDEN] = Counter({"b.py:3": 1})

    assert list_unlike(whole, rest) == {HIDDEN}


def test_a_test_none_of_whose_cases_came_to_an_assertion_is_no_evidence_in_two_processes(tmp_path: Path) -> None:
    green = GreenCandidate(Court(tmp_path).verifier, "whole", "alone", (), {"a.py::test_skipped": Outcome.SKIPPED})
    green.missed = {"a.py::test_one": {7, 5}, "a.py::test_two": set(), "a.py::test_skipped": {3}}

    left = note_unreached(green, ["a.py::test_one[1]", "a.py::test_two", "a.py::test_skipped"])

    assert left == {"a.py::test_one[1]"}
    assert green.doubted == {"a.py::test_one[1]": "in two processes it did not come to what it asserts in line 5"}
