"""Requests of an agent to its own run, over loopback: a claim, or an escalation. Each is one action of the gate."""

from __future__ import annotations

import json

import msgspec

from jumar.core.gate.admission import Action, adapt_to_shell
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.models.metered_forward import ForwardedReply
from jumar.models.wire.request_formats import ForwardRefusal


class ClaimRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /TOKEN/claim`."""

    test_id: str
    edit_target: str


class EscalateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /TOKEN/escalate`."""

    test_id: str
    reason: str


Wish = ClaimRequest | EscalateRequest

KINDS: dict[str, type[Wish]] = {"claim": ClaimRequest, "escalate": EscalateRequest}
"""Last part of the path of a request -> its body."""

ACTIONS: dict[type[Wish], str] = {ClaimRequest: "edit_claim", EscalateRequest: "escalate"}


def parse(kind: str, body: bytes) -> Wish | ForwardRefusal:
    """Return the request of a *kind* in *body*, or why the body is not one."""
    shape = KINDS[kind]
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeError) as error:
        fields = ", ".join(f'"{name}": "..."' for name in shape.__struct_fields__)
        return ForwardRefusal(400, f"the body of /{kind} is {{{fields}}}: {error}")


def build_action(wish: Wish) -> Action:
    """Return the action that *wish* asks for."""
    return Action(ACTIONS[type(wish)], args=msgspec.structs.asdict(wish))


def build_answer(wish: Wish, state: RunState) -> ForwardedReply:
    """Return the outcome of *wish*, the newest of its kind, and the changes found outside the tools with it."""
    said: list[str] = []
    cell, admitted, name = state.conversation, False, ACTIONS[type(wish)]
    while cell is not None and not (isinstance(cell.event, ev.ActionTaken) and cell.event.name == name):
        cell = cell.rest
    if cell is not None and isinstance(taken := cell.event, ev.ActionTaken):
        admitted = taken.admitted
        said.append(_describe_wish(wish) if admitted else f"refused: {taken.reason}")
    before = cell.rest.event if cell is not None and cell.rest is not None else None
    if isinstance(before, ev.Revert) and before.found:
        said.append(f"put back: {before.why}")
    body = {"admitted": admitted, "text": adapt_to_shell("; ".join(said))}
    return ForwardedReply(200, {"content-type": "application/json"}, json.dumps(body).encode())


def _describe_wish(wish: Wish) -> str:
    if isinstance(wish, ClaimRequest):
        return f"claimed: {wish.edit_target}"
    return f"escalated: {wish.test_id}; the run ends with this, and a person decides"
