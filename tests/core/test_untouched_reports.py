"""Reports of the untouched tree, of one process and of two: a test says something there, or nothing."""

from __future__ import annotations

import pytest

from jumar.core.gate.untouched_reports import list_alike, list_given_up, list_seen, list_unasserted
from jumar.core.state.verdict import Broken, Ended, Outcome, Report, TestResult

TEST = "test_a.py::test_b"
WORDS = "E       assert 1 == 2\nE        +  where 1 = total()\n"
RAISED = "E       NotImplementedError: later\n"
GIVEN_UP = "E   jumar.child.two_process.wire.exceptions.CannotRunApart: a test runs text as code\n"
REFUSED = "E   jumar.child.two_process.wire.exceptions.EndRefused: a StopIteration would end the test\n"


def report(outcome: Outcome, excerpt: str = "", *, tied: bool = False) -> Report:
    results = () if outcome is Outcome.MISSING else (TestResult(TEST, outcome, 0, excerpt),)
    return Report(Ended.NORMAL, results, tied=(TEST,) if tied else ())


@pytest.mark.parametrize(
    ("one", "seen", "unasserted"),
    [
        (report(Outcome.PASSED), True, False),
        (report(Outcome.FAILED, WORDS), True, False),
        (report(Outcome.FAILED, RAISED), False, True),
        (report(Outcome.SKIPPED), False, False),
        (report(Outcome.XFAILED), False, False),
        (report(Outcome.ERROR, RAISED), False, True),
        (report(Outcome.TIMEOUT), False, True),
        (report(Outcome.MISSING), False, False),
    ],
)
def test_a_test_is_seen_that_passed_or_came_to_an_assertion(one: Report, *, seen: bool, unasserted: bool) -> None:
    assert (TEST in list_seen(one), TEST in list_unasserted(one)) == (seen, unasserted)


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        (report(Outcome.PASSED), report(Outcome.PASSED), True),
        (report(Outcome.PASSED), report(Outcome.PASSED, tied=True), True),
        (report(Outcome.FAILED, WORDS), report(Outcome.FAILED, WORDS.replace("1 = total", "0x7fe4b2 = total")), True),
        (report(Outcome.FAILED, WORDS), report(Outcome.FAILED, WORDS, tied=True), False),
        (report(Outcome.FAILED, WORDS), report(Outcome.FAILED, WORDS.replace("== 2", "== 3")), False),
        (report(Outcome.FAILED, RAISED), report(Outcome.FAILED, RAISED.replace("later", "now")), True),
        (report(Outcome.FAILED, RAISED), report(Outcome.FAILED, GIVEN_UP), False),
        (report(Outcome.PASSED), report(Outcome.MISSING), False),
    ],
)
def test_tests_are_alike_that_ended_in_the_same_words(one: Report, two: Report, *, alike: bool) -> None:
    assert (list_alike(one, two) == {TEST}) is alike


def test_given_up_are_tests_that_two_processes_gave_up_for_what_they_do_and_files_that_do_not_load_so() -> None:
    broken = Report(Ended.NORMAL, broken={"test_a.py": Broken(GIVEN_UP), "test_c.py": Broken(RAISED)})

    assert list_given_up([TEST], report(Outcome.FAILED, GIVEN_UP)) == {TEST}
    assert list_given_up([TEST], report(Outcome.FAILED, REFUSED)) == frozenset()
    assert list_given_up([TEST, "test_c.py::test_d"], broken) == {TEST}
