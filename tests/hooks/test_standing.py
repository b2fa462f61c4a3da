"""A host's model is told the rule and the red tests when a conversation begins, and at each prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hooks.test_hook_stop import FAIL
from jumar.child.hook.published_state import FOLDER, STATE
from jumar.child.hook.ruling import BEGIN, introduce
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.claims import Claim, GateState
from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Blame, Outcome
from jumar.hooks.repository_session import PublishedState
from jumar.hooks.standing import describe_standing
from support.processes.fake_claude_code import RED, Host, quick, repository

GREEN = ev.TestRun(test_id="t.py::a", status="pass", outcome=Outcome.PASSED)
BROKEN = ev.TestRun(test_id="t.py::b", status="error", outcome=Outcome.ERROR, blame=Blame.TEST)
FIRST = "`jumar claim TEST_ID FILE` in the shell comes before an edit of code"

FREE = "refactor mode: edits need no claims, and when you stop all tests must pass"


def begun(gate: Gate, *runs: ev.TestRun, claims: tuple[Claim, ...] = ()) -> RunState:
    """A run under *gate* whose tests have these results."""
    start = ev.RunStart(
        run="r", task="t", agent=HOST, model="", test_policy=TestPolicy.ON_WRITE, gate=gate, budget=Budget(),
        expected=tuple(run.test_id for run in runs), tree="t0",
    )  # fmt: skip
    book = GateState(mode=gate, newest={run.test_id: run for run in runs}, claims=claims)
    return RunState(start=start, tree="t0", gate_state=book)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (begun(Gate.STRICT, FAIL), f"jumar: 1 test; red is t.py::a; {FIRST}"),
        (
            begun(Gate.STRICT, FAIL, claims=(Claim("t.py::a", "a.py"),)),
            f"jumar: 1 test; red is t.py::a; {FIRST}; claimed is t.py::a for a.py",
        ),
        (begun(Gate.STRICT, GREEN, BROKEN), "jumar: 2 tests, none red: an edit of code needs a failing test first"),
        (
            begun(Gate.REFACTOR, GREEN),
            f"jumar: 1 test, all green; {FREE}",
        ),
        (
            begun(Gate.REFACTOR, GREEN, BROKEN),
            f"jumar: 2 tests; red is t.py::b; {FREE}",
        ),
    ],
)
def test_a_prompt_is_answered_with_the_rule_of_the_run_and_what_is_red(state: RunState, told: str) -> None:
    assert describe_standing(state) == told


@pytest.mark.parametrize(
    ("gate", "published", "needs_claim"),
    [("", "", True), ("strict", "refactor", True), ("refactor", "", False), ("", "refactor", False)],
)
def test_a_conversation_begins_with_the_rule_of_its_gate(
    tmp_path: Path,
    gate: str,
    published: str,
    needs_claim: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """That is the installed one, or where nobody chose, that of the newest run."""
    if published:
        folder = tmp_path / FOLDER
        (folder / "runs" / "one").mkdir(parents=True)
        (folder / "runs" / "one" / "events.jsonl").touch()
        state = PublishedState(root=str(tmp_path), run="one", mode=published)
        (folder / STATE).write_text(json.dumps({f: getattr(state, f) for f in state.__struct_fields__}))
    raw = json.dumps({"session_id": "s", "cwd": str(tmp_path), "hook_event_name": BEGIN}).encode()

    told = str(introduce(raw, "", gate))

    assert ("only after `jumar claim" in told) is needs_claim
    assert ("edits need no claims" in told) is not needs_claim


@pytest.mark.slow
def test_each_prompt_tells_what_is_red_also_another_conversation_and_one_after_a_run_that_stalled(
    tmp_path: Path,
) -> None:
    host = quick(Host(repository(tmp_path / "repo"), gate=Gate.REFACTOR))
    other = quick(Host(host.root, "two", gate=Gate.REFACTOR))
    told = host.prompt().context
    assert f"red is {RED}; refactor mode: edits need no claims" in told
    beside = other.prompt()
    assert "another conversation" in str(beside.said["systemMessage"])
    assert beside.context == told

    assert host.claim(RED, "calc.py") == (False, "refused: the gate is refactor: edits need no claims now\n")
    assert host.edit("calc.py", "a * b", "a + b") == ""
    assert "went back" in [host.stop().blocked for _ in range(3)][2]
    assert host.stop().said == {}
    assert host.prompt().context == told
    assert host.stop().said == {}
    assert other.prompt().context == told
    assert not host.claim(RED, "calc.py")[0]
