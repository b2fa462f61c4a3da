"""Full evaluation of a hook event: compares trees and runs tests; returns an answer or a refusal."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from jumar.child.hook.published_state import STATE, HookRefusal
from jumar.child.hook.ruling import (
    EDITS,
    EVENTS,
    FAILED,
    POST,
    PRE,
    PROMPT,
    STOP,
    STOPS,
    Answer,
    find_edited_file,
    format_refusal,
    read,
)  # fmt: skip
from jumar.cli.parameters.environment import read_environment
from jumar.core.gate.admission import adapt_to_shell
from jumar.core.quoting import make_one_line
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import JumarError
from jumar.hooks.repository_session import RepositorySession
from jumar.hooks.standing import describe_standing, explain_end
from jumar.hooks.stop_rule import find_stopper, rule
from jumar.runs.session import ActionOutcome, Session
from jumar.runs.setup.result import read_state

LOOK = ToolCall(name="look", arguments={})

LONGEST = 8_000
"""Characters of an answer: hosts cut longer ones off."""

RECENT_SECONDS = 900.0
"""For so long after its last sign of life another conversation counts as at work."""


def main() -> None:
    """Answer the event named in the first argument, of the repository in the second, under the gate in a third."""
    event, root = sys.argv[1:3]
    gate = Gate(sys.argv[3]) if len(sys.argv) > 3 else None  # noqa: PLR2004  as the sentence above says
    answer = answer_or_refuse(event, sys.stdin.buffer.read(), Path(root), read_environment(), gate)
    if answer is not None:
        sys.stdout.write(json.dumps(answer))


def answer_or_refuse(
    event: str, raw: bytes, root: Path, environ: Mapping[str, str], gate: Gate | None = None
) -> Answer:
    """Answer *event*; a refusal or a bug of jumar is an answer, too."""
    desk = RepositorySession(root, environ, gate)
    try:
        return anyio.run(answer_event, event, raw, desk)
    except (JumarError, HookRefusal, OSError) as why:
        return format_refusal(event, str(why), raw)
    except Exception as bug:  # noqa: BLE001  what is published may be wrong then: without this, edits went on by it
        traceback.print_exception(bug)
        told = f"a bug of jumar: {bug!r}"
        with suppress(OSError):
            desk.publish_fault(told)
        return format_refusal(event, told, raw)


async def answer_event(event: str, raw: bytes, desk: RepositorySession) -> Answer:
    """Return the answer to *event*, sent as *raw*, about the repository of *desk*; None: no objection.

    Raises:
        HookRefusal: if the event is malformed.
        BadInput: if there is no session, or it is damaged.
        Infra: if the machine failed.
    """
    payload = read(event, raw)
    name = str(payload["session_id"])
    with desk.hold_lock():
        match event:
            case _ if event == PROMPT:
                return await _answer_prompt(desk, name)
            case _ if event == PRE:
                return await _rule_on_call(desk, payload, name)
            case _ if event in (POST, FAILED):
                return await _judge_tool(desk, event, name)
            case _ if event in STOPS:
                return await _rule_on_stop(desk, event, payload)
    raise HookRefusal(f"{event} needs no full rule; it is one of {', '.join(EVENTS)}")


async def _answer_prompt(desk: RepositorySession, name: str) -> Answer:
    """Answer a person's prompt: rejoin the run if the folder is as it left it, else begin one."""
    before = desk.read_state()
    others = before is not None and before.turn and before.session not in ("", name)
    if others and time.time() - (desk.folder / STATE).stat().st_mtime < RECENT_SECONDS:
        return _greet_beside(desk)
    if before is not None and not before.fault and (rests := desk.find_resting_state()) and desk.is_fresh():
        desk.publish_again(name, turn=True)
        return _tell(describe_standing(rests))
    try:
        async with desk.begin() as session:
            desk.publish(session, name, turn=True)
            told = describe_standing(session.state)
    except JumarError as why:
        desk.publish_fault(str(why))
        return {"systemMessage": f"jumar: edits are blocked, there is no session: {why}"}
    return _tell(told)


def _greet_beside(desk: RepositorySession) -> Answer:
    """Answer the prompt of a conversation beside one that is at work here."""
    said: dict[str, object] = {
        "systemMessage": "jumar: another conversation is at work here; its run goes on, and judges both"
    }
    try:
        state = read_state(desk.find_run())
    except JumarError:  # its next tool will say so
        return said
    return said if state.phase is Phase.ENDED else said | _tell(describe_standing(state))


def _tell(told: str) -> dict[str, object]:
    """Return an answer to a prompt that tells the model something."""
    return {"hookSpecificOutput": {"hookEventName": PROMPT, "additionalContext": told}}


async def _rule_on_call(desk: RepositorySession, payload: dict[str, object], name: str) -> Answer:
    """Rule on a call that the fast hook could not decide: mostly an edit of a file that does not exist yet."""
    if not desk.is_fresh():
        async with _rejoin(desk) as session:
            desk.publish(session, name, turn=True)
    tool, given = str(payload["tool_name"]), payload["tool_input"]
    if tool not in EDITS or not isinstance(given, dict):
        return None
    why = desk.explain_refusal(find_edited_file(tool, given, str(desk.root)))
    return format_refusal(PRE, adapt_to_shell(why)) if why else None


