"""Runners keep their contract; pytest's knows every way in which a test can come out, and reads ids without running."""

from __future__ import annotations

import ast
import subprocess
import sys
import venv
from pathlib import Path

import anyio
import pytest

from jumar import plugins
from jumar.child import start
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Cause, Ended, Outcome
from jumar.ports import Runner
from jumar.runners.pytest import PytestRunner
from jumar.testing import check_runner
from support.judging.real_verifier import QUICK, Court
from support.processes.interpreters import PLAIN_PYTHON

RUNNER = PytestRunner()

PHASES = """
import signal
import sys
import unittest
import pytest


@pytest.fixture
def bad_setup():
    raise RuntimeError("set-up")


@pytest.fixture
def bad_teardown():
    yield
    raise RuntimeError("clean-up")


def test_passes(): print("some output")
def test_fails(): assert [1, 2] == [1, 3]
def test_raises(): raise ValueError("no")
def test_bad_setup(bad_setup): pass
def test_bad_teardown(bad_teardown): pass
def test_fails_and_cannot_clean_up(bad_teardown): assert False
@pytest.mark.skip(reason="not now")
def test_skip_mark(): pass
def test_skips(): pytest.skip("in the middle")
@pytest.mark.xfail
def test_xfails(): assert False
@pytest.mark.xfail
def test_xpasses(): pass
@pytest.mark.xfail(strict=True)
def test_strict_xpasses(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert n == 1


class TestCase(unittest.TestCase):
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)

    def test_passing_subtests(self):
        with self.subTest(): pass

    @unittest.expectedFailure
    def test_expected_failure(self): self.fail()

    @unittest.expectedFailure
    def test_unexpected_success(self): pass

    def test_skip(self): raise unittest.SkipTest("why")

    def test_hangs(self):
        while True: signal.pause()
"""

OUTCOMES = {
    "test_passes": "passed", "test_fails": "failed", "test_raises": "failed", "test_bad_setup": "error",
    "test_bad_teardown": "error", "test_fails_and_cannot_clean_up": "failed", "test_skip_mark": "skipped",
    "test_skips": "skipped", "test_xfails": "xfailed", "test_xpasses": "xpassed", "test_strict_xpasses": "failed",
    "test_many[1]": "passed", "test_many[2]": "failed", "TestCase::test_subtests": "failed",
    "TestCase::test_passing_subtests": "passed", "TestCase::test_expected_failure": "xfailed",
    "TestCase::test_unexpected_success": "failed", "TestCase::test_skip": "skipped", "TestCase::test_hangs": "timeout",
}  # fmt: skip


@pytest.mark.slow
def test_pytest_keeps_the_contract_of_runners(tmp_path: Path) -> None:
    runner = plugins.load("runners", "pytest")
    assert isinstance(runner, PytestRunner)

    anyio.run(check_runner, runner, tmp_path, Suite(python=PLAIN_PYTHON))


@pytest.mark.slow
def test_each_way_a_test_comes_out_has_its_name(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(test_timeout_seconds=0.5))
    tree = court.tree({"test_all.py": PHASES})
    found = court.collect(tree)
    assert {i.partition("::")[2] for i in found} == set(OUTCOMES)

    done = court.judge(tree, {})

    assert court.outcomes(done) == OUTCOMES
    assert done.verdict.passed == list(OUTCOMES.values()).count("passed")
    excerpts = {r.id.partition("::")[2]: r.excerpt for r in done.verdict.results.values()}
    assert "assert [1, 2] == [1, 3]" in excerpts["test_fails"]
    assert "ran longer than 0.5 s" in excerpts["TestCase::test_hangs"]
    assert "some output" not in excerpts["test_passes"]


ENDLESS = """
import itertools

def spin():
    for n in itertools.repeat(1):
        if n:
            if n == 2:
                n = 3
"""
"""The jump at the end of that loop has no line, and an alarm interrupts the loop at no other place."""


