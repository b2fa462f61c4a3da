"""A turn is judged by one run of the tests, however much is claimed in it: counted at the processes themselves."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w
from click.testing import CliRunner

from jumar.child.pytest import pytest_main
from jumar.cli.main import jumar
from jumar.core.state import events as ev
from jumar.journal.writer import read_journal
from jumar.models.script import ScriptLine
from jumar.runs.setup.assembly import load_runner
from support.processes.interpreters import PLAIN_PYTHON
from support.processes.node import PACKAGES
from support.worlds.driver_world import both, call
from support.worlds.gate_world import edit

NAMES = ("one", "two", "three", "four", "five")

SAMPLE = ("pytest",)
"""Runners that are tried each time; `make prove` tries all."""


class Project(msgspec.Struct, frozen=True):
    """Five functions that are wrong, and a test of each."""

    program: str
    """What runs its tests; empty: the interpreter."""
    file: str
    tests: str
    function: str
    test: str
    """With NAME, and N for what it should give."""
    title: str
    head: str = ""
    tests_head: str = ""
    others: Mapping[str, str] = {}
    asked: str = ""
    """A word that stands among its arguments when tests run."""

    def files(self) -> dict[str, str]:
        """All of them."""
        code, tests = (
            "\n".join(
                part.replace("NAME", name).replace("N", str(n)).replace("UP", name.capitalize())
                for n, name in enumerate(NAMES, 1)
            )
            for part in (self.function, self.test)
        )
        return {self.file: f"{self.head}{code}", self.tests: f"{self.tests_head}{tests}", **self.others}

    def turn(self, number: int) -> tuple[ScriptLine, ScriptLine]:
        """The claim of one test, and its edit."""
        name = NAMES[number]
        wrong = self.function.split("\n")[1].replace("NAME", name)
        test_id = f"{self.tests}::{self.title.replace('NAME', name).replace('UP', name.capitalize())}"
        claim = call("edit_claim", test_id=test_id, edit_target=self.file)
        return claim, edit(self.file, wrong, wrong.replace("0", str(number + 1)))


PROJECTS = {
    "pytest": Project(
        program="",
        file="calc.py",
        tests="test_calc.py",
        function='def NAME():\n    return {"NAME": 0}["NAME"]\n',
        test="def test_NAME():\n    assert calc.NAME() == N\n",
        title="test_NAME",
        tests_head="import calc\n\n\n",
        asked=pytest_main.__name__,
    ),
    "vitest": Project(
        program="node",
        file="calc.js",
        tests="calc.test.js",
        function="export function NAME() {\n  return { NAME: 0 }.NAME\n}\n",
        test="test('NAME', () => {\n  expect(calc.NAME()).toBe(N)\n})\n",
        title="NAME",
        tests_head="import * as calc from './calc.js'\n\n",
        asked="vitest",
    ),
    "go": Project(
        program="go",
        file="calc.go",
        tests="calc_test.go",
        function='func UP() int {\n\treturn map[string]int{"NAME": 0}["NAME"]\n}\n',
        test="func TestUP(t *testing.T) {\n\tif UP() != N {\n\t\tt.Fail()\n\t}\n}\n",
        title="TestUP",
        head="package calc\n\n",
        tests_head='package calc\n\nimport "testing"\n\n',
        others={"go.mod": "module example.com/calc\n\ngo 1.18\n"},
        asked="test",
    ),
    "cargo": Project(
        program="cargo",
        file="src/lib.rs",
        tests="tests/calc.rs",
        function='pub fn NAME() -> i32 {\n    ("NAME", 0).1\n}\n',
        test="#[test]\nfn test_NAME() {\n    assert_eq!(calc::NAME(), N);\n}\n",
        title="test_NAME",
        others={"Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'},
        asked="test",
    ),
}


class Counted:
    """A program that is counted: a script of the same name that says so and becomes it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.log, self.script = folder / "log", folder / "bin" / name
        real = PLAIN_PYTHON if name == "python" else shutil.which(name, path=f"{Path(sys.executable).parent}:{PATH}")
        assert real is not None
        self.script.parent.mkdir(parents=True)
        log = shlex.quote(str(self.log))
        self.script.write_text(
            '#!/bin/sh\ncase "$*" in *sys.executable*) echo "$0"; exit;; esac\n'  # a shim that leads to itself
            f'echo "$@" | tr "\\n" " " >> {log}\necho >> {log}\nexec {shlex.quote(real)} "$@"\n'
        )
        self.script.chmod(0o755)

    def since(self, asked: str) -> list[str]:
        """With which arguments it was started to run tests, since it was asked last."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if asked in line]


PATH = os.environ.get("PATH", "/usr/bin:/bin")


def run(folder: Path, lines: list[ScriptLine], python: Path, **more: str) -> dict[str, Any]:
    """What `jumar run` says of the task in *folder*, driven by *lines*."""
    calls = [[{"name": c.name, "arguments": c.arguments} for c in line.tool_calls] for line in lines]
    script = folder.parent / "script.jsonl"
    script.write_text("".join(json.dumps({"tool_calls": reply, "usd": 0.01}) + "\n" for reply in calls), "utf-8")
    # A fork is started by nobody, so it would not be counted.
    environ = {"JUMAR_NODE_MODULES": str(PACKAGES), "PATH": PATH, "JUMAR_NO_WARM": "1", **more}
    argv = [
        "run",
        str(folder),
        "--agent",
        "driver",
        "--model",
        f"script:{script}",
        "--python",
        str(python),
        "--json",
        "-q",
    ]
    done = CliRunner().invoke(jumar, [*argv, "--runs", str(folder.parent / "runs")], env=environ, standalone_mode=False)
    assert done.exception is None, done.exception
    found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "runner",
    [pytest.param(name, marks=pytest.mark.slow if name in SAMPLE else pytest.mark.proof) for name in PROJECTS],
)
def test_five_claims_of_a_turn_make_one_run_of_the_tests_and_five_turns_make_five(tmp_path: Path, runner: str) -> None:
    project, environ = PROJECTS[runner], {**os.environ, "JUMAR_NODE_MODULES": str(PACKAGES)}
    if missing := load_runner(runner).surroundings(tmp_path, environ).missing:
        pytest.skip(missing)
    counted = Counted(tmp_path, project.program or "python")
    for path, text in project.files().items():
        (tmp_path / "calc" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "calc" / path).write_text(text, "utf-8")
    variables = {"PATH": f"{counted.script.parent}:{PATH}"} if project.program else {}
    task = {"task": {"env": variables}, "tests": {"runner": runner}}
    (tmp_path / "calc/task.toml").write_text(tomli_w.dumps(task), "utf-8")
    python = Path(sys.executable) if project.program else counted.script
    turns = [project.turn(number) for number in range(len(NAMES))]
    found = []
    for lines in ([both(*map(both, *zip(*turns, strict=True)))], [both(*turn) for turn in turns]):
        done = run(tmp_path / "calc", lines, python)
        assert done["stop"] == "green"
        output = len(list(Path(done["events"]).parent.glob("output/*.txt")))
        found.append((done["executions"], output, len(counted.since(project.asked))))

    assert found == [(2, 3, 3), (6, 7, 7)], "the ids are collected, the untouched tree is judged, then turn by turn"
    done = run(tmp_path / "calc", [both(*turn) for turn in turns], python, JUMAR_NO_WARM="")
    output = len(list(Path(done["events"]).parent.glob("output/*.txt")))
    assert done["stop"] == "green"
    # What a kept process says is written to the file of the fresh one that it is compared with.
    starts = [
        entry.event.starts for entry in read_journal(Path(done["events"]).parent) if isinstance(entry.event, ev.Tests)
    ]
    beside = sum(taken.get(kind, 0) for taken in starts for kind in ("compared", "green"))
    assert done["executions"] == output - 1 + beside >= 6, "each run is counted, comparisons with a fresh one, too"
