"""A green is believed after fresh runs: what dice, forgers and suites that depend on their order come to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import anyio
import msgspec
import pytest

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended, Outcome, Report, TestResult, Verdict, Void, reconcile
from jumar.ports import Verification
from jumar.process.progress import Tell, ignore_progress
from jumar.process.warm.starts import WarmStarts
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.acceptance import accept_green
from jumar.verify.challenge.round_challenge import Challenge
from jumar.verify.execution import HeldOut, SuiteKnowledge
from jumar.verify.two_process import estimate_patience
from jumar.verify.untouched_tree import list_unable
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.sandboxes import ENVIRON, s3

IDS = ("test_a.py::test_a", "test_a.py::test_b")
ATTEMPTS = 5


class _Runner:
    name, grade = "go", "X"


@dataclass
class Dice:
    """A verifier whose tests pass by chance; it has what an acceptance asks a verifier for."""

    chance: random.Random
    passing: float
    suite: Suite = field(default_factory=lambda: Suite(confirm=3, python=PLAIN_PYTHON))
    expected: tuple[str, ...] = IDS
    held_out: HeldOut = field(default_factory=HeldOut)
    tell: Tell = ignore_progress
    base: str = "base"
    runner: _Runner = field(default_factory=_Runner)
    experience: SuiteKnowledge = field(default_factory=SuiteKnowledge)
    seeds: list[int | None] = field(default_factory=list)
    weaker: str = ""
    warm: WarmStarts | None = None

    async def weakened(self) -> str:
        return self.weaker

    async def run_fresh(self, _tree: str, ids: Sequence[str], challenge: Challenge, seed: int | None) -> Report:
        assert not challenge.told
        self.seeds.append(seed)
        return self.report(ids, seed)

    def report(self, ids: Sequence[str], _seed: int | None) -> Report:
        lucky = self.chance.random() < self.passing
        return Report(Ended.NORMAL, tuple(TestResult(i, Outcome.PASSED if lucky else Outcome.FAILED) for i in ids))

    def first(self) -> Verification:
        verdict = reconcile(self.expected, self.report(self.expected, None))
        return Verification(verdict=verdict, ended=Ended.NORMAL, executions=1, duration_ms=1, output="")


def green(dice: Dice, tree: str = "tree") -> Verification:
    first = dice.first()
    if not first.verdict.green:
        return first
    return anyio.run(lambda: accept_green(dice, first, tree, {}))  # type: ignore[arg-type]  # it has all that is asked


@pytest.mark.slow
def test_what_passes_one_time_in_five_is_hardly_ever_green() -> None:
    lucky = 0
    for seed in range(500):
        dice = Dice(random.Random(seed), 0.2)
        lucky += any(green(dice).verdict.green for _ in range(ATTEMPTS))

    assert lucky < 10, "fewer than 2 % of 500 runs of five attempts each"


def test_without_confirmations_it_would_be_green_most_of_the_time() -> None:
    lucky = sum(
        any(Dice(chance, 0.2).first().verdict.green for _ in range(ATTEMPTS))
        for chance in map(random.Random, range(500))
    )

    assert lucky > 250


def test_what_changed_on_the_same_files_is_flaky_and_no_red() -> None:
    done = next(
        d for d in (green(Dice(random.Random(n), 0.5)) for n in range(100)) if d.executions > 1 and not d.verdict.green
    )

    assert done.verdict.void is None
    assert set(done.verdict.flaky_ids) == set(IDS)
    assert done.verdict.red_ids == ()
    assert done.verdict.passed == 0


def test_every_fresh_run_is_in_an_order_of_its_own() -> None:
    dice = Dice(random.Random(1), 1.0)

    done = green(dice)

    assert (done.verdict.green, done.executions, len(set(dice.seeds))) == (True, 4, 3)
    assert None not in dice.seeds


class Ordered(Dice):
    """Its tests pass in their own order only."""

    def report(self, ids: Sequence[str], seed: int | None) -> Report:
        outcome = Outcome.PASSED if seed is None else Outcome.FAILED
        return Report(Ended.NORMAL, tuple(TestResult(i, outcome) for i in ids))


def test_tests_that_depend_on_their_order_are_no_flakes_and_it_is_said() -> None:
    dice = Ordered(random.Random(1), 1.0)

    done, later = green(dice), green(dice)

    assert done.verdict.green
    assert "depend on their order" in done.warnings[0]
    assert (later.executions, later.warnings) == (4, ()), "the next acceptance knows"


def test_a_test_gets_as_much_time_in_two_processes_as_its_own_first_run_gives_it() -> None:
    took = {"test_a.py::short": 10, "test_a.py::long": 4000, "test_b.py::another": 4000}
    asked = ["test_a.py::short", "test_a.py::long", "test_c.py::held_out"]
    assert estimate_patience(asked, took) == (1.5, {"test_a.py::long": 80.0, "test_c.py::held_out": 8.0})
    assert estimate_patience(asked, {**took, "test_a.py::long": 200}, 4.0) == (6.0, {"test_c.py::held_out": 8.0})


MANY_CALLS = """
from calc import double