@pytest.mark.slow
def test_an_endless_loop_costs_no_test_of_another_file_wherever_the_alarm_interrupts_it(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(test_timeout_seconds=0.5))
    files = {
        "loops.py": "def spin():\n    pass\n",
        "test_a.py": "import loops\n\ndef test_a():\n    try:\n        loops.spin()\n    finally:\n        int('x')\n",
        "test_b.py": "import loops\n\nloops.spin()\n\ndef test_b():\n    pass\n",
        "test_c.py": "def test_c():\n    pass\n",
    }
    court.collect(court.tree(files))

    done = court.judge(court.tree({**files, "loops.py": ENDLESS}), {})

    assert court.outcomes(done) == {"test_a": "timeout", "test_b": "import_error", "test_c": "passed"}


@pytest.mark.proof
def test_a_test_that_no_alarm_ends_is_given_up_though_another_one_failed_just_before_it(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60, test_timeout_seconds=0.2, python=PLAIN_PYTHON))
    deaf = "while True:\n        try: time.sleep(60)\n        except BaseException: pass"
    tree = court.tree({"test_it.py": f"import time\ndef test_fails(): assert False\ndef test_deaf():\n    {deaf}\n"})
    court.collect(tree)

    done = court.judge(tree, {})

    assert done.ended is not Ended.TIMEOUT
    assert done.verdict.results["test_it.py::test_fails"].outcome is Outcome.FAILED


@pytest.mark.slow
def test_what_the_project_brings_along_is_honoured_but_not_what_steers_the_verdict(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(env={"PYTHONPATH": "lib"}))
    tree = court.tree({
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-x --lf -q --tb=no'\npython_files = 'check_*.py'\n",
        "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef number():\n    return 3\n",
        "random.py": "raise ImportError('the room shadows the standard library')\n",
        "iniconfig.py": "OURS = True\n",
        "src/here.py": "NUMBER = 3\n",
        "lib/there.py": "NUMBER = 3\n",
        "sub/sibling.py": "NUMBER = 3\n",
        "sub/check_it.py": "import random, here, there, sibling, iniconfig\n\n\ndef test_fails(): assert False\n\n\n"
        "def test_passes(number):\n    assert number == here.NUMBER == there.NUMBER == sibling.NUMBER\n",
    })  # fmt: skip

    assert court.collect(tree) == ("sub/check_it.py::test_fails", "sub/check_it.py::test_passes")
    assert list(court.outcomes(court.judge(tree)).values()) == ["failed", "passed"]


@pytest.mark.slow
def test_variables_of_the_task_steer_the_interpreter(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(env={"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1", "PYTHONOPTIMIZE": "1"}))
    tree = court.tree({
        "test_it.py": "import sys, warnings\n\n\ndef test_warns():\n    warnings.warn('old', DeprecationWarning)\n\n\n"
        "def test_flags():\n    assert sys.flags.dev_mode and sys.flags.optimize == 1 and sys.flags.isolated\n",
    })  # fmt: skip
    court.collect(tree)

    assert court.outcomes(court.judge(tree)) == {"test_warns": "failed", "test_flags": "passed"}


