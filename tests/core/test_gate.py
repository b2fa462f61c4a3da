"""The gate and the guard: same action, same answer, and nothing leaves the workspace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from jumar.core.gate.admission import Action, adapt_to_shell, admits, rule_on_write
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.claims import Claim, GateState
from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.test_policy import Gate, TestPolicy, find_contradiction
from jumar.core.state.verdict import Blame, Outcome

TEST = "test_app.py::test_one"


def state(gate: Gate, agent: str = "driver") -> RunState:
    """A run that has begun."""
    start = ev.RunStart(
        run="r", task="t", agent=agent, model="script", test_policy=TestPolicy.ON_WRITE, gate=gate,
        budget=Budget(), expected=(TEST,), tree="tree",
    )  # fmt: skip
    return replay((ev.Entry(0, 0.0, start),))


GUARD = WriteRules(
    editable=lambda p: p.endswith(".py"), protected=lambda p: p.startswith("test_") or p == "conftest.py"
)


@pytest.mark.parametrize(
    ("path", "admitted", "hit"),
    [
        ("a.py", True, False),
        ("pkg/a.py", True, False),
        ("test_a.py", False, False),
        ("conftest.py", False, False),
        ("a.txt", False, False),
        ("", False, False),
        ("pkg/", False, False),
        ("./a.py", False, False),
        ("a//b.py", False, False),
        ("../a.py", False, True),
        ("pkg/../../a.py", False, True),
        ("/etc/passwd.py", False, True),
        ("~/a.py", False, True),
        ("a\\..\\b.py", False, True),
        ("a\0.py", False, True),
        ("x" * 256 + ".py", False, False),
        ("d/" * 60 + "a.py", False, False),
        ("d/" * 1200 + "a.py", False, False),
    ],
)
def test_writes(path: str, *, admitted: bool, hit: bool) -> None:
    ruling = admits(Action("write_files", {path: "x"}), state(Gate.OFF), GUARD)

    assert (admitted, hit) == (ruling.admitted, ruling.hit is not None)
    assert bool(ruling.reason) is not admitted


def test_one_bad_path_refuses_the_whole_write() -> None:
    assert not admits(Action("write_files", {"a.py": "x", "test_a.py": "x"}), state(Gate.OFF), GUARD).admitted


def test_strict_refuses_an_edit_that_no_red_test_asks_for() -> None:
    assert not admits(Action("write_files", {"a.py": "x"}), state(Gate.STRICT), GUARD).admitted


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("calc.py", "calc.py"),
        ("a b.py", "'a b.py'"),
        ('ü "q".py', """'ü "q".py'"""),
        ("it's.py", """'it'"'"'s.py'"""),
        ("""it's "q".py""", """'it'"'"'s "q".py'"""),
    ],
)
def test_advice_to_claim_a_file_can_be_pasted_into_a_shell(path: str, named: str) -> None:
    """It can with another claim open, and with none."""
    red = ev.TestRun(test_id=TEST, status="fail", outcome=Outcome.FAILED, blame=Blame.CODE)
    for claims, words in (((), f"no red test was claimed for {path}: "), ((Claim(TEST, "b.py"),), "claim it too: ")):
        book = GateState(mode=Gate.STRICT, newest={TEST: red}, claims=claims)
        said = adapt_to_shell(rule_on_write(path, replace(state(Gate.STRICT), gate_state=book), GUARD).reason)

        assert f"{words}run `jumar claim TEST_ID {named}` in the shell" in said
        assert "edit_claim" not in said


@pytest.mark.parametrize(("mode", "why"), [("codemod", "not offered here"), ("x", "there are strict and refactor")])
def test_an_agent_of_a_host_is_offered_no_codemod_and_no_switch_that_it_lacks(mode: str, why: str) -> None:
    ruling = admits(Action("set_mode", args={"mode": mode}), state(Gate.STRICT, HOST), GUARD)

    assert not ruling.admitted
    assert why in ruling.reason
    assert "--allow-codemod" not in ruling.reason


def test_a_proposal_is_named_by_what_it_writes() -> None:
    one = Action("write_files", {"a.py": "x", "b.py": None})
    same = Action("write_files", {"b.py": None, "a.py": "x"}, call_id="other")

    assert one.digest == same.digest != Action("write_files", {"a.py": "y", "b.py": None}).digest


@pytest.mark.parametrize(
    ("policy", "gate", "agent", "refused"),
    [
        ("on_write", "strict", "driver", False),
        ("on_write", "strict", "pipeline", True),
        ("on_write", "refactor", "repair", True),
        ("on_final", "strict", "pipeline", True),
        ("never", "strict", "pipeline", True),
        ("on_final", "off", "repair", True),
        ("on_final", "off", "pipeline", False),
    ],
)
def test_contradictions(policy: str, gate: str, agent: str, *, refused: bool) -> None:
    assert refused is (find_contradiction(TestPolicy(policy), Gate(gate), agent) is not None)


@pytest.mark.parametrize(("policy", "refused"), [("on_write", False), ("on_final", False), ("never", True)])
def test_a_model_may_run_tests_unless_it_may_see_no_result(policy: str, *, refused: bool) -> None:
    why = find_contradiction(TestPolicy(policy), Gate.OFF, "driver", model_runs_tests=True)

    assert refused is (why is not None)
