"""Refactor and codemod mode: which files they open, what a verdict is of, and what a journal shows of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gate_stories import STORIES, played
from jumar.core import events as ev
from jumar.core.settings import Settings, Suite
from jumar.harness.assembly import gated, runner_of
from jumar.projects import of_runner
from jumar.task import Task, protected_lines
from turns import ended

PROJECTS = {
    "pytest": (
        ("pyproject.toml", "setup.cfg", "tox.ini"),
        ("tests/test_a.py", "tests/data.json", "conftest.py", "src/conftest.py"),
    ),
    "vitest": (
        ("package.json", "vitest.config.ts", "tsconfig.json", "yarn.lock"),
        ("src/a.test.ts", "src/__snapshots__/a.snap", "tests/help.ts"),
    ),
    "go": (("go.mod", "go.sum"), ("a_test.go", "testdata/a.txt")),
    "cargo": (("Cargo.toml", "Cargo.lock", "build.rs"), ("tests/a.rs", "benches/b.rs")),
}
"""Runner -> files that steer it, and files that are tests."""


@pytest.mark.parametrize("named", [False, True], ids=["without a task file", "where the task names its files"])
@pytest.mark.parametrize("runner", PROJECTS)
def test_refactor_mode_opens_every_file_but_tests_and_guardrails_own(runner: str, named: bool) -> None:  # noqa: FBT001
    steering, tests = PROJECTS[runner]
    kind = of_runner(runner)
    editable, own = (("src/app.*",), ()) if named else (kind.sources, kind.tests)
    task = Task(root=Path("/x"), name="x", suite=Suite(runner=runner), editable=editable, protected=own)
    settings = Settings(editable=task.editable, protected=protected_lines(task, tests[:1]), suite=task.suite)

    guard = gated(settings, runner_of(runner), (*steering, *tests))

    for path in (*steering, "README.md", "docs/new/x.md", ".github/workflows/ci.yml", "Makefile", "requirements.txt"):
        assert guard.refactorable(path), path
    for path in (*tests, ".git/config", ".jumar/x", "task.toml", "jumar.toml", "node_modules/a/index.js", "a.pyc"):
        assert not guard.refactorable(path), path
    assert all(map(guard.steering, (*steering, "Makefile")))
    assert not any(map(guard.steering, ("README.md", "docs/new/x.md", "src/app.py", "requirements.txt")))


def test_what_the_person_protects_stays_closed_and_what_commands_name_steers() -> None:
    suite = Suite(command="sh ./check.sh {ids}")
    task = Task(root=Path("/x"), name="x", protected=("pyproject.toml", "docs/"), verify="python tools/verify.py -q")
    settings = Settings(
        editable=task.editable, protected=protected_lines(task, ()), suite=suite, verify="python scripts/verify.txt"
    )

    guard = gated(settings, runner_of("pytest"), ())

    assert not guard.refactorable("pyproject.toml")
    assert not guard.refactorable("docs/a.md")
    assert guard.refactorable("setup.cfg")
    assert guard.steering("check.sh")
    assert guard.steering("scripts/verify.txt")


def test_the_plain_run_under_the_edited_configuration_is_in_the_journal_with_its_grade(tmp_path: Path) -> None:
    made = played(
        tmp_path, STORIES["docs, new files, dependencies and configuration are edited in refactor mode, and kept"]
    )

    ended(made)

    (plain,) = made.events(ev.PlainRun)
    assert isinstance(plain, ev.PlainRun)
    assert (plain.ok, plain.paths, plain.grade, plain.passed, plain.total) == (
        True, ("pyproject.toml", "tox.ini"), "D", 5, 5,
    )  # fmt: skip
    tests = [e for e in made.events(ev.Tests) if isinstance(e, ev.Tests)][-1]
    assert tests.tree == plain.tree == made.world.replayed().tree
    assert made.world.verifier.plainly == [plain.tree]
    assert plain.tree not in made.world.verifier.asked, "a verdict is never of a candidate's own configuration"


REPOSITORY = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "README.md": "Sums.\n",
}


def run(folder: Path, script: list[dict[str, object]], *words: str) -> tuple[dict[str, object], Path]:
    """`jumar run` on a small repository, whose model answers *script*; its result and the repository."""
    for path, text in REPOSITORY.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    lines = [{"tool_calls": [{"name": n, "arguments": a} for n, a in turn.items()]} for turn in script]
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = f"script:{folder / 'script.jsonl'}"
    runs = ("--runs", str(folder / "runs"), "--sandbox", "S0", "--confirm", "0", "--json", "-q", "--apply")
    program = Path(sys.executable).with_name("jumar")
    command = [str(program), "run", "repo", "--agent", "driver", "--model", model, *runs, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), folder / "repo"


@pytest.mark.slow
def test_docs_and_configuration_of_a_plain_repository_are_edited_in_refactor_mode_and_applied(tmp_path: Path) -> None:
    edited = '[project]\nname = "calc"\nversion = "2"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
    said, repo = run(
        tmp_path,
        [
            {"write_file": {"path": "pyproject.toml", "text": "[tool.pytest.ini_options]\naddopts = '-k nothing'\n"}},
            {"final": {"message": "done"}},
            {"write_file": {"path": "pyproject.toml", "text": edited}},
            {"write_file": {"path": "docs/calc.md", "text": "add(a, b)\n"}},
            {"final": {"message": "done"}},
        ],
        *("--gate", "refactor", "-i", "describe it"),
    )
    assert (said["stop"], said["exit"]) == ("green", 0)
    assert (repo / "pyproject.toml").read_text() == edited
    assert (repo / "docs/calc.md").is_file()
    shown = Path(str(said["events"])).read_text()
    assert '"type":"plain_run"' in shown
    assert "with pyproject.toml as edited, tests/test_calc.py::test_add came out differently" in shown