@pytest.mark.slow
def test_a_plug_in_that_repeats_red_tests_has_the_last_attempt_reported(tmp_path: Path) -> None:
    court = Court(tmp_path)
    repeating = """
from _pytest.runner import runtestprotocol


def pytest_runtest_protocol(item, nextitem):
    for last in (False, True):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            report.outcome = "rerun" if report.failed and not last else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""
    source = "tries = []\n\n\ndef test_it():\n    tries.append(1)\n    assert len(tries) == 2\n"
    tree = court.tree({"conftest.py": repeating, "test_it.py": source + "\n\ndef test_never():\n    assert False\n"})
    court.collect(tree)

    done = court.judge(tree)

    assert done.verdict.void is None
    assert court.outcomes(done) == {"test_it": "passed", "test_never": "failed"}


@pytest.mark.slow
def test_a_configuration_above_the_room_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('above')\n")
    court = Court(tmp_path)
    tree = court.tree({"test_it.py": "def test_it(): pass\n"})

    court.collect(tree)

    assert court.judge(tree).verdict.green


@pytest.mark.slow
@pytest.mark.parametrize("started", [False, True])
def test_a_dollar_in_the_name_of_a_folder_is_no_variable(tmp_path: Path, started: bool) -> None:  # noqa: FBT001
    court = Court(tmp_path / "a $HOME of ${USER}", started=started)
    tree = court.tree({"test_it.py": "def test_it(): pass\n"})

    assert court.collect(tree) == ("test_it.py::test_it",)
    assert court.judge(tree).verdict.green


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "python", "sentence"),
    [
        (
            {"pytest.ini": "[pytest]\naddopts = --no-such-option\n"},
            "",
            "does not know --no-such-option, so the plug-in",
        ),
        ({}, "/no/such/python", "cannot start /no/such/python: No such file or directory"),
        ({}, "BARE", "has no pytest; install it there or pass --python"),
    ],
)
def test_what_keeps_pytest_from_starting_is_told_in_one_sentence(
    tmp_path: Path, files: dict[str, str], python: str, sentence: str
) -> None:
    if python == "BARE":
        venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
        python = str(tmp_path / "bare" / "bin" / "python")
    court = Court(tmp_path, Suite(python=python))
    tree = court.tree({"test_it.py": "def test_it(): pass\n", **files})

    found = anyio.run(court.verifier.collect, tree)
    court.verifier.expected = ("test_it.py::test_it",)
    done = court.judge(tree)

    assert sentence in found.anomaly
    assert done.ended is Ended.UNSTARTED
    assert done.verdict.void is not None
    assert done.verdict.void.cause is Cause.HARNESS
    assert sentence in done.verdict.void.reason


@pytest.mark.slow
def test_a_conftest_that_needs_missing_code_breaks_its_files_and_keeps_their_ids(tmp_path: Path) -> None:
    court = Court(tmp_path)
    tree = court.tree({
        "conftest.py": "import not_written_yet\n",
        "test_it.py": "def test_it(): pass\n",
        "tests/test_that.py": "def test_that(): pass\n",
    })  # fmt: skip

    assert court.collect(tree) == ("test_it.py::test_it", "tests/test_that.py::test_that")
    done = court.judge(tree)

    assert set(court.outcomes(done).values()) == {"import_error"}
    assert "not_written_yet" in done.verdict.results["test_it.py::test_it"].excerpt


@pytest.mark.slow
def test_an_excerpt_is_the_same_in_every_room(tmp_path: Path) -> None:
    court = Court(tmp_path)
    source = "def test_it(tmp_path):\n    assert (__file__, object()) == str(tmp_path)\n\n\n"
    source += "def test_long(): assert not 'x' * 20000\n"
    tree = court.tree({"test_it.py": source})
    court.collect(tree)

    first, second = ([r.excerpt for r in court.judge(tree).verdict.results.values()] for _ in range(2))

    assert first == second
    assert max(map(len, first)) < 4100


def _ids(path: str, source: bytes) -> tuple[str, ...]:
    return tuple(site.id for site in RUNNER.sites(path, source))


def test_static_ids_are_those_of_functions_classes_cases_and_what_they_inherit() -> None:
    source = b"""
import unittest
import pytest

def test_one(): pass
async def test_two(): pass
def helper(): pass
@pytest.fixture
def test_data(): pass
if True:
    def test_conditional(): pass

class TestGroup:
    def test_in_group(self): pass
    def other(self): pass
    class TestNested:
        def test_deep(self): pass

class TestWithInit:
    def __init__(self): pass
    def test_never_collected(self): pass

class Common(unittest.TestCase):
    def test_shared(self): pass

class Special(Common):
    def test_own(self): pass

class NotATest:
    def test_no(self): pass
