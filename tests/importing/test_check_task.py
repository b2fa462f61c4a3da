"""A task that nobody can work on is found before an agent is paid to try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.cli.main import call
from jumar.core.state.verdict import Blame, Cause, Outcome, TestResult, Verdict, Void
from jumar.importing.check_task import TaskOutcomes, judge_outcomes
from jumar.runs.setup.assembly import load_runner
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.node import PACKAGES
from support.worlds.real_task_scripts import laid_out

IDS = ("t::a", "t::b")


def verdict(*green: str) -> Verdict:
    results = {i: TestResult(i, Outcome.PASSED if i in green else Outcome.FAILED) for i in IDS}
    return Verdict(results, frozenset(green))


VOID = Verdict({}, void=Void(Cause.HARNESS, "no disk"))
RED, HALF, GREEN = verdict(), verdict("t::a"), verdict(*IDS)


@pytest.mark.parametrize(
    ("rounds", "emptied", "solved", "problems"),
    [
        ((RED, RED), RED, GREEN, []),
        ((HALF, HALF), HALF, GREEN, []),
        ((RED, RED), VOID, None, []),
        ((HALF, RED), RED, GREEN, ["flaky on the untouched tree: t::a"]),
        ((GREEN, GREEN), RED, GREEN, ["nothing is red before any work"]),
        ((GREEN, GREEN), GREEN, GREEN, ["nothing is red", "every test passes although the code is gone"]),
        ((RED, RED), RED, HALF, ["1 tests fail with the reference: t::b"]),
        ((RED, VOID), RED, VOID, ["the untouched tree cannot be judged: no disk", "with the reference it cannot be"]),
    ],
)
def test_each_fault_has_its_sentence(
    rounds: tuple[Verdict, ...], emptied: Verdict, solved: Verdict | None, problems: list[str]
) -> None:
    found = judge_outcomes("t", TaskOutcomes(IDS, rounds, emptied, solved, "A"))

    assert found.valid is (not problems)
    assert len(found.problems) == len(problems)
    assert all(part in said for part, said in zip(problems, found.problems, strict=True))


def test_what_is_weak_is_a_warning() -> None:
    found = judge_outcomes("t", TaskOutcomes(IDS, (HALF, HALF), HALF, None, ""))

    assert (found.valid, found.vacuous, found.reference) == (True, ("t::a",), "none")
    assert [w.partition(":")[0] for w in found.warnings] == ["1 test passes although the code is gone", "no reference"]


BROKEN = TestResult("t::a", Outcome.IMPORT_ERROR, 0, "E   ValueError: no", Blame.TEST)
ABSENT = TestResult("t::b", Outcome.IMPORT_ERROR, 0, "", Blame.ABSENT, "nope_pkg")
WRONG = TestResult("t::b", Outcome.FAILED, 0, "E   assert 1 == 2", Blame.CODE)


@pytest.mark.parametrize(
    ("results", "targets", "warned"),
    [
        ((BROKEN, ABSENT), ("app.py",), True),
        ((BROKEN, ABSENT), ("app.py", "nope_pkg.py"), False),
        ((BROKEN, WRONG), ("app.py",), False),
        ((BROKEN,), (), True),
    ],
)
def test_a_task_of_which_no_red_test_is_the_fault_of_the_code_is_warned_of(
    results: tuple[TestResult, ...], targets: tuple[str, ...], *, warned: bool
) -> None:
    red = Verdict({result.id: result for result in results})
    found = TaskOutcomes(tuple(red.results), (red, red), RED, None, "", targets=targets)

    said = [line for line in judge_outcomes("t", found).warnings if line.startswith("no red test fails by the code")]

    assert bool(said) is warned
    assert not warned or "so no edit can answer one: t::a is broken itself" in said[0]
    assert judge_outcomes("t", found._replace(solved=GREEN, grade="A")).warnings == ()


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("packages/nope/src/nope_pkg/__init__.py", "packages/nope/src"),
        ("src/nope_pkg.py", "src"),
        ("nope_pkg.py", ""),
        ("nope_pkg/__init__.py", ""),
    ],
)
def test_a_package_that_is_there_and_not_on_the_path_is_named(target: str, folder: str) -> None:
    red = Verdict({ABSENT.id: ABSENT})
    found = TaskOutcomes((ABSENT.id,), (red, red), RED, None, "", targets=(target,))

    said = [line for line in judge_outcomes("t", found).warnings if "PYTHONPATH" in line]
    assert bool(said) is bool(folder)
    assert all(f"though {target} has it: put {folder} on PYTHONPATH, in [task] env" in line for line in said)


@pytest.mark.parametrize(("second", "warned"), [(WRONG, True), (ABSENT, False)])
def test_a_red_test_that_is_broken_itself_is_named_beside_one_that_is_the_fault_of_the_code(
    second: TestResult, *, warned: bool
) -> None:
    red = Verdict({result.id: result for result in (BROKEN, second)})
    found = TaskOutcomes(tuple(red.results), (red, red), RED, None, "", targets=("app.py",))

    said = [line for line in judge_outcomes("t", found).warnings if line.startswith("no edit can answer every red")]
    assert said == ["no edit can answer every red test: t::a is broken itself (ValueError: no)"] * warned


def test_a_reference_that_would_be_unproved_is_a_warning() -> None:
    (said,) = judge_outcomes("t", TaskOutcomes(IDS, (RED, RED), RED, GREEN, "D", "A")).warnings

    assert said.startswith("the reference is green at grade D, and --min-grade reachable (default unattended, ")
    assert judge_outcomes("t", TaskOutcomes(IDS, (RED, RED), RED, GREEN, "D", "D")).warnings == ()


@pytest.mark.parametrize(
    ("grade", "held_out", "warned"), [("D", True, True), ("C+H", True, False), ("D", False, False)]
)
def test_held_out_tests_that_nothing_proves_are_a_warning(grade: str, *, held_out: bool, warned: bool) -> None:
    said = judge_outcomes("t", TaskOutcomes(IDS, (RED, RED), RED, GREEN, grade, grade, held_out)).warnings

    assert ["no +H" in warning for warning in said] == [True] * warned


PLANTED = {
    "good": ("def test_f():\n    assert f() == 1\n", "1"),
    "vacuous": ("def test_f():\n    assert True\n", "1"),
    "badly_solved": ("def test_f():\n    assert f() == 1\n", "2"),
    "moody": (
        """\