async def _judge_tool(desk: RepositorySession, event: str, name: str) -> Answer:
    """Judge the tree after a tool has run: its changes without a claim are reverted."""
    state, seen = _read_state(desk)
    if state.phase is Phase.ENDED:
        changed = desk.revert_changes(state, seen)
        return format_refusal(event, f"{explain_end(state)}; {_format_paths(changed)}") if changed else None
    if seen == state.tree and desk.is_fresh():
        desk.publish_again(name, turn=True)
        return None
    async with _rejoin(desk, seen) as session:
        told = await session.act(LOOK)
        desk.publish(session, name, turn=True)
    return format_refusal(event, _describe_put_back(told)) if told.reverted else None


async def _rule_on_stop(desk: RepositorySession, event: str, payload: dict[str, object]) -> Answer:
    """Judge the edits so far when the host or a subagent is about to stop; open work blocks the stop."""
    name, active = str(payload["session_id"]), payload.get("stop_hook_active") is True
    turn = event != STOP  # whoever sent the subagent goes on
    state, seen = _read_state(desk)
    if state.phase is Phase.ENDED:
        said = _describe_end(state, desk.revert_changes(state, seen))
        desk.publish_again(name, turn=turn)
        return {"systemMessage": f"jumar: {said}"} if said else None
    async with _rejoin(desk, seen) as session:
        looked = await session.act(LOOK)
        judged = await _judge_turn(session)
        news = _describe_reverted(looked, judged)
        stopping = rule(session.state, find_stopper(event, payload), active=active, news=news)
        if stopping.call is not None and session.state.phase is not Phase.ENDED:
            await session.act(stopping.call)
        desk.publish(session, name, turn=turn)
    if (
        session.state.run.gate is Gate.REFACTOR
        and judged is not None
        and judged.stop
        and judged.reverted
        and not active
    ):
        # A refactoring went back, and with that its run ended: the next try begins where this one did.
        async with desk.begin() as session:
            desk.publish(session, name, turn=turn)
    why = adapt_to_shell(stopping.why)[:LONGEST]
    if stopping.blocks:
        return {"decision": "block", "reason": f"jumar: {why}"}
    if not why and judged is not None and judged.stop is StopReason.UNTESTED:
        return {"systemMessage": "jumar: no test judged the edits of this turn"}
    return {"systemMessage": f"jumar: the stop goes through, and this is open: {why}"} if why else None


def _describe_end(state: RunState, changed: tuple[str, ...]) -> str:
    """Return the message for a person when the host stops after its run has ended."""
    said = [f"{explain_end(state)}; {_format_paths(changed)}"] if changed else []
    if state.escalated is not None:
        said.append(f"the agent escalated {state.escalated.test_id}: {make_one_line(state.escalated.reason, LONGEST)}")
    return "\n".join(said)


def _describe_reverted(looked: ActionOutcome, judged: ActionOutcome | None) -> str:
    """Return the files that were reverted when the host stopped, and why; empty: none were."""
    lines = [_describe_put_back(looked)] if looked.reverted else []
    if judged is not None and (judged.reverted or not judged.admitted):
        went = f"{', '.join(judged.reverted)} went back: {judged.why}" if judged.reverted else judged.reason
        lines.append(f"the edits of this turn were judged, and {went}\n{judged.text}")
    return "\n".join(lines)


async def _judge_turn(session: Session) -> ActionOutcome | None:
    """Run the tests on the edits of this turn, or on a refactoring; None: there was nothing to judge."""
    state = session.state
    if state.gate_state.mode is Gate.REFACTOR:
        changed = state.best is not None and state.tree != state.best.tree
        return await session.act(ToolCall(name="final", arguments={"message": "the turn is over"})) if changed else None
    return await session.act(ToolCall(name="run_tests", arguments={})) if state.gate_state.turn else None


def _read_state(desk: RepositorySession) -> tuple[RunState, str]:
    try:
        return desk.read_tree()
    except JumarError as why:
        desk.publish_fault(str(why))
        raise


@asynccontextmanager
async def _rejoin(desk: RepositorySession, seen: str = "") -> AsyncIterator[Session]:
    """Yield the newest run again; a failure is published, and nothing is admitted until the next prompt."""
    try:
        async with desk.rejoin(seen) as session:
            yield session
    except JumarError as why:
        desk.publish_fault(str(why))
        raise


def _format_paths(paths: tuple[str, ...]) -> str:
    return f"{', '.join(paths[:20])} went back to what it was, byte for byte"


def _describe_put_back(told: ActionOutcome) -> str:
    return adapt_to_shell(f"{', '.join(told.reverted)} went back to what it was, byte for byte: {told.why}")[:LONGEST]


if __name__ == "__main__":
    main()
