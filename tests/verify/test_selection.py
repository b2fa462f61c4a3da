"""Verifications that begin with claimed and impacted tests: what is red there is enough, all else is judged in full."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jumar.core.gate.impact import RanLines
from jumar.core.state.verdict import Outcome, Verdict
from jumar.ports import Verification
from jumar.verify.selection import REMEMBERED, Selection, read_coverage
from support.judging.real_verifier import Court

APP = """
def double(n):
    if n < 0:
        return 0
    return 2 * n


def square(n):
    return n * n


def half(n):
    return None
"""
TESTS = """
import app


def test_double():
    assert app.double(2) == 4


def test_negative():
    assert app.double(-1) == 0


def test_square():
    assert app.square(3) == 9


def test_half():
    assert app.half(4) == 2


def test_square_of_two():
    assert app.square(2) == 4
"""
CLAIMED = ("test_app.py::test_half",)


class Task:
    """A task whose tree has a complete verdict, and whose coverage is recorded at once."""

    def __init__(self, folder: Path) -> None:
        self.court = Court(folder)
        self.verifier = self.court.verifier
        self.verifier.sources = "app.py".__eq__
        self.base = self.court.tree({"app.py": APP, "test_app.py": TESTS})
        self.court.collect(self.base)
        # Times are the machine's: a busy one may take longest for the test that is selected.
        self.verifier.selection = Selection(least_ms=0, after=0, share=1.0)
        before = self.court.judge(self.base, {})
        assert set(before.verdict.red_ids) == set(CLAIMED)

    def judge(self, app: str, *first: str, **more: str) -> Verification:
        """The verification of an edit."""
        tree = self.court.tree({"app.py": app, "test_app.py": TESTS, **more})

        async def verify() -> Verification:
            return await self.verifier.verify(tree, {}, control=self.base, first=first or CLAIMED)

        return anyio.run(verify)

    def names(self, done: Verification) -> dict[str, str]:
        """Test name -> outcome, of what is red."""
        red = done.verdict.red_ids
        return {i.partition("::")[2]: str(r.outcome) for i, r in done.verdict.results.items() if i in red}


@pytest.mark.slow
def test_a_red_claim_or_a_lost_test_is_enough(tmp_path: Path) -> None:
    task = Task(tmp_path)

    still = task.judge(APP.replace("return None", "return 3"))
    lost = task.judge(APP.replace("return None", "return n / 2").replace("return 2 * n", "return 3 * n"))

    assert (still.selected, still.executions, task.names(still)) == (1, 2, {"test_half": "failed"})
    assert still.verdict.passed == 4
    assert (lost.selected, lost.executions, task.names(lost)) == (2, 1, {"test_double": "failed"})
    assert len(list((tmp_path / "run" / "output").glob("*.txt"))) == 2 + still.executions + lost.executions
    assert lost.verdict.total == 5


@pytest.mark.slow
def test_all_else_is_judged_in_full(tmp_path: Path) -> None:
    task = Task(tmp_path)
    good = APP.replace("return None", "return n / 2")

    kept = task.judge(good)
    hidden = task.judge(good.replace("return n * n", "return n * n if n < 5 else 0"))
    data = task.judge(APP, **{"data.txt": "read by nobody knows whom"})
    broken = task.judge("def")

    assert [done.selected for done in (kept, hidden, data)] == [0, 0, 0]
    assert (kept.verdict.green, hidden.verdict.green) == (True, True)
    assert task.names(data) == {"test_half": "failed"}
    assert set(task.names(broken)) >= {"test_half"}


@pytest.mark.slow
def test_a_selection_that_is_tampered_with_refutes_or_says_nothing(tmp_path: Path) -> None:
    task = Task(tmp_path)
    patch = """from _pytest.reports import TestReport

whole = TestReport.from_item_and_call.__func__
TestReport.from_item_and_call = classmethod(lambda cls, item, call: whole(cls, item, call))
"""

    red = task.judge(patch + APP.replace("return None", "return 3"))
    bought = task.judge(patch + APP.replace("return None", "return n / 2"))

    assert (red.selected, red.verdict.void, task.names(red)) == (5, None, {"test_half": "failed"})
    assert bought.selected == 0
    assert bought.verdict.void is not None
    assert not bought.verdict.green


def test_the_control_is_remembered_as_long_as_it_is_asked_for() -> None:
    selection, verdict = Selection(), Verdict({}, frozenset())
    selection.remember("control", verdict)

    for number in range(10):
        selection.remember(f"edit {number}", verdict)
        assert selection.recall("control") is verdict

    assert selection.recall("edit 0") is None
    assert len(selection.complete) == REMEMBERED


@pytest.mark.slow
def test_a_test_that_coverage_did_not_see_is_found_by_the_full_run(tmp_path: Path) -> None:
    """`square` runs none of the lines of `half` on the tree of the map, and depends on them by what the edit makes."""
    task = Task(tmp_path)

    done = task.judge(APP.replace("return None", "globals().update(square=lambda n: 1)\n    return n / 2"))

    assert done.selected == 0
    assert "test_half" not in task.names(done)


@pytest.mark.slow
def test_short_suites_and_short_runs_are_not_worth_a_selection(tmp_path: Path) -> None:
    task = Task(tmp_path)
    red = APP.replace("return None", "return 3")

    task.verifier.selection.least_ms = 3_600_000
    assert task.judge(red).selected == 0
    task.verifier.selection.least_ms, task.verifier.selection.after = 0, 1
    assert task.judge(red).selected == 0
    task.verifier.selection.share = 0.0
    assert task.judge(red).selected == 0, "it would take too large a share of the time of all tests"
    task.verifier.selection.share = 1.0
    assert task.judge(red).selected == 1
    assert task.verifier.selection.asked == 3


@pytest.mark.slow
def test_what_the_frozen_run_excuses_is_not_lost(tmp_path: Path) -> None:
    """`test_half` is expected to fail; a green test that the edit breaks is lost all the same."""
    task = Task(tmp_path)
    marked = TESTS.replace("def test_half", "@pytest.mark.xfail\ndef test_half").replace(
        "import app", "import pytest\n\nimport app"
    )
    accepted = {CLAIMED[0]: Outcome.XFAILED}
    base = task.court.tree({"app.py": APP, "test_app.py": marked})
    assert task.court.judge(base, accepted).verdict.green

    async def verify(app: str) -> Verification:
        tree = task.court.tree({"app.py": app, "test_app.py": marked})
        return await task.verifier.verify(tree, accepted, control=base, first=("test_app.py::test_negative",))

    kept = anyio.run(verify, APP.replace("return None", "return 3"))
    lost = anyio.run(verify, APP.replace("return None", "return 3").replace("return 0", "return 1"))

    assert (kept.selected, kept.verdict.green) == (0, True)
    assert (lost.selected, task.names(lost)) == (2, {"test_negative": "failed"})


def test_a_forged_record_of_lines_is_read_as_far_as_it_is_one() -> None:
    records: list[list[object]] = [
        ["lines", "t::a", "app.py", [3, "4", None, True, [5]]],
        ["lines", "", "app.py", [1]],
        ["lines", "t::b"],
    ]

    assert read_coverage(records) == {"app.py": RanLines(tests={"t::a": frozenset({3})}, imported=frozenset({1}))}
