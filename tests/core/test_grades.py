"""Each test has the grade of what was done with itself; a verdict has the lowest of those that were red."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.core.gate.grades import REACHABLE, Evidence, Grade, format_grades, grade_tests, is_proved, list_below

MANY = tuple(f"t.py::test_{n}" for n in range(20))


def challenged(*ids: str) -> Evidence:
    return Evidence(runner=Grade.D, falsified=frozenset(ids), open_to_it=frozenset(ids))


def test_an_id_that_nothing_proved_is_d_whatever_the_others_have() -> None:
    found = grade_tests((*MANY, "t.py::odd"), challenged(*MANY), ("t.py::odd", MANY[0]))

    assert (found.lowest, found.tests["t.py::odd"]) == (Grade.D, Grade.D)


def test_what_passed_before_the_change_lowers_no_grade() -> None:
    found = grade_tests((*MANY, "t.py::odd"), challenged(*MANY), MANY)

    assert found.lowest is Grade.C
    assert found.counts == {"C": 20, "D": 1}


def test_where_nothing_was_red_all_of_them_count() -> None:
    assert grade_tests((*MANY, "t.py::odd"), challenged(*MANY), ()).lowest is Grade.D


def test_two_processes_are_a_for_those_that_passed_there() -> None:
    evidence = replace(challenged(*MANY[1:]), apart=frozenset(MANY[:1]))

    assert grade_tests(MANY, evidence, MANY[:1]).lowest is Grade.A
    assert grade_tests(MANY, evidence, MANY).lowest is Grade.C


def test_where_more_than_questions_and_data_crossed_two_processes_are_b() -> None:
    evidence = replace(challenged(*MANY), apart=frozenset(MANY), conversed=frozenset(MANY[:1]))

    found = grade_tests(MANY, evidence, ())

    assert (found.lowest, found.reachable, found.counts) == (Grade.B, Grade.B, {"A": 19, "B": 1})
    assert grade_tests(MANY, evidence, MANY[1:]).lowest is Grade.A


def test_what_retreated_from_two_processes_could_have_had_a() -> None:
    found = grade_tests(MANY, replace(challenged(*MANY), retreated=frozenset(MANY)), ())

    assert (found.lowest, found.reachable) == (Grade.C, Grade.A)
    assert found.better == dict.fromkeys(MANY, Grade.A)
    conversed = replace(challenged(*MANY), retreated=frozenset(MANY), conversed=frozenset(MANY))
    assert grade_tests(MANY, conversed, ()).reachable is Grade.B


def test_a_test_that_nothing_could_prove_opens_no_other() -> None:
    weak, evidence = MANY[0], replace(challenged(*MANY[1:]), retreated=frozenset(MANY[1:2]))

    found = grade_tests(MANY, evidence, ())

    assert (found.tests[weak], found.lowest, found.reachable) == (Grade.D, Grade.D, Grade.A)
    assert not is_proved(found.lowest, found.reachable, REACHABLE)
    assert grade_tests(MANY, challenged(*MANY[1:]), ()).reachable is Grade.D


def test_a_test_in_which_something_wrong_was_affirmed_could_have_had_more() -> None:
    evidence = replace(challenged(*MANY[1:]), affirming=frozenset(MANY[:1]))

    found = grade_tests(MANY, evidence, ())

    assert (found.lowest, found.reachable, found.better) == (Grade.D, Grade.C, {MANY[0]: Grade.C})
    assert not is_proved(found.lowest, found.reachable, REACHABLE)
    assert is_proved(found.lowest, found.reachable, "D")


def test_who_hung_when_falsified_could_have_had_more() -> None:
    evidence = replace(challenged(*MANY), falsified=frozenset(MANY[1:]))

    found = grade_tests(MANY, evidence, ())

    assert (found.lowest, found.reachable) == (Grade.D, Grade.C)


@pytest.mark.parametrize(
    ("grade", "wanted", "proved"),
    [
        ("A", "A", True), ("B", "A", False), ("B+H", "B", True), ("C", "A", False), ("C+H", "C", True),
        ("D+H", "C", False), ("D", "", True), ("X", "X", True),
        ("X", "D", False), ("D", REACHABLE, False), ("C", REACHABLE, True),
    ],
)  # fmt: skip
def test_a_green_is_proved_if_its_grade_is_at_least_what_is_asked(grade: str, wanted: str, *, proved: bool) -> None:
    assert is_proved(grade, "C", wanted) is proved


def test_a_reader_sees_how_many_tests_have_which_grade() -> None:
    assert format_grades("C", {"A": 3, "C": 1}) == "grade C (tests: 3 at A, 1 at C)"
    assert format_grades("A+H", {"A": 3}) == "grade A+H"
    assert format_grades("A", {"A": 3}, 0) == "grade A (the code called into the tests at no time)"
    assert format_grades("A", {"A": 3}, 1) == "grade A (the code called into the tests 1 time)"
    assert format_grades("C", {"A": 3, "C": 1}, 2) == (
        "grade C (tests: 3 at A, 1 at C; the code called into the tests 2 times)"
    )


def test_the_tests_below_a_letter_are_listed_with_the_weakest_first() -> None:
    grades = {"a": "A", "b": "C", "c": "D", "d": "C"}

    assert list_below(grades, {}, "A") == {"c": "D", "b": "C", "d": "C"}
    assert list(list_below(grades, {}, "A")) == ["c", "b", "d"]
    assert list_below(grades, {}, "C") == {"c": "D"}
    assert list_below(grades, {}, "D") == list_below(grades, {}, REACHABLE) == list_below(grades, {}, "") == {}


def test_below_reachable_are_the_tests_that_could_have_had_more() -> None:
    assert list_below({"a": "A", "b": "B", "c": "D", "d": "D"}, {"b": "A", "c": "C"}, REACHABLE) == {"c": "D", "b": "B"}


IDS = st.frozensets(st.sampled_from(MANY))


@given(IDS, IDS, IDS, IDS, IDS)
def test_a_verdict_is_never_better_than_a_red_test_of_it(
    apart: frozenset[str], conversed: frozenset[str], falsified: frozenset[str], gone: frozenset[str],
    red: frozenset[str],
) -> None:  # fmt: skip
    evidence = Evidence(runner=Grade.D, apart=apart, falsified=falsified, open_to_it=falsified, retreated=gone)
    evidence = replace(evidence, conversed=conversed)
    found = grade_tests(MANY, evidence, red)

    assert found.lowest == max(found.tests[i] for i in red or MANY)
    assert all(grade is Grade.D for i, grade in found.tests.items() if i not in apart | falsified)
    assert {i for i, grade in found.tests.items() if grade is Grade.A} == apart - conversed
    assert found.reachable <= found.lowest