import pathlib


def test_f():
    assert f() == 1


def test_g():
    seen = pathlib.Path({seen!r})
    seen.write_text(seen.read_text() + 'x' if seen.exists() else '')
    assert len(seen.read_text()) % 2
""",
        "1",
    ),
}


@pytest.mark.slow
def test_a_test_file_that_does_not_load_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text("")
    (tmp_path / "test_app.py").write_text("def test_a(: pass\n")

    assert call(["check", str(tmp_path), "--sandbox", "S0", "--python", PLAIN_PYTHON]) == 1
    assert "no test can be found: test_app.py does not load: SyntaxError: invalid syntax" in capsys.readouterr().out


UNSOLVABLE = {
    "an expected test that the file has not": (
        '[tests]\nexpected = ["test_app.py::test_ff"]',
        "and test_app.py has no such test, which nothing may change; the nearest is test_app.py::test_f",
    ),
    "a file outside the folder": ('[files]\neditable = ["../x.py"]', "files.editable has '../x.py', which leaves"),
    "no file that may be edited": ('[files]\neditable = ["lib/*.py"]', "may be edited: [files] editable names none"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSOLVABLE)
def test_a_task_that_nobody_can_solve_is_not_valid_and_no_run_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    table, said = UNSOLVABLE[name]
    (tmp_path / "app.py").write_text("def f():\n    return 0\n")
    (tmp_path / "test_app.py").write_text("from app import f\n\n\ndef test_f():\n    assert f() == 1\n")
    (tmp_path / "task.toml").write_text(f"{table}\n")
    options = ("--sandbox", "S0", "--python", PLAIN_PYTHON)

    assert call(["check", str(tmp_path), *options]) == 1
    assert said in capsys.readouterr().out
    assert call(["run", str(tmp_path), "--model", "repair", "--runs", str(tmp_path / "runs"), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ("class TestF:\n    def test_f(self):\n        assert f() == 1\n", "TestF::test_f"),
        ("import pytest\n\n@pytest.mark.parametrize('n', [f()])\ndef test_f(n):\n    assert n == 1\n", "test_f[1]"),
        ("def make(n):\n    def check(): assert f() == 1\n    globals()[f'test_{n}'] = check\n\nmake(f())\n", "test_1"),
        ("from app import absent\n\ndef test_f():\n    assert f() == 1\n", "test_more"),
    ],
    ids=["a method", "a case of the code's", "a test of the code's", "a file that does not load"],
)
def test_a_test_that_a_change_may_bring_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tests: str, expected: str
) -> None:
    (tmp_path / "app.py").write_text("def f():\n    return 0\n")
    (tmp_path / "test_app.py").write_text(f"from app import f\n{tests}")
    (tmp_path / "task.toml").write_text(f"[tests]\nexpected = ['test_app.py::{expected}']\n")

    call(["check", str(tmp_path), "--sandbox", "S0", "--python", PLAIN_PYTHON])

    assert "has no such test" not in capsys.readouterr().out


@pytest.mark.slow
def test_planted_faults_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (tests, answer) in PLANTED.items():
        for folder, value in (("tasks", "0"), ("solutions", answer)):
            (tmp_path / folder / name).mkdir(parents=True)
            (tmp_path / folder / name / "app.py").write_text(f"def f():\n    return {value}\n")
        source = "from app import f\n\n\n" + tests.replace("{seen!r}", repr(str(tmp_path / "seen")))
        (tmp_path / "tasks" / name / "test_app.py").write_text(source)
    words = ["check", str(tmp_path / "tasks" / "*"), "--references", str(tmp_path / "solutions")]

    code = call([*words, "--sandbox", "S0", "--confirm", "0", "--python", PLAIN_PYTHON, "--json"])

    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    found = {each["task"]: each for each in told["tasks"]}
    assert (code, told["valid"], told["invalid"]) == (1, 1, 3)
    assert found["good"]["valid"]
    assert (found["good"]["reference"], found["good"]["red"]) == ("green", ["test_app.py::test_f"])
    assert found["vacuous"]["vacuous"] == ["test_app.py::test_f"]
    assert found["badly_solved"]["reference"] == "red"
    assert found["moody"]["flaky"] == ["test_app.py::test_g"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("n + 1", "2", "f(1) == 2", "f(2) == 3"), marks=pytest.mark.proof),
        ("n > 1", "False", "f(1) is False", "f(2) is True"),  # falsified, it wants the wrong answer
    ],
)
def test_a_reference_must_pass_the_hidden_tests_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str, str, str]
) -> None:
    right, narrow, shown, held_out = words
    for name, answer in (("good", right), ("narrow", narrow)):
        task = tmp_path / name
        for folder, value in (("", "None"), ("solution", answer)):
            (task / folder).mkdir(parents=True, exist_ok=True)
            (task / folder / "app.py").write_text(f"def f(n):\n    return {value}\n")
        (task / "hidden").mkdir()
        (task / "test_app.py").write_text(f"from app import f\n\n\ndef test_f():\n    assert {shown}\n")
        hidden = f"from app import f\n\n\ndef test_more():\n    assert {held_out}\n"
        (task / "hidden" / "test_hidden.py").write_text(hidden)
        (task / "task.toml").write_text('[task]\nreference = "solution"\n[tests]\nhidden = "hidden"\n')

    assert (
        call(["check", f"{tmp_path}/*", "--sandbox", "S0", "--confirm", "1", "--python", PLAIN_PYTHON, "--json"]) == 1
    )

    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    found = {each["task"]: each for each in told["tasks"]}
    assert (found["good"]["problems"], found["good"]["grade"][-2:]) == ([], "+H")
    assert "held-out tests of the same behaviour some did not" in found["narrow"]["problems"][0]


@pytest.mark.proof
@pytest.mark.parametrize("language", ["python", "javascript", "go", "rust"])
def test_real_tasks_are_valid(data: Path, tmp_path: Path, language: str, figure: Any) -> None:
    """But for one that has no red test, which is all that is wrong with it."""
    runner = load_runner({"javascript": "vitest", "go": "go", "rust": "cargo"}.get(language, "pytest"))
    environ = {**os.environ, "JUMAR_NODE_MODULES": str(PACKAGES)}
    if missing := runner.surroundings(tmp_path, environ).missing:
        pytest.skip(missing)
    every = [t for t in json.loads((data / "index.json").read_text("utf-8"))["tasks"] if t["language"] == language]
    for task in every:
        laid_out(data, task, tmp_path)

    words = ["check", f"{tmp_path}/*", "--references", str(data / "solutions"), "--sandbox", "S0", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "jumar.cli.main", *words], check=False, env=environ, stdout=subprocess.PIPE, text=True
    )

    told = json.loads(done.stdout.splitlines()[-1])
    wrong = {each["task"]: each["problems"] for each in told["tasks"] if not each["valid"]}
    nothing_red = ["nothing is red before any work: an agent that does nothing solves it"]
    assert wrong == {task["id"]: nothing_red for task in every if not task["F2P"]}
    figure(f"valid_{language}", f"{told['valid']} of {len(every)} real tasks are valid, {len(wrong)} have no red test")
