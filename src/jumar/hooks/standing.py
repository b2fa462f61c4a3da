"""Describes the state of a run to a host's model at a person's prompt: the rule in force, the red tests, the claims."""

from __future__ import annotations

from jumar.core.gate.turn_outcome import format_ids
from jumar.core.state.claims import find_red_ids
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.test_policy import Gate
from jumar.task.untested import format_untested_line

CLAIM = "`jumar claim TEST_ID FILE` in the shell comes before an edit of code"


def describe_standing(state: RunState) -> str:
    """Return the rule of the run in *state*, its red tests and its open claims, in one line."""
    if not state.expected:
        return f"jumar: {_describe_untested(state)}"
    tests = "1 test" if len(state.expected) == 1 else f"{len(state.expected)} tests"
    if state.gate_state.mode is Gate.STRICT:
        return f"jumar: {tests}{_describe_red(state)}"
    newest = state.gate_state.newest
    failing = tuple(i for i in state.expected if i not in newest or newest[i].status != "pass")
    results = f"; red is {format_ids(failing)}" if failing else ", all green"
    verify = f", and `{state.run.settings.verify}` must succeed" if state.run.settings.verify else ""
    return (
        f"jumar: {tests}{results}; {state.gate_state.mode} mode: edits need no claims, and when you stop all tests "
        f"must pass{verify}"
    )


def _describe_untested(state: RunState) -> str:
    verify = state.run.settings.verify
    if state.gate_state.mode is Gate.STRICT:
        return f"no tests: {CLAIM}, and a failing test before that; write one in a new test file"
    if verify:
        return format_untested_line(verify, Gate.REFACTOR)
    offer = "nothing judges the edits; the person may set [gate] verify or [tests] command in jumar.toml"
    return f"no tests: refactor mode; {offer}"


def _describe_red(state: RunState) -> str:
    """Return the tests that an edit of code can be claimed for, and what was claimed."""
    claims = tuple(f"{claim.test_id} for {claim.path}" for claim in state.gate_state.claims)
    open_now = f"; claimed is {format_ids(claims)}" if claims else ""
    if red := find_red_ids(state.gate_state.newest):
        return f"; red is {format_ids(red)}; {CLAIM}{open_now}"
    return f", none red: an edit of code needs a failing test first{open_now}"


def explain_end(state: RunState) -> str:
    """Explain why no edit, claim or escalation is admitted: the run in *state* has ended; empty: it has not."""
    if state.phase is not Phase.ENDED or state.end is None:
        return ""
    return f"the run ended ({state.end.stop}): edits are blocked until the person's next prompt, which begins a new one"
