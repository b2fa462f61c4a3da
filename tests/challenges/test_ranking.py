"""Points add up as the rules of a challenge say: every expected figure was computed by hand, and stands as a number."""

from __future__ import annotations

from typing import Any

import pytest

from jumar.challenges.ranking.comparison import compare, compute_mcnemar, compute_sign_flip
from jumar.challenges.ranking.rank_agents import RankedAgent, rank_agents
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.scorers.axes import Axis, AxisPoints, AxisScore, Label, add_up
from jumar.scorers.principles.mark import PrincipleMark
from jumar.scorers.scars.search import Finding

POINTS = AxisPoints()
JUDGE = JudgeStanding()


def marks(*given: int | None) -> tuple[PrincipleMark, ...]:
    return tuple(PrincipleMark(f"p{n}", mark, ("x = 1",), ("a.py:3",)) for n, mark in enumerate(given))


def scars(*points: float) -> tuple[Finding, ...]:
    return tuple(Finding("a.py", n + 1, f"r{n}", worth, "a fault") for n, worth in enumerate(points))


def run(agent: str = "a", passed: int | None = 63, total: int = 63, **more: object) -> RunScore:
    task, rollout = more.pop("task", "t"), more.pop("rollout", 1)
    fields = {"run": "", "stop": "final", "red": (), **more}
    return RunScore(agent=agent, task=task, rollout=rollout, passed=passed, total=total, **fields)  # type: ignore[arg-type]


def rank(*runs: RunScore, judge: JudgeStanding = JUDGE) -> tuple[RankedAgent, ...]:
    return rank_agents(tuple(dict.fromkeys(each.agent for each in runs)), runs, POINTS, judge)


def test_the_published_outcome() -> None:
    """Three agents on one challenge of 63 tests: 68, 86 and 9 of 92."""
    ten = (2, 2, 2, 2, 2, 2, 2, 2, 2, 0)
    first, second, third = rank(
        run("works", 61, marks=marks(1, 1, 0, 0, 0, 0, 0, 0, 0, 0), findings=scars(1, 3)),
        run("works well", 63, marks=marks(*ten), findings=scars(1, 1, 2)),
        run("does not build", None, label=Label.NEVER_EVALUATED, stop="budget"),
    )

    assert (first.agent, first.composite, first.maximum, first.labels) == ("works well", 86, 92, ())
    assert [first.axes[axis].points for axis in Axis] == [63, 18, 5]
    assert (second.agent, second.composite) == ("works", 68)
    assert [second.axes[axis].points for axis in Axis] == [61, 2, 5]
    assert (third.agent, third.composite, third.maximum) == ("does not build", 9, 92)
    assert [third.axes[axis].points for axis in Axis] == [0, 0, 9]
    assert third.labels == ("never evaluated", "principles not judged")


@pytest.mark.parametrize(
    ("axes", "points", "maximum", "labels"),
    [
        ({Axis.TESTS: AxisScore(61, 63), Axis.PRINCIPLES: AxisScore(2, 20), Axis.SCARS: AxisScore(5, 9)}, 68, 92, ()),
        (
            {
                Axis.TESTS: AxisScore(61, 63),
                Axis.PRINCIPLES: AxisScore(0, 20, Label.WITHHELD),
                Axis.SCARS: AxisScore(5, 9),
            },
            66,
            72,
            ("principles withheld",),
        ),
        (
            {
                Axis.TESTS: AxisScore(21, 63),
                Axis.PRINCIPLES: AxisScore(0, 20, Label.NOT_JUDGED),
                Axis.SCARS: AxisScore(9, 9),
            },
            30,
            92,
            ("principles not judged",),
        ),
        (
            {Axis.TESTS: AxisScore(0, 63, Label.NEVER_EVALUATED), Axis.SCARS: AxisScore(9, 9)},
            9,
            72,
            ("never evaluated",),
        ),
    ],
)
def test_axes_add_up(axes: dict[Axis, AxisScore], points: float, maximum: float, labels: tuple[str, ...]) -> None:
    added = add_up(axes)

    assert (added.points, added.maximum, added.labels) == (points, maximum, labels)


