"""A process has one alarm: the project's rings at its time beside the time limit of a test, and that one holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.core.state.settings import Suite
from support.judging.real_verifier import Court

ALARMS = """
import itertools
import signal
import unittest

import pytest

import app


class Late(Exception):
    pass


def be_late(*_):
    raise Late


@pytest.fixture
def quick():
    signal.signal(signal.SIGALRM, be_late)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture
def ticks():
    ticks = []
    signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    yield ticks
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture(scope="module")
def patient():
    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.7)
    yield rung
    signal.setitimer(signal.ITIMER_REAL, 0)


def test_nobody_handles():
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.pause()


def test_in_time(quick):
    assert app.double(2) == 4


def test_late(quick):
    signal.pause()


def test_within_one_phase():
    signal.signal(signal.SIGALRM, be_late)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(Late):
        signal.pause()


def test_ticks(ticks):
    while len(ticks) < 3:
        signal.pause()


def test_hangs_although_it_ticks(ticks):
    while True:
        signal.pause()


def test_first_of_two(patient):
    for _ in itertools.count():
        pass


def test_second_of_two(patient):
    while not patient:
        signal.pause()


class TestClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGALRM, be_late)
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    @classmethod
    def tearDownClass(cls):
        signal.setitimer(signal.ITIMER_REAL, 0)

    def test_late(self):
        signal.pause()

    def test_no_alarm_is_left(self):
        assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(1, abs=0.1)
"""
OUTCOMES = {
    "test_in_time": "passed", "test_late": "failed", "test_within_one_phase": "passed", "test_ticks": "passed",
    "test_hangs_although_it_ticks": "timeout", "test_first_of_two": "timeout", "test_second_of_two": "passed",
    "test_nobody_handles": "timeout", "TestClass::test_late": "failed", "TestClass::test_no_alarm_is_left": "passed",
}  # fmt: skip


@pytest.mark.slow
def test_an_alarm_of_the_project_rings_and_no_test_hangs(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(test_timeout_seconds=0.5))
    tree = court.tree({"app.py": "def double(n):\n    return 2 * n\n", "test_app.py": ALARMS})
    court.collect(tree)

    done = court.judge(tree, {})

    assert court.outcomes(done) == OUTCOMES
    excerpts = {r.id.partition("::")[2]: r.excerpt for r in done.verdict.results.values()}
    assert "Late" in excerpts["test_late"]
    assert "ran longer than 0.5 s" in excerpts["test_hangs_although_it_ticks"]


HANGING = """
import signal
import threading


def test_hangs():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.alarm(3600)
    threading.Event().wait()
"""


@pytest.mark.proof
def test_a_test_that_takes_the_alarm_away_ends_with_its_process(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=0.2))
    tree = court.tree({"test_app.py": HANGING})
    court.collect(tree)

    done = court.judge(tree, {})

    assert court.outcomes(done) == {"test_hangs": "error"}