def test_once():
    assert double(2) == 4


def test_many():
    assert [double(n) for n in range(60_000)] == list(range(0, 120_000, 2))
"""


@pytest.mark.proof
def test_a_test_that_is_too_slow_in_two_processes_is_known_from_the_untouched_tree(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=120, test_timeout_seconds=60, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    ways = [f"def double(n):\n    return {way}\n" for way in ("2 * n", "n + n", "n * 2")]
    base, other, third = (court.tree({"calc.py": way, "test_calc.py": MANY_CALLS}) for way in ways)
    court.collect(base)

    first = court.judge(other, control=base)
    slow = list_unable(court.verifier.experience)
    second = court.judge(third, control=base)

    assert slow == {"test_calc.py::test_many"}
    assert first.grades == second.grades == {"test_calc.py::test_once": "A", "test_calc.py::test_many": "D"}


def test_what_is_red_on_the_untouched_tree_may_run_in_two_processes_with_the_change() -> None:
    """Held-out tests too, which no run has judged before."""
    passed, failed = Outcome.PASSED, Outcome.FAILED
    one = Report(Ended.NORMAL, (TestResult("a", passed), TestResult("hidden", failed), TestResult("c", passed)))
    two = Report(Ended.NORMAL, (TestResult("a", failed), TestResult("hidden", failed), TestResult("c", passed)))
    every = frozenset({"a", "hidden", "c"})
    known = SuiteKnowledge(red=frozenset(), base_report=one, base_apart=two, compared=every, alike=frozenset({"c"}))

    assert list_unable(known) == {"a"}
    assert list_unable(replace(known, base_apart=msgspec.structs.replace(two, lost="a"))) == frozenset()


class Hidden(Dice):
    """What nobody saw fails."""

    def report(self, ids: Sequence[str], _seed: int | None) -> Report:
        return Report(Ended.NORMAL, tuple(TestResult(i, Outcome.PASSED if i in IDS else Outcome.FAILED) for i in ids))


def test_a_change_that_answers_the_visible_tests_alone_is_void() -> None:
    done = green(Hidden(random.Random(1), 1.0, held_out=HeldOut("", ("hidden.py::test_c",))))

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.HELD_OUT


def test_a_sandbox_that_became_weaker_is_the_end_of_the_run() -> None:
    done = green(Dice(random.Random(1), 1.0, weaker="sandbox S3 does not start any more"))

    assert done.verdict.void == Void(Cause.HARNESS, "sandbox S3 does not start any more")
    assert done.executions == 1


CALC = "def add(a, b):\n    return a + b\n"
TESTS = dedent("""\
    from calc import add


    def test_add():
        assert add(2, 3) == 5


    def test_zero():
        assert add(0, 0) == 0
    """)
BLIND = dedent("""\
    class Same(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__


    def add(a, b):
        return Same(7)
    """)


ORDERED = "from calc import add\n\nSEEN = []\n" + "".join(
    f"\n\ndef test_{n:02}():\n    SEEN.append({n})\n    assert add(len(SEEN), 1) == {n + 2}\n" for n in range(24)
)


def judged(tmp_path: Path, product: str, tests: str = TESTS) -> Verification:
    court = Court(tmp_path, Suite(timeout_seconds=20, test_timeout_seconds=5, confirm=3))
    base = court.tree({"calc.py": "def add(a, b):\n    return a\n", "test_calc.py": tests})
    court.collect(base)
    return court.judge(court.tree({"calc.py": product, "test_calc.py": tests}), control=base)


@pytest.mark.slow
def test_a_right_solution_is_accepted_with_a_grade(tmp_path: Path) -> None:
    done = judged(tmp_path, CALC)

    assert done.verdict.green
    assert done.grade == "C"
    assert done.executions <= 4


class Alleged(Unconfined):
    """It says that it is what two processes need, so that they are tried, and lets the code under test keep count."""

    tier = "S3"


LATE_IN_TWO = 2
"""Runs before the one in which nothing holds: the first one, and that in two processes."""

WOBBLY = "from calc import wobbly\n" + "".join(
    f"\n\ndef test_{n}():\n    assert wobbly({n}) is True\n" for n in range(12)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sandbox", "late"),
    [(Unconfined(), 1), pytest.param(Alleged(), LATE_IN_TWO, marks=pytest.mark.proof)],
    ids=["one process", "two"],
)
def test_what_fails_only_now_and_then_when_it_must_is_flaky_and_no_forgery(
    tmp_path: Path, sandbox: Unconfined, late: int
) -> None:
    """Each test holds, then does not, then does: some pass that must fail just then, and fail in the same files."""
    seen = tmp_path / "seen"
    product = dedent(f"""\
        import pathlib


        def wobbly(number):
            seen = pathlib.Path({str(seen)!r} + str(number))
            times = int(seen.read_text()) if seen.exists() else 0
            seen.write_text(str(times + 1))
            return times != {late}
        """)
    court = Court(tmp_path, Suite(timeout_seconds=20, test_timeout_seconds=5, confirm=3))
    court.verifier.sandbox, court.verifier.sources = sandbox, "calc.py".__eq__
    base = court.tree({"calc.py": "def wobbly(number):\n    return 0\n", "test_calc.py": WOBBLY})
    court.collect(base)
    done = court.judge(court.tree({"calc.py": product, "test_calc.py": WOBBLY}), control=base)

    assert (done.verdict.void, done.verdict.green) == (None, False)
    said = [done.verdict.results[i].excerpt for i in done.verdict.red_ids]
    if late == LATE_IN_TWO:  # after one round in two processes comes the plain run, which is to be believed
        assert said
        assert all("in one plain run of pytest" in one for one in said)
    else:
        assert done.verdict.flaky_ids


@pytest.mark.proof
def test_an_order_that_never_changes_is_said(tmp_path: Path) -> None:
    """In another order an answer may be what is falsified, by chance: that is no forgery."""
    for number in range(5):
        done = judged(tmp_path / str(number), CALC, ORDERED)

        assert (done.verdict.green, done.grade) == (True, "C")
        assert "depend on their order" in done.warnings[0]


@pytest.mark.slow
def test_an_object_that_equals_everything_is_not_accepted(tmp_path: Path) -> None:
    verdict: Verdict = judged(tmp_path, BLIND).verdict

    assert not verdict.green
    assert verdict.void is not None
    assert verdict.void.cause is Cause.TAMPER


RETURNED = """
from calc import area, size


class Anything:
    def __eq__(self, other): return True


def test_size(): assert size() == 1
def test_area(): assert area(3, 4, Anything()) == 12
"""
TELLING = """
called = []


class One:
    def __eq__(self, other): return other == 1


def size():
    called.append(1)
    return One()


def area(a, b, spare):
    return spare if called else a * b
"""


@pytest.mark.slow
def test_no_test_is_missing_by_which_the_code_could_tell_a_later_round(tmp_path: Path) -> None:
    """One that two processes cannot judge runs in each of them all the same."""
    court = Court(tmp_path, Suite(timeout_seconds=20, test_timeout_seconds=5, confirm=3, python=PLAIN_PYTHON))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    court.collect(court.tree({"calc.py": "def area(*_): pass\nsize = area\n", "test_calc.py": RETURNED}))

    done = court.judge(court.tree({"calc.py": TELLING, "test_calc.py": RETURNED}), {})

    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.TAMPER


PRICED = """
class Money:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return self.n == other


def price(): return {}
"""


@pytest.mark.slow
def test_a_green_that_two_processes_cannot_prove_leaves_them_to_the_next_one(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=20, test_timeout_seconds=5, confirm=3, python=PLAIN_PYTHON))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    tests = {"test_calc.py": "from calc import price\n\n\ndef test_price(): assert price() == 3\n"}
    court.collect(court.tree({"calc.py": PRICED.format("Money(0)"), **tests}))

    grades = [court.judge(court.tree({"calc.py": PRICED.format(it), **tests}), {}).grade for it in ("Money(3)", "3")]

    assert grades == ["D", "A"]


COUNTING = dedent("""\
    class Calls(dict):
        asked = 0

        def __contains__(self, name):
            self.asked += 1
            return dict.__contains__(self, name)


    def add(a, b):
        return Calls(a=a, b=b)
    """)
ASKED = dedent("""\
    from calc import add


    def test_names():
        calls = add(2, 3)
        assert [name for name in ("a", "c") if name in calls] == ["a"]
        assert calls.asked == 2


    def test_values():
        assert add(2, 3) == {"a": 2, "b": 3}
    """)


@pytest.mark.slow
def test_a_test_that_looks_at_what_its_comparisons_do_is_unproved_and_not_flaky(tmp_path: Path) -> None:
    done = judged(tmp_path, COUNTING, ASKED)

    assert done.verdict.green
    assert done.grades == {"test_calc.py::test_names": "D", "test_calc.py::test_values": "D"}


WRITING = """
import sys

from calc import write, double


def test_written(tmp_path):
    write(tmp_path / "out.txt", 2)
    assert (tmp_path / "out.txt").read_text() == "4"


def test_double():
    if sys.platform == "os2":
        assert double(1) == 3
    assert double(2) == 4
"""


@pytest.mark.slow
def test_a_file_in_the_folder_of_the_tests_and_a_branch_for_another_platform_are_the_same_in_both_ways(
    tmp_path: Path,
) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    right = "def write(path, n):\n    path.write_text(str(double(n)))\n\n\ndef double(n):\n    return 2 * n\n"
    wrong = right.replace("path.write_text(str(double(n)))", "return 2").replace("2 * n", "n")
    base = court.tree({"calc.py": wrong, "test_calc.py": WRITING})
    court.collect(base)

    done = court.judge(court.tree({"calc.py": right, "test_calc.py": WRITING}), control=base)

    assert done.verdict.green
    assert sorted(done.grades.values()) == ["A", "B"]
    assert (done.grade, done.reachable) == ("B", "B")
    assert done.weaker == {"test_calc.py::test_written": "the code changes files of the test"}


@pytest.mark.slow
def test_a_test_that_fails_in_two_processes_alone_says_so(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    test = "import types\n\nimport calc\n\n\ndef test_kind():\n    assert isinstance(calc.one, types.FunctionType)\n"
    tree = court.tree({"calc.py": "def one():\n    return 1\n", "test_calc.py": test})
    court.collect(tree)

    done = court.judge(tree)

    assert done.weaker == {"test_calc.py::test_kind": "it fails where the code is in another process"}


MATCHING = """
from calc import Point, move


def test_moved():
    found = move(Point(1, 2), 3)
    assert found == Point(4, 5)
    assert found.x == 4


def test_moved_back():
    found = move(Point(4, 5), -3)
    assert found == Point(1, 2)
    assert found.x == 1
"""


STUB = """
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: int

def move(point, by):
    raise NotImplementedError
"""
MOVE = ("raise NotImplementedError", "return Point(point.x + by, point.y + by)")
UNEQUAL = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
"""
EQUAL = ("= x, y\n", "= x, y\n\n    def __eq__(self, other):\n        return (self.x, self.y) == (other.x, other.y)\n")
EQUALITY = """
from calc import Point


def test_equality():
    assert Point(1, 2) == Point(1, 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("stub", "change", "tests"), [
    (STUB, MOVE, MATCHING), pytest.param(UNEQUAL, EQUAL, EQUALITY, marks=pytest.mark.proof),
], ids=["a stub", "an equality that must be made"])  # fmt: skip
def test_objects_that_any_right_code_would_be_asked_about_are_no_harder_to_judge(
    stub: str, change: tuple[str, str], tests: str, tmp_path: Path
) -> None:
    """A stub raises before the test compares anything, in two processes as in one."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    base = court.tree({"calc.py": stub, "test_calc.py": tests})
    court.collect(base)

    done = court.judge(court.tree({"calc.py": stub.replace(*change), "test_calc.py": tests}), control=base)

    assert done.verdict.green
    assert (done.grade, done.reachable) == ("D", "D"), "what compares its own objects has the last word on them"


STAYING = """
import os

from calc import double, work


def test_double():
    assert double(2) == 4


def test_place():
    before = os.getcwd()
    work()
    assert os.getcwd() == before
"""


@pytest.mark.slow
def test_what_passes_in_two_processes_on_the_untouched_tree_is_not_proved_by_them(tmp_path: Path) -> None:
    """The working directory of the tests' own process always stays where it is."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    wrong = "import os\n\n\ndef double(n):\n    return n\n\n\ndef work():\n    os.chdir('/')\n"
    base = court.tree({"calc.py": wrong, "test_calc.py": STAYING})
    court.collect(base)
    right = wrong.replace("return n", "return 2 * n").replace("os.chdir('/')", "pass")

    done = court.judge(court.tree({"calc.py": right, "test_calc.py": STAYING}), control=base)

    assert done.verdict.green
    assert {name.partition("::")[2]: grade for name, grade in done.grades.items()} == {
        "test_double": "A", "test_place": "D",
    }  # fmt: skip


ORDER = "def order(text):\n    return sorted(text.split())\n"
JUDGING = """
class Found:
    def __init__(self, items):
        self.items = items

    def __eq__(self, other):
        return self.items == other

def order(text):
    return Found(sorted(text.split()))
"""
WORDS = """
import sqlite3
import pytest
{}
from calc import order

def test_two(): assert order("b a") == ["a", "b"]
def test_three(): assert order("c a b") == ["a", "b", "c"]
"""
FOLDER = """
@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch): monkeypatch.chdir(tmp_path)
"""
LENT = """
from calc import count
def test_count():
    made = sqlite3.connect(":memory:")
    made.execute("create table t (n)")
    assert count(made) == 0
