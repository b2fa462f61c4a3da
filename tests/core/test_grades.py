"""Each test has the grade of what was done with itself; a verdict has the lowest of those that were red."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.core.gate.grades import REACHABLE, STRONG_BITS, Evidence, Grade, format_grades, grade_tests, is_proved

MANY = tuple(f"t.py::test_{n}" for n in range(STRONG_BITS))
PLAIN = Evidence(runner=Grade.D)


def challenged(*ids: str, pairs: int = 1) -> Evidence:
    return Evidence(
        runner=Grade.D, falsified=frozenset(ids), open_to_it=frozenset(ids), coins={i: i for i in ids}, pairs=pairs
    )


def test_an_id_that_nothing_proved_is_d_whatever_the_others_have() -> None:
    found = grade_tests((*MANY, "t.py::odd"), challenged(*MANY), ("t.py::odd", MANY[0]))

    assert (found.lowest, found.tests["t.py::odd"]) == (Grade.D, Grade.D)


def test_what_passed_before_the_change_lowers_no_grade() -> None:
    found = grade_tests((*MANY, "t.py::odd"), challenged(*MANY), MANY)

    assert (found.lowest, found.bits) == (Grade.B, STRONG_BITS)
    assert found.counts == {"B": STRONG_BITS, "D": 1}


def test_where_nothing_was_red_all_of_them_count() -> None:
    assert grade_tests((*MANY, "t.py::odd"), challenged(*MANY), ()).lowest is Grade.D


def test_coins_of_what_passed_before_are_nobodys_to_guess() -> None:
    found = grade_tests(MANY, challenged(*MANY), MANY[:3])

    assert (found.bits, found.lowest) == (3, Grade.C)


def test_all_cases_of_a_function_are_one_coin() -> None:
    cases = tuple(f"t.py::test_a[{n}]" for n in range(40))
    evidence = replace(challenged(*cases), coins=dict.fromkeys(cases, "t.py::test_a"))

    assert grade_tests(cases, evidence, ()).bits == 1


def test_two_processes_are_a_for_those_that_passed_there() -> None:
    evidence = replace(challenged(*MANY[1:]), apart=frozenset(MANY[:1]))

    assert grade_tests(MANY, evidence, MANY[:1]).lowest is Grade.A
    assert grade_tests(MANY, evidence, MANY).lowest is Grade.C, "19 coins"


def test_a_weak_wall_or_order_is_worth_c_at_best() -> None:
    evidence = Evidence(runner=Grade.D, apart=frozenset(MANY), at_best_c=frozenset(MANY[:1]))

    assert grade_tests(MANY, evidence, MANY).lowest is Grade.C


def test_what_retreated_from_two_processes_could_have_had_a() -> None:
    found = grade_tests(MANY, replace(challenged(*MANY), retreated=frozenset(MANY)), ())

    assert (found.lowest, found.reachable) == (Grade.C, Grade.A)


def test_who_hung_when_falsified_could_have_had_more() -> None:
    evidence = replace(challenged(*MANY), falsified=frozenset(MANY[1:]), coins={i: i for i in MANY[1:]})

    found = grade_tests(MANY, evidence, ())

    assert (found.lowest, found.reachable) == (Grade.D, Grade.B)


@pytest.mark.parametrize(
    ("grade", "wanted", "proved"),
    [
        ("A", "A", True), ("B", "A", False), ("B+H", "B", True), ("C+H", "B", False), ("D", "", True), ("X", "X", True),
        ("X", "D", False), ("C", REACHABLE, False), ("B", REACHABLE, True),
    ],
)  # fmt: skip
def test_a_green_is_proved_if_its_grade_is_at_least_what_is_asked(grade: str, wanted: str, *, proved: bool) -> None:
    assert is_proved(grade, "B", wanted) is proved


def test_a_reader_sees_how_many_tests_have_which_grade() -> None:
    assert format_grades("C", {"A": 3, "C": 1}) == "grade C (tests: 3 at A, 1 at C)"
    assert format_grades("A+H", {"A": 3}) == "grade A+H"
    assert format_grades("A", {"A": 3}, 0) == "grade A (one-way wire)"
    assert format_grades("C", {"A": 3, "C": 1}, 2) == "grade C (tests: 3 at A, 1 at C; 2 requests to the tests)"


IDS = st.frozensets(st.sampled_from(MANY))


@given(IDS, IDS, IDS, IDS, IDS)
def test_a_verdict_is_never_better_than_a_red_test_of_it(
    apart: frozenset[str],
    falsified: frozenset[str],
    capped: frozenset[str],
    retreated: frozenset[str],
    red: frozenset[str],
) -> None:
    evidence = Evidence(
        runner=Grade.D, apart=apart, falsified=falsified, open_to_it=falsified, coins={i: i for i in falsified},
        pairs=2, at_best_c=capped, retreated=retreated,
    )  # fmt: skip
    found = grade_tests(MANY, evidence, red)

    assert found.lowest == max(found.tests[i] for i in red or MANY)
    assert all(grade is Grade.D for i, grade in found.tests.items() if i not in apart | falsified)
    assert found.reachable <= found.lowest