"""

    assert _ids("t.py", source) == tuple(
        f"t.py::{name}"
        for name in (
            "test_one", "test_two", "test_conditional", "TestGroup::test_in_group", "TestGroup::TestNested::test_deep",
            "Common::test_shared", "Special::test_own", "Special::test_shared",
        )
    )  # fmt: skip
    assert _ids("t.py", b"def test_one(:") == ()
    assert _ids("t.py", b"\xff\xfe") == ()


def test_test_files_are_known_by_name_or_by_being_selected() -> None:
    paths = ("app.py", "test_app.py", "tests/test_a.py", "tests/deep/b_test.py", "tests/data.py", "checks/check.py")

    assert RUNNER.test_files(paths, ()) == ("test_app.py", "tests/test_a.py", "tests/deep/b_test.py")
    assert RUNNER.test_files(paths, ("tests",)) == ("tests/test_a.py", "tests/deep/b_test.py")
    assert RUNNER.test_files(paths, ("./tests/",)) == ("tests/test_a.py", "tests/deep/b_test.py")
    assert RUNNER.test_files(paths, (".",)) == RUNNER.test_files(paths, ())
    assert RUNNER.test_files(paths, ("checks/check.py::test_x",)) == ("checks/check.py",)


def test_what_was_collected_and_not_reported_is_a_result_that_tells_why() -> None:
    records: list[list[object]] = [
        ["hello", {}], ["collected", ["t.py::a", "t.py::b[1]", "t.py::b[2]"]], ["start", "t.py::a"],
        ["result", "t.py::a", "passed", 1, "", "", ""], ["start", "t.py::b[1]"],
    ]  # fmt: skip

    lost = RUNNER.report(records, Ended.TIMEOUT, "killed after 3 s")
    short = RUNNER.report(records, Ended.NORMAL, "")

    assert [r.outcome for r in lost.results] == [Outcome.PASSED, Outcome.TIMEOUT, Outcome.ERROR]
    assert [r.outcome for r in short.results] == [Outcome.PASSED, Outcome.MISSING, Outcome.MISSING]
    assert "t.py::a was reported twice" in RUNNER.report([*records, records[3]], Ended.NORMAL, "").anomalies


def test_an_outcome_that_there_is_none_of_is_an_anomaly_and_no_pass() -> None:
    """The process of a plain run is that of the code under test, which may write a record."""
    records: list[list[object]] = [
        ["hello", {}],
        ["collected", ["t.py::a"]],
        ["start", "t.py::a"],
        ["result", "t.py::a", "?", 1, "", "", ""],
    ]

    report = RUNNER.report(records, Ended.NORMAL, "")

    assert [r.outcome for r in report.results] == [Outcome.ERROR]
    assert "t.py::a was reported with an outcome that there is none of" in report.anomalies


def test_the_protocol_is_kept_by_type() -> None:
    runner: Runner = RUNNER

    assert runner.collection(QUICK, Path("/room")).argv[1:] == runner.verification(QUICK, Path("/room"), ()).argv[1:]


PROGRAMS = ("channel", "pytest/pytest_main", "pytest/reporter", "pytest/blame", "pytest/line_tracer")


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_runs_in_a_projects_interpreter_parses_there(name: str) -> None:
    source = (Path(start.FOLDER) / f"{name}.py").read_text("utf-8")

    ast.parse(source, feature_version=(3, 8))


@pytest.mark.slow
def test_a_project_that_makes_warnings_errors_is_judged_beside_any_plug_in(tmp_path: Path) -> None:
    court = Court(tmp_path, QUICK)
    files = {"pytest.ini": "[pytest]\nfilterwarnings = error\n", "test_a.py": "def test_one(): assert True\n"}
    tree = court.tree(files)
    assert court.collect(tree) == ("test_a.py::test_one",)
    assert court.judge(tree, {}).verdict.green


COUNTED = """
import ast, sys
import pytest
from jumar.child.pytest import tracebacks

parsed, parse = [], ast.parse
ast.parse = lambda text, *args, **keywords: parsed.append("def test_0()" in str(text)) or parse(text, *args, **keywords)
tracebacks.keep_trees()
pytest.main([sys.argv[1], "-q", "--tb=short", "-p", "no:cacheprovider"])
print("parsed", sum(parsed))
"""


@pytest.mark.slow
def test_a_file_is_parsed_once_for_all_its_failures_and_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "test_red.py"
    changed = f"def test_changed(): open({str(file)!r}, 'a').write('# changed\\n'); assert 1 == 2\n"
    file.write_text("".join(f"def test_{n}(): assert {n} == 9\n" for n in range(6)) + changed, "utf-8")

    said = subprocess.run([sys.executable, "-c", COUNTED, file], capture_output=True, text=True, check=True).stdout

    assert "7 failed" in said
    assert "parsed 3" in said  # to rewrite its assertions, for six failures, and for the last one
