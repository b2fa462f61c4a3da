"""The host's agent stops when the tests say so: what is red or not judged blocks a stop once per state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from jumar.child.hook.ruling import STOP, SUBAGENT_STOP, format_refusal
from jumar.core.state import events as ev
from jumar.core.state.claims import Claim, Edited, GateState
from jumar.core.state.ratchet import Attempt, Score
from jumar.core.state.run_state import ConversationCell, RunState
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Blame, Outcome
from jumar.hooks.stop_rule import StopRuling, find_stopper, rule
from jumar.journal.writer import read_journal
from support.processes.fake_claude_code import BUGGY, RED, Host, quick, repository

FAIL = ev.TestRun(test_id="t.py::a", status="fail", outcome=Outcome.FAILED, blame=Blame.CODE)
CLAIMED = RunState(
    tree="t0", gate_state=GateState(mode=Gate.STRICT, newest={"t.py::a": FAIL}, claims=(Claim("t.py::a", "a.py"),))
)
QUIET = replace(CLAIMED, gate_state=replace(CLAIMED.gate_state, claims=()))


def written(state: RunState, stopping: StopRuling) -> RunState:
    """*state* once the ruling stands in the journal."""
    assert stopping.call is not None
    args = stopping.call.arguments
    taken = ev.ActionTaken(name="stop", args=args, admitted=not stopping.blocks, reason=str(args["why"]))
    return replace(state, conversation=ConversationCell(taken, state.conversation))


def test_a_claimed_test_that_is_red_blocks_once_and_the_second_stop_in_that_state_goes_through_and_is_recorded() -> (
    None
):
    first = rule(CLAIMED, STOP, active=False)
    second = rule(written(CLAIMED, first), STOP, active=False)

    assert first.blocks
    assert "t.py::a (claimed for a.py) is still red" in first.why
    assert not second.blocks
    assert second.why == first.why
    assert second.call is not None
    assert (second.call.arguments["red"], second.call.arguments["why"]) == (["t.py::a"], "")


def test_an_edit_that_was_not_judged_blocks_too() -> None:
    edited = replace(QUIET, gate_state=replace(QUIET.gate_state, turn=(Edited("a.py", "1", "2"),)))
    best = Attempt("t0", Score(1, 0, 0), frozenset({"t.py::b"}))
    refactored = replace(QUIET, tree="t1", best=best, gate_state=GateState(mode=Gate.REFACTOR))

    assert rule(edited, STOP, active=False).why == "edited, and not judged by the tests yet: a.py"
    assert rule(edited, STOP, active=False).blocks
    assert rule(refactored, STOP, active=False).blocks


def test_a_stop_with_nothing_open_says_and_writes_nothing() -> None:
    assert rule(QUIET, STOP, active=False) == StopRuling("", blocks=False, call=None), "red tests that nobody claimed"


ANOTHER = ev.TestRun(test_id="t.py::b", status="fail", outcome=Outcome.FAILED, blame=Blame.CODE)


@pytest.mark.parametrize(
    "other",
    [
        replace(CLAIMED, tree="t1"),
        replace(CLAIMED, gate_state=replace(CLAIMED.gate_state, claims=(Claim("t.py::a", "b.py"),))),
        replace(CLAIMED, gate_state=replace(CLAIMED.gate_state, newest={"t.py::a": FAIL, "t.py::b": ANOTHER})),
    ],
    ids=["tree", "claims", "red"],
)
def test_another_tree_other_claims_or_other_red_tests_are_another_state(other: RunState) -> None:
    before = written(CLAIMED, rule(CLAIMED, STOP, active=False))

    assert rule(replace(other, conversation=before.conversation), STOP, active=False).blocks


def test_a_host_that_goes_on_because_of_a_block_is_never_blocked_again_so_that_it_cannot_loop() -> None:
    for state, news in ((CLAIMED, ""), (CLAIMED, "calc.py went back"), (QUIET, "calc.py went back")):
        stopping = rule(state, STOP, active=True, news=news)
        assert not stopping.blocks
        assert stopping.call is not None, "it is recorded"
        assert stopping.why


def test_what_has_just_gone_back_is_told_in_a_state_that_was_blocked_before_too() -> None:
    before = written(CLAIMED, rule(CLAIMED, STOP, active=False))

    assert rule(before, STOP, active=False, news="calc.py went back").blocks


def test_a_subagent_is_told_for_itself() -> None:
    before = written(CLAIMED, rule(CLAIMED, find_stopper(SUBAGENT_STOP, {"agent_id": "x"}), active=False))

    assert not rule(before, find_stopper(SUBAGENT_STOP, {"agent_id": "x"}), active=False).blocks
    assert rule(before, find_stopper(SUBAGENT_STOP, {"agent_id": "y"}), active=False).blocks
    assert rule(before, find_stopper(STOP, {}), active=False).blocks


def test_a_hook_that_fails_does_not_block_a_subagent_s_second_stop() -> None:
    assert format_refusal(SUBAGENT_STOP, "why", b'{"stop_hook_active": true}') == {"systemMessage": "jumar: why"}
    assert format_refusal(SUBAGENT_STOP, "why", b"{}") == {"decision": "block", "reason": "why"}


# --- a host at work -------------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return quick(Host(repository(tmp_path / "repo")))


def stops(root: Path) -> list[tuple[bool, object]]:
    """Every stop in the journal: whether it went through, and what was red."""
    (run,) = (root / ".jumar" / "hook" / "runs").glob("2*")
    taken = [entry.event for entry in read_journal(run) if isinstance(entry.event, ev.ActionTaken)]
    return [(event.admitted, event.args["red"]) for event in taken if event.name == "stop"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.proof)], ids=["called", "started"])
def test_a_stop_with_a_claimed_test_red_is_blocked_once(host: Host, processes: bool) -> None:  # noqa: FBT001
    """By the real program, too, which `test_a_turn_from_red_to_green` starts each time."""
    host = quick(Host(host.root, processes=processes))
    host.prompt()
    assert host.claim(RED, "calc.py")[0]

    first, second = host.stop(), host.stop(again=True)

    assert first.said["decision"] == "block"
    assert set(first.said) == {"decision", "reason"}
    assert f"{RED} (claimed for calc.py) is still red" in first.blocked
    assert second.blocked == ""
    assert RED in str(second.said["systemMessage"])
    host.prompt()
    third = host.stop()
    assert third.blocked == "", "nothing has changed since: a person who only asked something is not kept waiting"
    assert stops(host.root) == [(False, [RED]), (True, [RED]), (True, [RED])]


@pytest.mark.proof
def test_a_subagent_that_stops_is_judged_and_blocked_likewise_and_the_turn_goes_on(host: Host) -> None:
    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    assert host.edit("calc.py", "a - b", "a - b - 1") == ""

    first = host.subagent_stops("a1").blocked
    assert "calc.py went back" in first
    assert f"{RED} (claimed for calc.py) is still red" in first
    assert (host.root / "calc.py").read_text() == BUGGY
    assert host.subagent_stops("a1", again=True).blocked == ""
    assert json.loads((host.root / ".jumar" / "hook" / "state.json").read_text())["turn"] is True
    assert host.edit("calc.py", "a - b", "a + b") == ""
    assert host.stop().said == {}
    assert stops(host.root) == [(False, [RED]), (True, [RED])]


def kept(root: Path) -> dict[str, str]:
    """The files that went back and were kept: path -> text."""
    folders = sorted((root / ".jumar" / "hook" / "put-back").glob("*"))
    files = ((path, folder) for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path, folder in files}


@pytest.mark.slow
def test_what_goes_back_when_a_refactoring_is_left_red_is_kept(host: Host) -> None:
    host = quick(Host(host.root, gate=Gate.REFACTOR))
    host.prompt()
    assert host.edit("calc.py", "a * b", "a + b") == ""
    assert host.write("ESSAY.md", "long\n") == ""

    blocked = [host.stop().blocked for _ in range(3)]

    assert "ESSAY.md, calc.py went back" in blocked[2]
    assert not (host.root / "ESSAY.md").exists()
    assert kept(host.root) == {"ESSAY.md": "long\n", "calc.py": BUGGY.replace("a * b", "a + b")}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["stop", "subagent", "claim"])
def test_an_edit_that_goes_back_as_its_test_stays_red_is_kept(host: Host, way: str) -> None:
    """Also if it is judged because another claim asks for fresh results."""
    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    assert host.edit("calc.py", "a - b", "a - b - 1") == ""

    if way == "claim":
        assert not host.claim("test_calc.py::test_mul", "other.py")[0]
    elif way == "stop":
        assert "calc.py went back" in host.stop().blocked
    else:
        assert "calc.py went back" in host.subagent_stops("a1").blocked

    assert (host.root / "calc.py").read_text() == BUGGY
    assert kept(host.root) == {"calc.py": BUGGY.replace("a - b", "a - b - 1")}
