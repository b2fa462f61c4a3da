"""Evidence beside held-out tests: which reasons are told, and which tests two processes prove."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.core.gate.grades import Grade
from jumar.core.state.verdict import Outcome
from jumar.verify.evidence import (
    UNREACHED,
    WITHHELD,
    list_left_out,
    list_weaker,
    note_unreached,
)
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


def test_a_test_none_of_whose_cases_came_to_an_assertion_is_no_evidence_in_two_processes(tmp_path: Path) -> None:
    green = GreenCandidate(Court(tmp_path).verifier, "whole", "alone", (), {"a.py::test_skipped": Outcome.SKIPPED})
    green.missed = {"a.py::test_one": {7, 5}, "a.py::test_two": set(), "a.py::test_skipped": {3}}

    left = note_unreached(green, ["a.py::test_one[1]", "a.py::test_two", "a.py::test_skipped"])

    assert left == {"a.py::test_one[1]"}
    assert green.doubted == {"a.py::test_one[1]": "in two processes it did not come to what it asserts in line 5"}


def test_what_is_not_come_to_in_one_process_either_is_no_reason_against_two(tmp_path: Path) -> None:
    """A branch for another platform, a block that an exception ends."""
    whole, rest = candidate(Court(tmp_path).verifier), candidate(Court(tmp_path).verifier)
    whole.missed = {VISIBLE: {3, 7}, HIDDEN: {5}}
    unreached = note_unreached(whole, [VISIBLE, HIDDEN])

    rest.missed = {VISIBLE: {3}, HIDDEN: {5, 6}}

    assert unreached == {VISIBLE, HIDDEN}
    assert list_left_out(whole, rest, unreached) == {VISIBLE}
    assert whole.doubted == {VISIBLE: f"{UNREACHED} 3"}

    rest.missed = {}

    assert list_left_out(whole, rest, {VISIBLE}) == {VISIBLE}, "nobody has looked"
