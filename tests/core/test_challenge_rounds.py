"""What an acceptance asks for and how it reads the answers: pure rules, against a forger and an honest suite."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jumar.core.gate.challenge_rounds import Round, Strength, check_round, find_empty, plan_rounds
from jumar.core.state.verdict import Ended, Outcome, Report, TestResult

NAMES = st.lists(st.integers(0, 50).map("t.py::test_{}".format), unique=True, max_size=12)


def coins(seed: int) -> Iterator[bool]:
    chance = random.Random(seed)
    while True:
        yield chance.random() < 0.5


def report(outcomes: dict[str, Outcome], ended: Ended = Ended.NORMAL) -> Report:
    return Report(ended, tuple(TestResult(i, o) for i, o in outcomes.items()))


@pytest.mark.slow
@given(NAMES, st.integers(1, 6), st.integers())
def test_each_test_is_falsified_once_and_no_run_is_left_out(names: list[str], runs: int, seed: int) -> None:
    plan = plan_rounds(names, runs, coins(seed))

    assert len(plan) == max(2 if names else 1, runs)
    assert all(sum(name in step.falsified for step in plan) == 1 for name in names)


@pytest.mark.slow
@given(NAMES, st.integers(1, 4), st.integers())
def test_a_report_of_nothing_but_passes_never_gets_through_a_challenge(
    names: list[str], confirm: int, seed: int
) -> None:
    plan = plan_rounds(names, confirm, coins(seed))
    passes = report(dict.fromkeys(names, Outcome.PASSED))
    answers = [check_round(passes, step, names, {}) for step in plan]

    assert any(a.forged for a in answers) == bool(names)


@pytest.mark.slow
@given(NAMES, st.integers(1, 4), st.integers())
def test_an_honest_suite_always_gets_through(names: list[str], confirm: int, seed: int) -> None:
    for step in plan_rounds(names, confirm, coins(seed)):
        said = report({n: Outcome.FAILED if n in step.falsified else Outcome.PASSED for n in names})
        got = check_round(said, step, names, {})
        assert (got.forged, got.unsteady, got.void, got.unproved) == ((), (), "", frozenset())


FALSE = Round(frozenset({"t.py::a"}))
TABLE = {
    "it failed, as it had to": ({"t.py::a": Outcome.FAILED, "t.py::b": Outcome.PASSED}, (), (), 0),
    "it passed": ({"t.py::a": Outcome.PASSED, "t.py::b": Outcome.PASSED}, ("t.py::a",), (), 0),
    "it errored before the test": ({"t.py::a": Outcome.ERROR, "t.py::b": Outcome.PASSED}, ("t.py::a",), (), 0),
    "it was skipped": ({"t.py::a": Outcome.SKIPPED, "t.py::b": Outcome.PASSED}, ("t.py::a",), (), 0),
    "it hung": ({"t.py::a": Outcome.TIMEOUT, "t.py::b": Outcome.PASSED}, (), (), 1),
    "another failed": ({"t.py::a": Outcome.FAILED, "t.py::b": Outcome.FAILED}, (), ("t.py::b",), 0),
    "another was not reported": ({"t.py::a": Outcome.FAILED}, (), ("t.py::b",), 0),
    "one case of it passed": (
        {"t.py::a[1]": Outcome.FAILED, "t.py::a[2]": Outcome.PASSED, "t.py::b": Outcome.PASSED}, ("t.py::a",), (), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("outcomes", "forged", "unsteady", "unproved"), TABLE.values(), ids=TABLE)
def test_the_answer_to_a_round(
    outcomes: dict[str, Outcome], forged: tuple[str, ...], unsteady: tuple[str, ...], unproved: int
) -> None:
    got = check_round(report(outcomes), FALSE, ("t.py::a", "t.py::b"), {})

    assert (got.forged, got.unsteady, len(got.unproved)) == (forged, unsteady, unproved)


def test_who_leaves_without_a_goodbye_is_not_believed() -> None:
    left = report({"t.py::a": Outcome.FAILED, "t.py::b": Outcome.PASSED}, Ended.EXIT)

    assert check_round(left, FALSE, ("t.py::a", "t.py::b"), {}).unsteady


def test_cases_that_the_task_does_not_expect_prove_nothing() -> None:
    cases = {"t.py::a[1]": Outcome.FAILED, "t.py::a[2]": Outcome.FAILED}

    assert check_round(report(cases), FALSE, ("t.py::a[1]",), {}).unproved == {"t.py::a"}


def test_a_function_that_lost_cases_is_no_evidence() -> None:
    cases = {"t.py::a[1]": Outcome.FAILED}

    assert "1 cases" in check_round(report(cases), FALSE, ("t.py::a[1]", "t.py::a[2]"), {}).void


@pytest.mark.parametrize(
    ("second", "forged"), [(Outcome.FAILED, ()), (Outcome.SKIPPED, ("t.py::a",)), (Outcome.PASSED, ("t.py::a",))]
)
def test_one_excused_case_does_not_excuse_its_function(second: Outcome, forged: tuple[str, ...]) -> None:
    cases = {"t.py::a[1]": Outcome.SKIPPED, "t.py::a[2]": second}

    got = check_round(report(cases), FALSE, ("t.py::a[1]", "t.py::a[2]"), {"t.py::a[1]": Outcome.SKIPPED})

    assert got.forged == forged


def test_a_skip_counts_where_the_frozen_run_had_it() -> None:
    skipped = report({"t.py::a": Outcome.SKIPPED, "t.py::b": Outcome.SKIPPED})
    got = check_round(skipped, FALSE, ("t.py::a", "t.py::b"), {"t.py::a": Outcome.SKIPPED, "t.py::b": Outcome.SKIPPED})

    assert (got.forged, got.unsteady) == ((), ())


def test_a_round_that_could_not_be_run_is_void() -> None:
    assert check_round(Report(Ended.UNSTARTED, detail="no python"), Round(), ("a",), {}).void == "no python"
    assert check_round(Report(Ended.NORMAL, anomalies=("a wrong MAC",)), Round(), ("a",), {}).void == "a wrong MAC"


def test_what_cannot_be_falsified_is_no_forgery() -> None:
    said = report({"t.py::a": Outcome.PASSED, "t.py::b": Outcome.PASSED})
    got = check_round(structs.replace(said, strengths={"t.py::a": 0}), FALSE, ("t.py::a", "t.py::b"), {})

    assert (got.forged, set(got.unproved)) == ((), {"t.py::a"})


def test_a_case_more_that_passes_falsified_is_a_forgery() -> None:
    cases = {"t.py::a[1]": Outcome.FAILED, "t.py::a[2]": Outcome.PASSED}

    assert check_round(report(cases), FALSE, ("t.py::a[1]",), {}).forged == ("t.py::a",)


@pytest.mark.parametrize(
    ("strengths", "empty"),
    [
        ({}, set()),
        ({"t.py::a": Strength.PARTIAL, "t.py::b": Strength.NONE}, set()),
        ({"t.py::a": Strength.IDLE}, {"t.py::a"}),
        ({"t.py::c[1]": Strength.IDLE}, set()),
        ({"t.py::c[1]": Strength.IDLE, "t.py::c[2]": Strength.IDLE}, {"t.py::c[1]", "t.py::c[2]"}),
        ({"t.py::c[1]": Strength.EMPTY}, {"t.py::c[1]"}),
    ],
)
def test_a_case_may_have_nothing_to_assert_where_another_one_has(
    strengths: dict[str, Strength], empty: set[str]
) -> None:
    found = report(dict.fromkeys(["t.py::a", "t.py::b", "t.py::c[1]", "t.py::c[2]"], Outcome.PASSED))

    assert find_empty(structs.replace(found, strengths=strengths)) == empty
