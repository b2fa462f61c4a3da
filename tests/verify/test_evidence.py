"""Evidence beside held-out tests: which reasons are told, and which tests two processes prove."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from jumar.child.challenge.compared_data import KINDS, WHOLE
from jumar.child.two_process import SAY
from jumar.core.gate.challenge_rounds import Round
from jumar.core.gate.grades import Grade
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome
from jumar.verify.evidence import (
    UNREACHED,
    WITHHELD,
    find_unlike,
    list_beyond,
    list_left_out,
    list_weaker,
    note_unreached,
)
from jumar.verify.execution import HeldOut, TreeRunner
from jumar.verify.rounds import GreenCandidate, draw_seeds, run_round, run_round_apart
from support.judging.real_verifier import Court
from support.processes.sandboxes import ENVIRON, s3

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

    assert anyio.run(find_unlike, whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = "the code calls into the tests"

    assert anyio.run(find_unlike, whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = f"__eq__ of a Heard{SAY}"

    assert anyio.run(find_unlike, whole, rest) == frozenset()


def test_a_held_out_test_that_comes_to_more_in_one_process_is_not_proved_by_two(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.held_out = HeldOut("tree", (HIDDEN,))
    whole, rest = candidate(court.verifier), candidate(court.verifier)
    whole.reached = {VISIBLE: Counter({"a.py:1": 1}), HIDDEN: Counter({"b.py:1": 2, "b.py:2": 1})}
    rest.reached = {VISIBLE: Counter({"a.py:1": 3, "a.py:2": 1}), HIDDEN: Counter({"b.py:1": 2})}

    assert anyio.run(find_unlike, whole, rest) == frozenset()

    rest.reached[HIDDEN]["b.py:1"] += 1

    assert anyio.run(find_unlike, whole, rest) == {HIDDEN}

    rest.reached[HIDDEN] = Counter({"b.py:3": 1})

    assert anyio.run(find_unlike, whole, rest) == {HIDDEN}


@pytest.mark.parametrize(
    ("more", "places"),
    [
        ({}, set()),
        ({"b.py:1": 3}, {None}),
        ({f"b.py:1{KINDS}7": 1}, {None}),
        ({f"b.py:1{WHOLE}7": 1}, {"b.py:1"}),
        ({f"b.py:1{WHOLE}7": 1, f"b.py:2{WHOLE}5": 1, f"b.py:3{WHOLE}7": 1}, {"b.py:1", "b.py:3"}),
        ({f"b.py:1{WHOLE}7": 1, "b.py:4": 1}, {"b.py:1", None}),
    ],
)
def test_what_a_test_compares_in_one_process_and_not_in_two_is_told_by_its_place(
    tmp_path: Path, more: dict[str, int], places: set[str | None]
) -> None:
    whole, rest = candidate(Court(tmp_path).verifier), candidate(Court(tmp_path).verifier)
    whole.reached = {HIDDEN: Counter({"b.py:1": 2, f"b.py:1{WHOLE}5": 1, f"b.py:2{WHOLE}5": 1, f"b.py:1{KINDS}5": 1})}
    rest.reached = {HIDDEN: Counter(more)}

    assert list_beyond(whole, rest, HIDDEN) == places


WRITING = """
import pathlib, secrets
HOME = pathlib.Path.home() / "kept.txt"
def double(n):
    HOME.write_text(str(2 * n))
    return 2 * n
def draw():
    return secrets.token_hex()
"""
HELD_OUT = """
from app import HOME, double, draw
def test_same():
    assert double(3) == 6
def test_kept():
    assert double(4) == 8
    assert len(sorted(HOME.parent.glob("kept.*"))) < 2
def test_drawn():
    assert draw() != draw()
"""


@pytest.mark.slow
def test_other_data_in_one_process_counts_where_it_does_not_differ_from_run_to_run(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20))
    verifier = court.verifier
    verifier.sandbox, verifier.environ, verifier.sources = s3(), ENVIRON, "app.py".__eq__
    alone, hidden = court.tree({"app.py": WRITING}), court.tree({"app.py": WRITING, "test_more.py": HELD_OUT})
    names = [f"test_more.py::test_{what}" for what in ("same", "kept", "drawn")]
    verifier.held_out, verifier.experience.challenge = (
        HeldOut(hidden, tuple(names)),
        {"test_more.py": HELD_OUT.encode()},
    )
    whole = GreenCandidate(verifier, hidden, alone, tuple(names), {})
    rest = replace(whole, strengths={}, swayed=set(), reached={}, missed={})

    async def find() -> tuple[frozenset[str], frozenset[str]]:
        kept = (await run_round_apart(whole, Round(), draw_seeds(shuffled=False))).kept
        await run_round(rest, Round(), draw_seeds(shuffled=False))
        return kept, await find_unlike(whole, rest)

    kept, unlike = anyio.run(find)

    assert kept == set(names)
    assert unlike == {names[1]}
    assert [list_beyond(whole, rest, name) for name in names] == [set(), {"test_more.py:7"}, {"test_more.py:9"}]


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
