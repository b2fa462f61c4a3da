"""Held-out tests that two processes prove: each passes alone, and comes to what it comes to in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.child.challenge.compared_data import KIND, WHOLE
from jumar.child.two_process import SAY
from jumar.core.gate.challenge_rounds import Round
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Report
from jumar.ports import Verification
from jumar.verify.evidence import find_unproved, list_beyond, list_swayed, list_wavering, run_ahead
from jumar.verify.execution import HeldOut, TreeRunner
from jumar.verify.rounds import GreenCandidate, draw_seeds, run_round, run_round_apart
from jumar.verify.two_process import TwoProcessTrial
from jumar.verify.verifier import TrustedVerifier
from support.judging.real_verifier import Court
from support.processes.sandboxes import ENVIRON, s3

VISIBLE, HIDDEN = "test_app.py::test_one", "test_more.py::test_more"


def candidate(verifier: TreeRunner, reached: Mapping[str, int] | None = None) -> GreenCandidate:
    return GreenCandidate(
        verifier, "whole", "alone", (VISIBLE, HIDDEN), {}, reached={HIDDEN: Counter(dict(reached or {}))}
    )


def test_a_held_out_test_that_an_object_of_the_code_decides_in_one_process_is_not_proved_by_two(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.verifier.held_out = HeldOut("tree", (HIDDEN,))
    whole, rest = candidate(court.verifier), candidate(court.verifier)
    rest.swayed = {VISIBLE, HIDDEN}

    assert list_swayed(whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = "the code calls into the tests"

    assert list_swayed(whole, rest) == {HIDDEN}

    whole.conversed[HIDDEN] = f"__eq__ of a Heard{SAY}"

    assert list_swayed(whole, rest) == frozenset()


KNOWN = {
    "b.py:1": 2,
    "b.py:2": 1,
    f"b.py:1{WHOLE}5": 1,
    f"b.py:2{WHOLE}5": 1,
    f"b.py:1{KIND}text": 1,
    "b.py calls 1": 1,
}


@pytest.mark.parametrize(
    ("more", "places"),
    [
        ({}, set()),
        (KNOWN, set()),
        ({"b.py:1": 3}, {"b.py:1"}),
        ({"b.py:3": 1}, {"b.py:3"}),
        ({"b.py calls 2": 1}, {"b.py calls 2"}),
        ({f"b.py:1{KIND}no text": 1}, {f"b.py:1{KIND}no text"}),
        ({f"b.py:1{WHOLE}7": 1, f"b.py:2{WHOLE}5": 1, f"b.py:3{WHOLE}7": 1}, {"b.py:1", "b.py:3"}),
    ],
)
def test_what_a_test_comes_to_in_one_process_and_not_in_two_is_told_by_its_place(
    tmp_path: Path, more: dict[str, int], places: set[str]
) -> None:
    verifier = Court(tmp_path).verifier
    whole, rest = candidate(verifier, KNOWN), candidate(verifier, more)

    assert list_beyond(whole, rest, HIDDEN) == places
    assert list_wavering(whole, rest, HIDDEN) == places | list_beyond(rest, whole, HIDDEN)


APP = """
import pathlib, secrets, sys
HOME = pathlib.Path.home() / "kept.txt"
SEEN = {}
def double(n):
    HOME.write_text(str(2 * n))
    return 2 * n
def draw():
    return secrets.token_hex()
def parse(text):
    SEEN[len(text)] = text
    return [int(word) for word in text.split()]
def show(rows):
    return sys._getframe(1).f_locals.get("due") or SEEN.get(2 * len(rows) - 1)
"""
TESTS = """
import secrets
import pytest
from app import HOME, double, draw, parse, show
def test_same():
    assert double(3) == 6
def test_kept():
    assert double(4) == 8
    assert len(sorted(HOME.parent.glob("kept.*"))) < 2
def test_drawn():
    assert draw() != draw()
def test_waits():
    assert double(5) == 10
    for n in range(secrets.randbelow(20_000)):  # as often in two runs is never by chance
        assert n >= 0
def test_parse():
    assert parse("1 2 3") == [1, 2, 3]
def test_show():
    due = " ".join(["1", "2", "3"])
    assert show([1, 2, 3]) == due