@pytest.mark.parametrize(
    ("given", "tests", "principles", "scar_points"),
    [
        (run(passed=0, total=10), 0, 0, 9),
        (run(passed=5, total=10, marks=marks(2)), 31.5, 0, 9),  # half is not more than half
        (run(passed=6, total=10, marks=marks(2, 1)), 37.8, 15, 9),
        (run(passed=10, total=10, marks=marks(2, None)), 63, 20, 9),  # a void score counts for nothing
        (run(passed=10, total=10, marks=marks(0), findings=scars(4, 4, 4)), 63, 0, 0),
        (run(passed=10, total=10, marks=marks(2), findings=scars(2) * 3), 63, 20, 7),  # a rule takes its points once
        (run(passed=7, total=10, marks=marks(2), label=Label.TIMED_OUT), 44.1, 20, 9),
        (run(passed=7, total=10, marks=marks(2), label=Label.CHEATED), 0, 0, 9),
    ],
)
def test_a_run_is_worth_this(given: RunScore, tests: float, principles: float, scar_points: float) -> None:
    (ranked,) = rank(given)

    assert ranked.axes[Axis.TESTS].points == pytest.approx(tests)
    assert ranked.axes[Axis.PRINCIPLES].points == pytest.approx(principles)
    assert ranked.axes[Axis.SCARS].points == scar_points
    assert ranked.composite == pytest.approx(tests + principles + scar_points)


def test_who_cheats_or_never_ends_is_last_however_much_it_has() -> None:
    ranked = rank(
        run("cheats", 63, label=Label.CHEATED),
        run("guardrail", 63, label=Label.GUARDRAIL, stop="guardrail"),
        run("late", 62, label=Label.TIMED_OUT),
        run("builds not", None, label=Label.NEVER_EVALUATED),
        run("poor", 1),
    )

    assert ranked[0].agent == "poor"
    assert {each.agent: each.labels[0] for each in ranked[1:]} == {
        "cheats": "cheated",
        "guardrail": "guardrail",
        "late": "timed out",
        "builds not": "never evaluated",
    }
    assert [each.rank for each in ranked] == [1, 2, 3, 4, 5]


def test_one_cheat_is_enough_and_one_late_run_is_not() -> None:
    ranked = rank(
        *(run("sly", 63, rollout=n, label=Label.CHEATED if n == 3 else "") for n in (1, 2, 3)),
        *(run("slow", 30, rollout=n, label=Label.TIMED_OUT if n == 3 else "") for n in (1, 2, 3)),
    )

    assert [(each.agent, "cheated" in each.labels) for each in ranked] == [("slow", False), ("sly", True)]


def test_equals_are_ranked_by_cost() -> None:
    first, second = rank(run("dear", 60, usd=0.5), run("cheap", 60, usd=0.1))

    assert (first.agent, second.agent) == ("cheap", "dear")
    assert first.composite == second.composite


def test_a_fault_of_the_machine_counts_for_nobody() -> None:
    (ranked,) = rank(run(passed=63, rollout=1), run(passed=None, rollout=2, stop="infra"))
    (nothing,) = rank(run(passed=None, stop="infra"))

    assert (ranked.rounds, ranked.axes[Axis.TESTS].points) == (1, 63)
    assert ranked.labels[-1] == "1 of 2 runs left out", "an agent that breaks when it fails is seen to"
    assert (nothing.rounds, nothing.composite, nothing.maximum, nothing.labels) == (0, 0, 92, ("not run",))


@pytest.mark.parametrize(
    "cut", [{"stop": "budget", "out_of_budget": True}, {"stop": "not_begun"}, {"stop": "interrupted"}]
)
def test_a_run_for_which_the_campaign_had_no_money_left_counts_for_nobody(cut: dict[str, Any]) -> None:
    poor = [run("poor", passed=63, rollout=1), run("poor", passed=0, rollout=2, **cut)]
    rich = [run("rich", passed=63, rollout=number) for number in (1, 2)]

    first, second = rank(*poor, *rich)

    assert first.composite == second.composite
    found = compare(poor, rich, POINTS, JUDGE)
    assert (found.pairs, found.unpaired, found.difference, found.tests_b) == (1, 2, 0, 0)


def test_who_breaks_on_the_hard_task_is_not_measured_by_the_easy_one_alone() -> None:
    (ranked,) = rank(run(passed=10, total=10, task="easy"), run(passed=None, total=30, task="hard", stop="infra"))

    assert ranked.axes[Axis.TESTS].points == 63 * 10 / 40
    assert "hard: not run" in ranked.lost[0].places


def test_tests_are_counted_over_all_tasks_and_scars_once_for_all() -> None:
    (ranked,) = rank(
        run(passed=9, total=9, task="small", marks=marks(2), findings=scars(2)),
        run(passed=30, total=54, task="large", marks=marks(1), findings=scars(2, 3)),
    )

    assert ranked.axes[Axis.TESTS].points == 39  # of 63 tests, 63 points
    assert ranked.axes[Axis.PRINCIPLES].points == 15  # the mean of 20 and 10
    assert ranked.axes[Axis.SCARS].points == 4


