"""Test files of a candidate's own are not there while the task's tests are judged, and cannot break one another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from jumar.cli.console.run_progress import _describe_fact
from jumar.core.gate.admission import Action, rule_on_write
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.effects import Keep
from jumar.core.state.claims import GateState
from jumar.core.state.events import Observation, Tests
from jumar.core.state.ratchet import Attempt, Score
from jumar.core.state.run_state import Judged, RunState
from jumar.core.state.settings import Suite
from jumar.core.state.test_policy import Gate, Trigger
from jumar.ports import Verification
from jumar.runners.go import plugin as go
from jumar.runtime.actions import build_gate_events
from jumar.runtime.read_tools import ROOM
from support.judging.real_verifier import Court

APP = "def double(n):\n    return 3 * n\n"
TEST_APP = "from app import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
TASK = {"app.py": APP, "test_app.py": TEST_APP}

GO_TEST = """package app

import "testing"

func Test{name}(t *testing.T) {{
	if {call} != 4 {{
		t.Fatal("wrong")
	}}
}}
"""
GO_TASK = {
    "go.mod": "module app\n\ngo 1.20\n",
    "app.go": "package app\n\nvar factor = 3\n\nfunc Double(n int) int { return factor * n }\n",
    "app_test.go": GO_TEST.format(name="Double", call="Double(2)"),
}


def judged(court: Court, files: Mapping[str, str], *own: str) -> Verification:
    court.verifier.own = lambda path: path.startswith("own")
    tree = court.tree(files)

    async def verify() -> Verification:
        return await court.verifier.verify(tree, {}, also=own)

    return anyio.run(verify)


@pytest.mark.slow
def test_the_code_cannot_lean_on_a_test_file_of_the_candidates_own(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.collect(court.tree(TASK))
    smuggled = {
        **TASK,
        "app.py": "def double(n):\n    import own_test\n    return own_test.double(n)\n",
        "own_test.py": "def double(n):\n    return 2 * n\n\n\n"
        "def test_own():\n    import app\n    assert app.double(1) == 2\n",
    }

    done = judged(court, smuggled, "own_test.py::test_own")

    assert court.outcomes(done) == {"test_two": "failed", "test_own": "passed"}
    assert done.executions == 2


@pytest.mark.slow
def test_what_is_compiled_with_the_package_neither_patches_nor_breaks_the_tests_of_the_task(tmp_path: Path) -> None:
    court = Court(tmp_path, Suite(timeout_seconds=60.0))
    court.verifier.runner, court.verifier.environ = go, dict(os.environ)
    court.verifier.around = go.surroundings(tmp_path, court.verifier.environ)
    if court.verifier.around.missing:
        pytest.skip(court.verifier.around.missing)
    court.verifier.expected = ("app_test.go::TestDouble",)
    files = {
        **GO_TASK,
        "own_1_test.go": GO_TEST.format(name="Patched", call="Double(2)") + "\nfunc init() { factor = 2 }\n",
        "own_2_test.go": GO_TEST.format(name="Halve", call="Halve(8)"),
        "own_3_test.go": GO_TEST.format(name="Third", call="Third(12)"),
    }
    own = [f"own_{n}_test.go::Test{name}" for n, name in ((1, "Patched"), (2, "Halve"), (3, "Third"))]

    done = judged(court, files, *own)

    assert court.outcomes(done) == {
        "TestDouble": "failed", "TestPatched": "passed", "TestHalve": "import_error", "TestThird": "import_error",
    }  # fmt: skip
    assert done.executions == 2 + 3, "the task's, all own ones together, and each by itself as they broke each other"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("test_" + 300 * "x" + ".py", "too long"),
        (60 * "a/" + "test_x.py", "nested too deep"),
        ("test_\n.py", "characters that nobody can read"),
        ("test_\u202e.py", "characters that nobody can read"),
        ("tests//test_x.py", "not the path of a file"),
        ("./test_x.py", "not the path of a file"),
    ],
)
def test_a_new_test_file_needs_a_name_that_a_file_can_have(path: str, why: str) -> None:
    anything = WriteRules(editable=lambda _: True, protected=lambda _: False, authorable=lambda _: True)

    ruling = rule_on_write(path, RunState(gate_state=GateState(mode=Gate.STRICT)), anything)

    assert not ruling.admitted
    assert why in ruling.reason


def test_what_is_kept_is_counted_with_the_tests_that_join_by_it() -> None:
    score = Score(passed=4, errors=0, failed=0)
    tests = Tests(trigger=Trigger.TURN, ok=True, passed=4, failed=0, errors=0, total=4, tree="t")
    state = RunState(judged=Judged(tests))

    assert _describe_fact(state, Keep(Attempt("t", score, frozenset()))) == "4 of 4 passed: kept"


def test_the_warnings_of_a_long_plan_are_cut() -> None:
    steps = [{"title": "more", "test_id": f"test_{n}.py::test_it"} for n in range(10_000)]
    action = Action("submit_plan", args={"steps": steps})

    _, told = build_gate_events(action, RunState())

    assert isinstance(told, Observation)
    assert len(str(told.content["output"])) <= ROOM