"""
COUNT = "def count(made):\n    {}\n\n"
ROWS = "return made.execute('select count(*) from t').fetchone()[0]"
TURN = "def turn(items):\n    {}\n\n"
TURNED = """
from calc import turn
def test_turn():
    items = [1, 2]
    turn(items)
    assert items == [2, 1]
"""
POINT = "class Point:\n    def __init__(self, x):\n        self.x = x\n\n"
UNLIKE = POINT + "    def __ne__(self, other):\n        return True\n\n" + JUDGING.partition("def order")[0] + ORDER
FAR = """
from calc import Point, far
def test_far():
    one, other = Point(1), Point(4)
    assert one != other
    assert far(one, other) == 3
"""
STUBS = (
    "import os; os._exit(1)", "raise KeyboardInterrupt", "raise StopIteration", "import os; os.kill(os.getpid(), 9)",
    "import unittest; raise unittest.SkipTest('later')", "import pytest; pytest.xfail('later')",
)  # fmt: skip
"""Ends of a stub that the tests see in another way where the code is in another process."""
TWICE = "from calc import double\ndef test_it(): assert double(2) == 4"
DOUBLE = "def double(n):\n    return {}\n\n"


@pytest.mark.slow
@pytest.mark.parametrize(("base", "change", "tests", "reachable"), [
    pytest.param("", JUDGING, "", "A", marks=pytest.mark.proof),
    pytest.param("def order(text):\n    return None\n", JUDGING, FOLDER, "A", marks=pytest.mark.proof),
    pytest.param(DOUBLE.format("n") + ORDER, DOUBLE.format("2 * n") + JUDGING, TWICE, "A", marks=pytest.mark.proof),
    (COUNT.format("raise NotImplementedError") + ORDER, COUNT.format(ROWS) + ORDER, LENT, "C"),
    pytest.param("", COUNT.format(ROWS) + ORDER, LENT, "C", marks=pytest.mark.proof),
    (TURN.format("raise NotImplementedError") + ORDER, TURN.format("items.reverse()") + ORDER, TURNED, "C"),
    pytest.param(POINT + "def far(one, other):\n    raise NotImplementedError\n\n" + ORDER,
     UNLIKE + "\ndef far(one, other):\n    return Found(other.x - one.x)\n", FAR, "A", marks=pytest.mark.proof),
], ids=["nothing to import", "in a folder", "it was green", "a connection", "no stub", "in place", "late"])  # fmt: skip
def test_a_change_that_is_harder_to_judge_than_it_could_be_is_seen(
    base: str, change: str, tests: str, reachable: str, tmp_path: Path
) -> None:
    done = judge_change(tmp_path, base, change, tests)

    assert done.verdict.green
    assert (done.grade, done.reachable) == ("D" if reachable == "A" else "C", reachable)


@pytest.mark.slow
@pytest.mark.parametrize("stub", sampled(STUBS, STUBS[0]))
def test_a_stub_that_comes_to_another_end_in_two_processes_leaves_no_test_free(stub: str, tmp_path: Path) -> None:
    done = judge_change(tmp_path, f"def order(text):\n    {stub}\n", JUDGING, "")

    assert (done.grade, done.reachable) == ("D", "A")


def judge_change(tmp_path: Path, base: str, change: str, tests: str) -> Verification:
    """Judge *change* of *base* by the tests of words, and *tests*."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    files = {"test_calc.py": WORDS.format(tests)}
    changed = court.tree({"calc.py": change, **files})
    court.collect(changed)
    court.verifier.base = court.tree({"calc.py": base, **files})
    return court.judge(changed, control=court.verifier.base)


