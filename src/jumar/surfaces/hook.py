"""The part of the hooks that compares trees and runs tests: one event of a host in, one answer out, or a refusal."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from jumar.core.claims import red_ids
from jumar.core.reply import ToolCall
from jumar.core.run import Phase, RunState
from jumar.core.turn import named
from jumar.errors import JumarError
from jumar.harness.session import Session, Told
from jumar.surfaces.environment import environment
from jumar.surfaces.hook_disk import STATE, Refused
from jumar.surfaces.hook_rule import EVENTS, FAILED, POST, PRE, PROMPT, STOP, Answer, edited, read, refusal
from jumar.surfaces.hook_session import Desk

LOOK = ToolCall(name="look", arguments={})

LONGEST = 8_000
"""Characters of an answer: hosts cut longer ones off."""

RECENT_SECONDS = 900.0
"""For so long after its last sign of life another conversation counts as at work."""

OVER = "the run here has ended, and nothing can be judged until the next prompt: "


def main() -> None:
    """Answer the event named in the first argument, of the repository in the second."""
    event, root = sys.argv[1:3]
    answer = ruled(event, sys.stdin.buffer.read(), Path(root), environment())
    if answer is not None:
        sys.stdout.write(json.dumps(answer))


def ruled(event: str, raw: bytes, root: Path, environ: Mapping[str, str]) -> Answer:
    """As `answered`, where a refusal is an answer, too."""
    try:
        return anyio.run(answered, event, raw, root, environ)
    except (JumarError, Refused, OSError) as why:
        return refusal(event, str(why), raw)


async def answered(event: str, raw: bytes, root: Path, environ: Mapping[str, str]) -> Answer:
    """The answer to *event*, sent as *raw*, about the repository *root*; None: go on.

    Raises:
        Refused: if the event is malformed.
        BadInput: if there is no session, or it is damaged.
        Infra: if the machine failed.
    """
    payload, desk = read(event, raw), Desk(root, environ)
    name = str(payload["session_id"])
    with desk.locked():
        match event:
            case _ if event == PROMPT:
                return await _prompted(desk, name)
            case _ if event == PRE:
                return _new_file(desk, payload, str(root))
            case _ if event in (POST, FAILED):
                return await _looked(desk, event, name)
            case _ if event == STOP:
                return await _stopped(desk, name, once=payload.get("stop_hook_active") is not True)
    raise Refused(f"{event} needs no full rule; it is one of {', '.join(EVENTS)}")


async def _prompted(desk: Desk, name: str) -> Answer:
    """A person sent a prompt: go on with the run where the folder is as it left it, else begin one."""
    before = desk.state()
    others = before is not None and before.turn and before.session not in ("", name)
    if others and time.time() - (desk.folder / STATE).stat().st_mtime < RECENT_SECONDS:
        return {"systemMessage": "jumar: another conversation is at work here; its run goes on, and judges both"}
    if before is not None and not before.fault and desk.untouched():
        desk.again(name, turn=True)
        return None
    try:
        async with desk.begun() as session:
            desk.publish(session, name, turn=True)
            told = _standing(session)
    except JumarError as why:
        desk.fault(str(why))
        return {"systemMessage": f"jumar: edits are blocked, there is no session: {why}"}
    return {"hookSpecificOutput": {"hookEventName": PROMPT, "additionalContext": told}}


def _standing(session: Session) -> str:
    state = session.state
    red = red_ids(state.book.newest)
    return f"jumar: {len(state.expected)} tests; red is {named(red)}" if red else (
        f"jumar: {len(state.expected)} tests, none red: an edit of code needs a failing test first"
    )  # fmt: skip


def _new_file(desk: Desk, payload: dict[str, object], root: str) -> Answer:
    """An edit that the quick look could not rule on: mostly of a file that is not there yet."""
    tool, given = str(payload["tool_name"]), payload["tool_input"]
    path = edited(tool, given if isinstance(given, dict) else {}, root)
    why = desk.refuses(path)
    return refusal(PRE, in_the_shell(why)) if why else None


async def _looked(desk: Desk, event: str, name: str) -> Answer:
    """A tool has run: what it changed without a claim goes back."""
    state, seen = _seen(desk)
    if state.phase is Phase.ENDED:
        changed = desk.closed(state, seen)
        return refusal(event, OVER + _named(changed)) if changed else None
    if seen == state.tree and desk.current():
        return None
    async with _session(desk) as session:
        told = await session.act(LOOK)
        desk.publish(session, name, turn=True)
    desk.save(seen, told.reverted)
    return refusal(event, _put_back(told)) if told.reverted else None


async def _stopped(desk: Desk, name: str, *, once: bool) -> Answer:
    """The host is about to stop: the edits of the turn are judged together, and what is not green goes back."""
    state, seen = _seen(desk)
    if state.phase is Phase.ENDED:
        changed = desk.closed(state, seen)
        desk.again(name, turn=False)
        return {"systemMessage": f"jumar: {OVER}{_named(changed)}"} if changed else None
    async with _session(desk) as session:
        looked, judged = await session.act(LOOK), None
        if session.state.book.turn:
            judged = await session.act(ToolCall(name="run_tests", arguments={}))
        desk.publish(session, name, turn=False)
    desk.save(seen, looked.reverted)
    lines = [_put_back(looked)] if looked.reverted else []
    if judged is not None and (judged.reverted or not judged.admitted):
        went = f"{', '.join(judged.reverted)} went back: {judged.why}" if judged.reverted else judged.reason
        lines.append(f"the edits of this turn were judged, and {went}\n{judged.text}")
    if not lines:
        return None
    why = in_the_shell("\n".join(lines))[:LONGEST]
    return {"decision": "block", "reason": f"jumar: {why}"} if once else {"systemMessage": f"jumar: {why}"}


def _seen(desk: Desk) -> tuple[RunState, str]:
    try:
        return desk.seen()
    except JumarError as why:
        desk.fault(str(why))
        raise


@asynccontextmanager
async def _session(desk: Desk) -> AsyncIterator[Session]:
    """The newest run again; what breaks it is published, so that nothing is let through until the next prompt."""
    try:
        async with desk.gone_on() as session:
            yield session
    except JumarError as why:
        desk.fault(str(why))
        raise


def _named(paths: tuple[str, ...]) -> str:
    return f"{', '.join(paths[:20])} went back to what it was, byte for byte"


def _put_back(told: Told) -> str:
    return in_the_shell(f"{', '.join(told.reverted)} went back to what it was, byte for byte: {told.why}")[:LONGEST]


def in_the_shell(text: str) -> str:
    """*text* of the gate, for an agent that claims in its shell and has no tools of ours."""
    text = re.sub(r"(?:call )?edit_claim\(test_id, '([^']*)'\)", r"run `jumar claim TEST_ID \1` in the shell", text)
    return text.replace("edit_claim(test_id, edit_target)", "`jumar claim TEST_ID FILE` in the shell")


if __name__ == "__main__":
    main()