def test_the_interval_is_students() -> None:
    (ranked,) = rank(*(run(passed=passed, rollout=n) for n, passed in enumerate((20, 22, 24), 1)))

    # 22 + 0 + 9 on the mean; the standard error is 2 / sqrt(3), and t for 2 degrees of freedom 4.303.
    assert ranked.composite == pytest.approx(31)
    assert [ranked.low, ranked.high] == pytest.approx([26.031, 35.969], abs=0.001)


def test_what_was_lost_says_where() -> None:
    (ranked,) = rank(run(passed=62, red=("test_a",), marks=marks(2, 0), findings=scars(4)))

    assert [(lost.axis, lost.points, lost.places) for lost in ranked.lost] == [
        ("principles", 10, ("a.py:3 x = 1",)),
        ("scars", 4, ("a.py:1",)),
        ("tests", 1, ("t: test_a",)),
    ]
    assert sum(lost.points for lost in ranked.lost) == ranked.maximum - ranked.composite


def test_withheld_is_not_the_same_as_not_judged() -> None:
    judge = JudgeStanding(withheld="the judge gives the same mark to everything")
    ranked = rank(run("a", 63, marks=marks(2)), run("b", 20), judge=judge)

    assert [(each.composite, each.maximum) for each in ranked] == [(72, 72), (29, 72)]
    assert all(each.labels == ("principles withheld",) for each in ranked)


def test_without_a_judge_there_are_two_axes() -> None:
    (ranked,) = rank(run(passed=63), judge=JudgeStanding(absent=True))

    assert (ranked.composite, ranked.maximum, list(ranked.axes)) == (72, 72, ["tests", "scars"])


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"), [(0, 0, 1), (1, 0, 1), (6, 0, 0.03125), (8, 1, 0.0390625), (5, 5, 1)]
)
def test_mcnemar_is_exact(only_a: int, only_b: int, p: float) -> None:
    assert compute_mcnemar(only_a, only_b) == p
    assert compute_mcnemar(only_b, only_a) == p


@pytest.mark.slow
def test_signs_are_flipped() -> None:
    assert compute_sign_flip([1, 1, 1]) == 1 / 8
    assert compute_sign_flip([1, 1, -1]) == 4 / 8
    assert compute_sign_flip([]) == compute_sign_flip([0, 0]) == 1
    assert compute_sign_flip([1] * 30) < 0.001
    assert 0.4 < compute_sign_flip([1, -1] * 15) < 0.7


def test_two_agents_are_compared_run_by_run() -> None:
    a = [run("a", 63, rollout=n) for n in (1, 2)] + [run("a", 63, task="only a")]
    b = [run("b", 61, rollout=1, red=("x", "y")), run("b", 62, rollout=2, red=("x",))]

    found = compare(a, b, POINTS, JudgeStanding(absent=True))

    assert (found.pairs, found.unpaired) == (2, 1)
    assert (found.tests_a, found.tests_b, found.p_tests) == (3, 0, 0.25)
    assert found.difference == pytest.approx(1.5)
    assert [found.low, found.high] == pytest.approx([1, 2])
    assert found.p_better == 0.25


def test_a_comparison_and_the_ranking_mean_the_same_composite() -> None:
    """Tasks of 3 and 60 tests, and a scar of both tasks: a mean over runs would have the other one first."""
    runs = [
        each
        for n in (1, 2)
        for each in (
            run("a", 3, 3, rollout=n, findings=scars(2), marks=marks(2), task="small"),
            run("a", 40, 60, rollout=n, findings=scars(2, 4), marks=marks(1, 2), task="large"),
            run("b", 0, 3, rollout=n, findings=scars(3), label=Label.CHEATED if n == 2 else "", task="small"),
            run("b", 58, 60, rollout=n, marks=marks(2), task="large"),
        )
    ]
    ranked = {each.agent: each.composite for each in rank(*runs)}

    found = compare(
        [each for each in runs if each.agent == "a"], [each for each in runs if each.agent == "b"], POINTS, JUDGE
    )

    assert found.difference == pytest.approx(ranked["a"] - ranked["b"])
    assert (found.pairs, found.unpaired) == (4, 0)


def test_a_run_that_was_never_evaluated_passed_nothing() -> None:
    found = compare([run("a", 60, red=("x", "y", "z"))], [run("b", None)], POINTS, JUDGE)

    assert (found.tests_a, found.tests_b) == (60, 0)


def test_tests_of_other_languages_are_not_paired() -> None:
    a = [run("a", 60, task="t", suite="python")]
    b = [run("b", 50, task="t", suite="go")]
    found = compare(a, b, POINTS, JUDGE)

    assert (found.pairs, found.tests_a, found.tests_b, found.p_tests) == (1, 0, 0, 1.0)
    assert found.difference > 0