@pytest.mark.slow
def test_a_verdict_is_worth_no_more_than_what_proves_the_held_out_tests(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    files = {"test_calc.py": WORDS.format("")}
    hidden = {"test_more.py": 'from calc import order\ndef test_more(): assert order("z y x") == ["x", "y", "z"]\n'}
    court.verifier.held_out = HeldOut(court.tree(hidden), ("test_more.py::test_more",))
    known = 'return {"b a": ["a", "b"], "c a b": ["a", "b", "c"]}.get(text) or Found'
    change = JUDGING.replace("return Found", known)
    base = court.tree({"calc.py": "def order(text):\n    return None\n", **files})
    court.collect(base)

    done = court.judge(court.tree({"calc.py": change, **files}), control=base)
    right = court.judge(court.tree({"calc.py": ORDER, **files}), control=base)

    assert (done.grade, done.reachable) == ("D", "A")
    assert (right.grade, right.reachable) == ("A+H", "A")
    assert not any("test_more" in told for told in done.warnings)


SAID = """
import pytest

from calc import Total


def test_what_an_assertion_says():
    with pytest.raises(AssertionError) as caught:
        assert [Total(1) == 2, 3] == [True, 4]
    assert "At index 0 diff" in str(caught.value)
"""


@pytest.mark.slow
def test_a_test_that_reads_the_words_of_an_assertion_is_confirmed_with_them(tmp_path: Path) -> None:
    """Words of assertions are not prepared in a confirmation, unless a test turns out to need them."""
    done = judged(tmp_path, "class Total(int):\n    pass\n", SAID)

    assert done.verdict.green
    assert "or on each other" in done.warnings[0]


READ = """
from calc import size


def test_size(tmp_path):
    (tmp_path / "a.txt").write_text("ann")
    assert size(str(tmp_path / "a.txt")) == 3
"""

BESIDE = """
from calc import size


def test_what_lies_beside_stays(tmp_path):
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("carl")
    other.write_text("x")
    assert size(str(file)) == 4
    assert other.exists()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "accepted"), [pytest.param("pass", True, marks=pytest.mark.proof), ("file.unlink()", False)]
)
def test_held_out_tests_see_in_one_process_what_the_code_does_beside(tmp_path: Path, line: str, accepted: bool) -> None:  # noqa: FBT001
    """In two processes the code does not have what the test did not hand out."""
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=20, confirm=3))
    court.verifier.sandbox, court.verifier.environ, court.verifier.sources = s3(), ENVIRON, "calc.py".__eq__
    court.verifier.held_out = HeldOut(
        court.tree({"test_more.py": BESIDE}), ("test_more.py::test_what_lies_beside_stays",)
    )
    base = court.tree({"calc.py": "def size(name):\n    return None\n", "test_calc.py": READ})
    court.collect(base)
    lines = (
        "from pathlib import Path", "def size(name):", "    found = len(Path(name).read_text())",
        "    for file in Path(name).parent.iterdir():", f"        {line}", "    return found",
    )  # fmt: skip

    done = court.judge(court.tree({"calc.py": "\n".join(lines) + "\n", "test_calc.py": READ}), control=base)

    assert done.verdict.green is accepted
    assert accepted or (done.verdict.void is not None and done.verdict.void.cause is Cause.HELD_OUT)
