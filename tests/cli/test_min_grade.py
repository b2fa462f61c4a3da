"""`--min-grade`: a green on weaker evidence is unproved, at `jumar score` and at `jumar run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.cli.main import call
from support.processes.interpreters import PLAIN_PYTHON

FIXED = "def double(n):\n    return 2 * n\n"
TEST = "from app import double\n\n\ndef test_two():\n    assert double(2) == 4\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task with one red test."""
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "app.py").write_text("def double(n):\n    return n\n")
    (folder / "test_app.py").write_text(TEST)
    return folder


def told(capsys: pytest.CaptureFixture[str], *words: object, sandbox: str = "S0") -> tuple[int, dict[str, Any], str]:
    capsys.readouterr()
    code = call([*map(str, words), "--json", "--sandbox", sandbox, "--python", PLAIN_PYTHON])
    said = capsys.readouterr()
    return code, json.loads(said.out.splitlines()[-1]), said.out + said.err


@pytest.mark.slow
@pytest.mark.parametrize(("wanted", "code"), [("D", 0), ("C", 1), ("reachable", 0)])
def test_a_score_below_it_is_unproved(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wanted: str, code: int
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "app.py").write_text(FIXED)
    (tree / "test_app.py").write_text(TEST)

    got, result, said = told(capsys, "score", task, tree, "--confirm", "0", "--min-grade", wanted)

    assert (got, result["ok"], result["passed"], result["grade"]) == (code, code == 0, 1, "D")
    assert ("--min-grade asks for C" in result["unproved"]) == (code == 1)
    assert result["below"] == ({"test_app.py::test_two": "D"} if code else {})
    assert "unproved" in said.splitlines()[0] or "green" in said.splitlines()[0], said


@pytest.mark.slow
def test_a_run_below_it_ends_unproved_and_ships_its_tree(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"content": f"```python\n{FIXED}```"}) + "\n")
    (task / "jumar.toml").write_text('[run]\nmin_grade = "A"\n')

    code, result, said = told(
        capsys, "run", task, "--agent", "pipeline", "--model", f"script:{script}", "--runs", tmp_path / "runs"
    )

    assert (code, result["stop"], result["passed"]) == (1, "unproved", 1)
    assert "--min-grade asks for A" in said
    assert result["below"] == {"test_app.py::test_two": result["grade"]}


@pytest.mark.slow
def test_a_run_below_it_says_why(task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"content": "```python\ndef apply(function, n):\n    return function(n)\n```"}) + "\n")
    (task / "app.py").write_text("def apply(function, n):\n    return n\n")
    (task / "test_app.py").write_text(
        "from app import apply\n\n\ndef test_apply():\n    assert apply(lambda n: n + 1, 2) == 3\n"
    )
    order = ("run", task, "--agent", "pipeline", "--model", f"script:{script}", "--runs", tmp_path / "runs")

    _, result, _ = told(capsys, *order, "--confirm", "3", "--min-grade", "A", sandbox="S3")

    assert (result["stop"], result["grade"]) == ("unproved", "B")
    assert result["weaker"] == {"test_app.py::test_apply": "the test hands the code a function"}


