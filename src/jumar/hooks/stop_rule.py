"""Stop rule for a host: a claimed test that is red, or an edit without a verdict, blocks once per state.

A state is the tree, the open claims, the red tests, and who stops. That a stop was blocked stands in the journal, so
that the next stop in the same state goes through; that one is written down, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from jumar.core.state import events as ev
from jumar.core.state.claims import find_red_ids
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate

NAMED = 5
"""Claims that a sentence names."""


class StopRuling(msgspec.Struct, frozen=True):
    """Ruling on a stop of the host: the open work, and whether it blocks."""

    why: str
    """Open work, in one sentence; empty: nothing."""
    blocks: bool
    call: ToolCall | None
    """The action that is written down; None: there is nothing to write."""


def rule(state: RunState, who: str, *, active: bool, news: str = "") -> StopRuling:
    """Rule on a stop of *who* in *state*; *news* says what was just reverted and why.

    *active* is whether the host goes on already because a stop was blocked: then nothing blocks, and it cannot loop.
    """
    open_now = _describe_open(state)
    if not (news or open_now):
        return StopRuling("", blocks=False, call=None)
    digest, why = _compute_digest(state, who), "\n".join(filter(None, (news, open_now)))
    blocks = not active and (bool(news) or digest not in _list_blocked(state))
    arguments: dict[str, object] = {
        "by": who, "state": digest, "red": _list_claimed(state), "unjudged": _list_unjudged(state),
        "why": why if blocks else "",
    }  # fmt: skip
    return StopRuling(why, blocks=blocks, call=ToolCall(name="stop", arguments=arguments))


def _describe_open(state: RunState) -> str:
    """Return the claimed tests that are red and the edits without a verdict, in a sentence each; empty: none."""
    claims = [f"{claim.test_id} (claimed for {claim.path})" for claim in state.gate_state.claims]
    named = ", ".join(claims[:NAMED]) + (f" and {len(claims) - NAMED} more" if len(claims) > NAMED else "")
    verb = "is" if len(claims) == 1 else "are"
    red = (
        f"{named} {verb} still red: edit the file until the test is green, or run `jumar escalate TEST REASON` in the "
        "shell where the test contradicts the task or another test"
    )
    edits = f"edited, and not judged by the tests yet: {', '.join(_list_unjudged(state))}"
    return "\n".join(text for text, there in ((red, claims), (edits, _list_unjudged(state))) if there)


def _list_claimed(state: RunState) -> list[str]:
    """Return the claimed tests that are red: a claim whose test is green is closed."""
    return sorted({claim.test_id for claim in state.gate_state.claims})


def _list_unjudged(state: RunState) -> list[str]:
    """Return the files whose edits have no verdict; a refactoring is named as a whole."""
    if state.gate_state.mode is Gate.REFACTOR:
        return ["the refactoring"] if state.best is not None and state.tree != state.best.tree else []
    return sorted({edit.path for edit in state.gate_state.turn})


def _compute_digest(state: RunState, who: str) -> str:
    claims = sorted((claim.test_id, claim.path) for claim in state.gate_state.claims)
    seen = [who, state.tree, claims, sorted(find_red_ids(state.gate_state.newest)), _list_unjudged(state)]
    return sha256(json.dumps(seen).encode()).hexdigest()[:16]


def _list_blocked(state: RunState) -> set[object]:
    """Return the states in which a stop was blocked in this run."""
    found, cell = set[object](), state.conversation
    while cell is not None:
        event, cell = cell.event, cell.rest
        if isinstance(event, ev.ActionTaken) and event.name == "stop" and not event.admitted:
            found.add(event.args.get("state"))
    return found


def find_stopper(event: str, payload: Mapping[str, object]) -> str:
    """Return the name of the conversation, or of the subagent in it, that stops."""
    return f"{event} {payload.get('agent_id', '')}".strip()