"""
OTHER = {f"test_more.py::test_{what}" for what in ("kept", "show")}


@pytest.mark.slow
def test_what_another_test_gave_in_is_not_known_and_what_differs_by_chance_does_not_count(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20))
    verifier = court.verifier
    verifier.sandbox, verifier.environ, verifier.sources = s3(), ENVIRON, "app.py".__eq__
    alone, hidden = court.tree({"app.py": APP}), court.tree({"app.py": APP, "test_more.py": TESTS})
    names = tuple(f"test_more.py::test_{what}" for what in ("same", "kept", "drawn", "waits", "parse", "show"))
    verifier.held_out, verifier.experience.challenge = HeldOut(hidden, names), {"test_more.py": TESTS.encode()}
    told: list[Any] = []
    verifier.tell = lambda what, done, total: told.append((done, total)) if what == "round" else None
    whole = GreenCandidate(verifier, hidden, alone, names, {})
    rest = replace(whole, strengths={}, swayed=set(), reached={}, missed={})

    async def find() -> tuple[frozenset[str], frozenset[str]]:
        apart = (await run_round_apart(whole, Round(), draw_seeds(shuffled=False))).kept
        ahead = await run_ahead(whole, apart)
        await run_round(rest, Round(), draw_seeds(shuffled=False))
        return apart, find_unproved(whole, rest, apart, ahead)

    apart, unproved = anyio.run(find)

    assert apart == set(names)
    assert unproved == OTHER
    assert told[: len(names)] == [(number, len(names)) for number in range(1, len(names) + 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "cause"), [("return 2 * n", None), ("return {3: 6}.get(n, 0)", Cause.HELD_OUT)], ids=["right", "by heart"]
)
def test_a_held_out_file_is_no_test_that_the_candidate_wrote(tmp_path: Path, made: str, cause: Cause | None) -> None:
    """Whatever its name: the candidate's own ones are not there while the task's are judged."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    head = "from app import double\ndef test_"
    tests = {"test_app.py": f"{head}one(): assert double(3) == 6\n"}
    base = court.tree({"app.py": "def double(n): return n\n", **tests})
    own = {"test_own.py": f"{head}two(): assert 0\n", "test_more.py": f"{head}more(): assert 0\n"}
    tree = court.tree({"app.py": f"def double(n): {made}\n", **tests, **own})
    verifier = court.verifier
    verifier.held_out = HeldOut(court.tree({"test_more.py": f"{head}more(): assert double(8) == 16\n"}), (HIDDEN,))
    verifier.sandbox, verifier.environ, verifier.sources = s3(), ENVIRON, "app.py".__eq__
    verifier.own = lambda path: path.startswith("test_") and path not in tests
    verifier.base, verifier.expected = base, (VISIBLE,)

    done = court.judge(tree, control=base)

    assert (done.verdict.void and done.verdict.void.cause) == cause
    assert done.verdict.green is (cause is None)


HARDER = """
from dataclasses import dataclass
@dataclass
class Money:
    amount: int
    def __eq__(self, other):
        return self.amount == other
def total(rows):
    return Money(sum(rows))
def double(n):
    return 2 * n
"""
HIDDEN_TESTS = """
import secrets
from app import double, total
def test_harder():
    assert total([5, 2]) == 7
def test_waits():
    assert double(5) == 10
    for n in range(secrets.randbelow(20_000)):  # as often in two runs is never by chance
        assert n >= 0
"""


class Logged(TrustedVerifier):
    """Keeps in how many processes each run was in which the code saw held-out tests."""

    ran: list[str]

    def _log(self, kind: str, tree: str, ids: Any) -> None:
        app = self.store.get(self.store.manifest(tree)["app.py"].sha256).decode()
        self.ran = [*getattr(self, "ran", []), *([kind] if "sum" in app and "test_more" in str(ids) else [])]

    async def run_fresh(self, tree: str, ids: Any, *more: Any) -> Report:
        """As any verifier does."""
        self._log("one", tree, ids)
        return await super().run_fresh(tree, ids, *more)

    def build_two_process_trial(self, tree: str, ids: Any, **more: Any) -> TwoProcessTrial:
        """As any verifier does."""
        self._log("two", tree, ids)
        return super().build_two_process_trial(tree, ids, **more)


def judge_logged(tmp_path: Path, app: str, *, best_grade: bool) -> tuple[Verification, list[str]]:
    """Judge *app* with held-out tests; the verdict, and in how many processes each run was that has shown them."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    tests = {"test_app.py": "from app import double\ndef test_one(): assert double(3) == 6\n"}
    base = court.tree({"app.py": "def double(n): raise NotImplementedError\ntotal = double\n", **tests})
    verifier = court.verifier = Logged(**{f.name: getattr(court.verifier, f.name) for f in fields(court.verifier)})
    names = tuple(f"test_more.py::test_{what}" for what in ("harder", "waits"))
    verifier.held_out = HeldOut(court.tree({"test_more.py": HIDDEN_TESTS}), names, best_grade)
    verifier.sandbox, verifier.environ, verifier.sources = s3(), ENVIRON, "app.py".__eq__
    verifier.base, verifier.expected = base, (VISIBLE,)
    done = court.judge(court.tree({"app.py": app, **tests}), control=base)
    return done, verifier.ran


@pytest.mark.slow
def test_no_run_in_two_processes_comes_after_one_in_which_the_code_has_seen_held_out_tests(tmp_path: Path) -> None:
    """It could have left a word for that one, bit by bit, where nothing forbids it."""
    done, kinds = judge_logged(tmp_path, HARDER, best_grade=False)

    assert done.verdict.green
    assert kinds == sorted(kinds, key=["two", "one"].index)
    assert kinds.count("two") > 1
    assert "one" in kinds


WRONG = HARDER.replace("Money(sum(rows))", "sum(rows) + 1")


@pytest.mark.slow
@pytest.mark.parametrize(("app", "cause"), [(HARDER, None), (WRONG, Cause.HELD_OUT)], ids=["harder to judge", "wrong"])
def test_what_two_processes_refuse_never_sees_held_out_tests_in_one(
    tmp_path: Path, app: str, cause: Cause | None
) -> None:
    """It could leave a word for the next acceptance, in which two processes would prove it."""
    done, kinds = judge_logged(tmp_path, app, best_grade=True)

    assert {*kinds} == {"two"}
    assert (done.verdict.void and done.verdict.void.cause) == cause
    assert cause or (done.grade, done.reachable) == ("D", "A")