@pytest.mark.slow
def test_the_tests_below_it_are_named(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (task / "app.py").write_text(FIXED)

    assert call(["score", str(task), str(task), "--confirm", "0", "--min-grade", "A", "--python", PLAIN_PYTHON]) == 1

    assert "below    test_app.py::test_two: grade D\n" in capsys.readouterr().out


NUMBER = """
class Number:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other

    def __hash__(self):
        return hash(self.value)


def double(n):
    return Number(2 * n)
"""


ALONE = "import sys\n\ndef double(n):\n    return 2 * n if 'pytest' in sys.modules else 0\n"
"""Right in one process with the tests, which is told only after two have refused it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("app", "held_out", "wanted"),
    [
        (NUMBER, True, ""),
        pytest.param(NUMBER, True, "X", marks=pytest.mark.proof),
        (NUMBER, False, ""),
        (ALONE, True, ""),
    ],
    ids=["equality", "less is asked for", "nothing is held out", "one process"],
)
def test_with_held_out_tests_a_change_that_makes_a_test_harder_to_judge_is_unproved(
    task: Path, capsys: pytest.CaptureFixture[str], wanted: str, app: str, *, held_out: bool
) -> None:
    if held_out:
        (task / "hidden").mkdir()
        (task / "hidden" / "test_more.py").write_text(TEST.replace("2", "3").replace("4", "6"))
        (task / "task.toml").write_text('[tests]\nhidden = "hidden"\n')
    tree = task.parent / "tree"
    tree.mkdir()
    (tree / "app.py").write_text(app)
    (tree / "test_app.py").write_text(TEST)

    words = ("--confirm", "3", *(("--min-grade", wanted) if wanted else ()))
    code, result, _ = told(capsys, "score", task, tree, *words, sandbox="S3")

    unproved = held_out and not wanted
    assert (code, result["grade"], result["failed"]) == (int(unproved), "D", 0)
    assert result["below"] == ({"test_app.py::test_two": "D"} if unproved else {})
    assert ("unattended, or with held-out tests) asks for A" in result["unproved"]) == unproved


CLASS = """
class Slug:
    def __init__(self, text):
        {}

    def __eq__(self, other):
        return {}
"""
SLUG = "self.text = '-'.join(text.lower().split())"


@pytest.mark.slow
@pytest.mark.parametrize("equality", ["type(other) is not complex", "self.text == other"], ids=["to much", "as it is"])
def test_an_object_that_is_equal_to_something_wrong_is_no_answer(
    task: Path, capsys: pytest.CaptureFixture[str], equality: str
) -> None:
    """Two processes prove no equality of the code's own, and one process hears what it affirms."""
    test = "from app import Slug\n\n\ndef test_slug():\n    assert Slug('{}') == '{}'\n"
    (task / "hidden").mkdir()
    (task / "hidden" / "test_more.py").write_text(test.format("A B", "a-b"))
    (task / "task.toml").write_text('[tests]\nhidden = "hidden"\n')
    tree = task.parent / "tree"
    tree.mkdir()
    for folder, made, equal in ((task, "raise NotImplementedError", "False"), (tree, SLUG, equality)):
        (folder / "app.py").write_text(CLASS.format(made, equal))
        (folder / "test_app.py").write_text(test.format("New Ideas", "new-ideas"))

    code, result, _ = told(capsys, "score", task, tree, "--confirm", "3", sandbox="S3")

    refused = "complex" in equality
    assert (code, result["grade"], result["failed"]) == (int(refused), "D", 0)
    assert bool(result["below"]) is refused


@pytest.mark.proof
def test_a_run_with_held_out_tests_names_the_tests_that_it_made_harder_to_judge(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (task / "hidden").mkdir()
    (task / "hidden" / "test_more.py").write_text(TEST.replace("2", "3").replace("4", "6"))
    (task / "task.toml").write_text('[tests]\nhidden = "hidden"\n')
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"content": f"```python{NUMBER}```"}) + "\n")
    order = ("run", task, "--agent", "pipeline", "--model", f"script:{script}", "--runs", tmp_path / "runs")

    code, result, said = told(capsys, *order, "--confirm", "3", sandbox="S3")

    assert (code, result["stop"], result["grade"]) == (1, "unproved", "D")
    assert result["below"] == {"test_app.py::test_two": "D"}
    assert "all tests passed at grade D, and --min-grade reachable (default " in said


@pytest.mark.slow
def test_a_test_that_hands_out_a_function_is_below_a_and_it_is_said_why(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (task / "app.py").write_text(FIXED + "def apply(function, n):\n    return function(n)\n")
    (task / "test_app.py").write_text(
        TEST.replace("double", "apply, double", 1) + "def test_apply():\n    assert apply(lambda n: n + 1, 2) == 3\n"
    )

    assert (
        call(
            [
                "score",
                str(task),
                str(task),
                "--min-grade",
                "A",
                "--sandbox",
                "S3",
                "--python",
                PLAIN_PYTHON,
                "--confirm",
                "3",
            ]
        )
        == 1
    )

    said = capsys.readouterr().out
    assert "below    test_app.py::test_apply: grade B: the test hands the code a function\n" in said
    assert "1 at A, 1 at B" in said


def test_an_unknown_grade_is_refused_with_the_known_ones(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["score", str(task), str(task), "--min-grade", "E"]) == 2
    assert "unknown value 'E' of --min-grade" in capsys.readouterr().err


@pytest.mark.slow
def test_a_task_whose_reference_is_harder_to_judge_is_valid_and_says_so(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, name, text in (
        ("hidden", "test_more.py", TEST.replace("2", "3").replace("4", "6")),
        ("reference", "app.py", ALONE),
    ):
        (task / folder).mkdir()
        (task / folder / name).write_text(text)
    (task / "task.toml").write_text('[task]\nreference = "reference"\n[tests]\nhidden = "hidden"\n')

    code, result, _ = told(capsys, "check", task, "--confirm", "3", sandbox="S3")

    assert (code, result["tasks"][0]["grade"]) == (0, "C+H")
    assert "it would be `unproved`" in result["tasks"][0]["warnings"][0]
