"""What an acceptance asks for and how it reads the answers: pure rules, against a forger and an honest suite."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jumar.core.gate.challenge_rounds import (
    ApartRounds,
    Round,
    Strength,
    accept_stop,
    check_round,
    find_empty,
    plan_rounds,
)
from jumar.core.state.verdict import Ended, Outcome, Report, TestResult
from jumar.verify.merge_reports import merge_reports

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


@pytest.mark.slow
@given(st.data(), NAMES, st.integers(0, 2), st.integers())
def test_in_two_processes_a_pair_is_run_where_more_than_data_crosses(
    data: st.DataObject, names: list[str], again: int, seed: int
) -> None:
    more = frozenset(data.draw(st.lists(st.sampled_from(names), unique=True)) if names else [])
    known = frozenset(data.draw(st.lists(st.sampled_from([*names, "t.py::test_gone"]), unique=True)))
    plan, seen = ApartRounds(names, known, again, coins(seed)), list[frozenset[str]]()

    while (step := plan.plan_next()) is not None:
        assert step.challenge == bool(names)
        seen.append(step.falsified)
        plan.note_conversed(more)

    assert plan.conversed == (known & frozenset(names)) | more
    assert len(seen) == 1 + again + (2 if more - known else 1 if plan.conversed else 0)
    assert all(sum(name in falsified for falsified in seen) == (name in plan.conversed) for name in names)
    assert not (more - known) & seen[0], "it was not known"


def test_which_of_two_rounds_falsifies_a_test_is_a_coin() -> None:
    first = set()
    for seed in range(20):
        plan = ApartRounds(["t.py::a", "t.py::b"], (), 0, coins(seed))
        plan.plan_next()
        plan.note_conversed(["t.py::a"])
        falsified = [step.falsified for step in (plan.plan_next(), plan.plan_next()) if step]
        assert sorted(falsified, key=len) == [frozenset(), frozenset(["t.py::a"])]
        assert plan.plan_next() is None
        first.add(bool(falsified[0]))

    assert first == {True, False}


def test_what_no_function_stands_for_is_run_once_as_it_is() -> None:
    plan = ApartRounds((), (), 0, coins(1))

    assert (plan.plan_next(), plan.plan_next()) == (Round(challenge=False), None)


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


A, B = "t.py::a", "t.py::b"
STOPS = {
    "all have run": ({A: Outcome.FAILED, B: Outcome.PASSED}, {"stopped": True}, True),
    "no test that had to has failed": ({A: Outcome.ERROR, B: Outcome.PASSED}, {"stopped": True}, False),
    "it had to fail and passed": ({A: Outcome.PASSED, B: Outcome.PASSED}, {"stopped": True}, False),
    "another one failed": ({A: Outcome.ERROR, B: Outcome.FAILED}, {"stopped": True}, False),
    "without a goodbye, or a result": ({A: Outcome.FAILED, B: Outcome.PASSED}, {}, False),
}


@pytest.mark.parametrize(("outcomes", "more", "accepted"), STOPS.values(), ids=STOPS)
def test_a_session_may_be_stopped_at_its_end_because_a_falsified_test_has_failed(
    outcomes: dict[str, Outcome], more: dict[str, bool], accepted: object
) -> None:
    got = accept_stop(structs.replace(report(outcomes, Ended.EXIT), **more), FALSE.falsified)

    assert (got.ended is Ended.NORMAL) == accepted
    assert bool(check_round(got, FALSE, (A, B), {}).unsteady) != accepted


@pytest.mark.parametrize("first", [True, False])
def test_parts_are_stopped_together_if_none_of_them_ended_otherwise(first: bool) -> None:  # noqa: FBT001
    ends = [report({}), structs.replace(report({}, Ended.EXIT), stopped=True), report({}, Ended.CRASH)]
    some = ends[1:] if first else ends[:0:-1]

    assert merge_reports(*some).ended is Ended.CRASH
    assert not merge_reports(*some).stopped
    assert merge_reports(*ends[:2]).stopped


ENDS = {
    "it did not run": ({A: Outcome.FAILED, B: Outcome.ERROR}, Ended.EXIT, True),
    "it was skipped": ({A: Outcome.FAILED, B: Outcome.SKIPPED}, Ended.NORMAL, True),
    "all passed, and then it left": ({A: Outcome.FAILED, B: Outcome.PASSED}, Ended.EXIT, True),
    "all is well": ({A: Outcome.FAILED, B: Outcome.PASSED}, Ended.NORMAL, False),
    "the code skips it": ({A: Outcome.ERROR, B: Outcome.SKIPPED}, Ended.NORMAL, False),
    "it failed by itself": ({A: Outcome.FAILED, B: Outcome.FAILED}, Ended.EXIT, False),
    "its fixture failed": ({A: Outcome.FAILED, B: Outcome.ERROR}, Ended.NORMAL, False),
}


@pytest.mark.parametrize(("outcomes", "ended", "cut"), ENDS.values(), ids=ENDS)
def test_who_did_not_run_is_told_from_who_failed(outcomes: dict[str, Outcome], ended: Ended, cut: bool) -> None:  # noqa: FBT001
    assert check_round(report(outcomes, ended), FALSE, (A, B), {}).cut_short is cut


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
