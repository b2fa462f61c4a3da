"""Which trial comes next follows from what was seen, in whatever order the workers were done."""

from __future__ import annotations

from jumar.repair.schedule import LIMITS, TrialSchedule
from jumar.repair.screening_client import ScreeningTrial, Sighting, parse_sighting, spread
from jumar.repair.suspicion import SuspectTree

SOURCE = "def f(a, b):\n    while a < b:\n        a += 1\n    return a\n"
RED = ("t.py::one", "t.py::two")


def strategy(seed: int = 0) -> TrialSchedule:
    found = TrialSchedule(SuspectTree({"m.py": SOURCE}, {}), RED, seed)
    trial = found.find_trial(0)
    assert trial
    assert trial.candidate is None
    found.record(trial, Sighting(signs=("AssertionError: ",)))
    return found


def fresh(found: TrialSchedule, index: int) -> ScreeningTrial:
    trial = found.find_trial(index)
    assert trial
    assert trial.candidate
    return trial


def test_one_that_hung_is_tried_again_under_a_longer_limit() -> None:
    found = strategy()
    hung = fresh(found, 1)
    found.record(hung, Sighting(hung=True))

    for index in range(2, 200):
        again = fresh(found, index)
        if again.candidate is hung.candidate:
            break
        found.record(again, Sighting(signs=("AssertionError: ",)))

    assert again.candidate is hung.candidate
    assert (hung.seconds, again.seconds) == LIMITS[:2]


def test_one_that_turned_a_test_before_it_hung_is_tried_again_at_once() -> None:
    found = strategy()
    hung = fresh(found, 1)

    found.record(hung, Sighting(turned=frozenset(RED[:1]), hung=True))

    assert fresh(found, 2).candidate is hung.candidate


def test_progress_raises_what_the_next_must_achieve() -> None:
    found = strategy()
    partial = fresh(found, 1)
    found.record(partial, Sighting(turned=frozenset(RED[:1]), kept=True))

    assert fresh(found, 2).floor == 1
    assert found.partials[0][2] is partial.candidate


def test_only_all_red_tests_green_and_nothing_lost_is_a_full_repair() -> None:
    found = strategy()

    assert found.is_full(Sighting(turned=frozenset(RED), kept=True))
    assert not found.is_full(Sighting(turned=frozenset(RED[:1]), kept=True))
    assert not found.is_full(Sighting(turned=frozenset(RED), kept=False))


def test_the_end_comes_when_everything_was_tried() -> None:
    found = TrialSchedule(SuspectTree({"m.py": "X = 1\n"}, {}), RED)
    index = 0
    while (trial := found.find_trial(index)) is not None:
        found.record(trial, Sighting(signs=("AssertionError: ",)))
        index += 1

    assert index > 3


def test_red_tests_of_different_functions_come_first() -> None:
    assert spread(["t::a[1]", "t::a[2]", "t::b"]) == (["t::a[1]", "t::b", "t::a[2]"], 2)


def test_what_a_child_says_is_read_as_a_sighting() -> None:
    lines: list[list[object]] = [["red", "x", "passed", "", 0.25], ["red", "y", "failed", "KeyError: 1", 0.5], ["hung"]]

    assert parse_sighting(lines) == Sighting(
        frozenset({"x"}), kept=False, hung=True, signs=("KeyError: 1",), seconds=0.5
    )
    assert parse_sighting([["misfit"]]).misfit
