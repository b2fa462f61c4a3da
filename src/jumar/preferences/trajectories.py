"""Checks that a conversation is the assistant's own: each reply as it said it, up to an end that it chose itself.

A trainer learns every message of an assistant. What jumar puts in the place of a reply that is none, and a conversation
that jumar cuts short, are no words of it.
"""

from __future__ import annotations

from jumar.core.run.retry import UNUSABLE
from jumar.core.state import events as ev
from jumar.core.state.reply import Reply
from jumar.core.state.run_state import RunState
from jumar.models.wire.jsonl import is_exhausted_reply
from jumar.models.wire.messages import MALFORMED

NO_ACTION = "none"
"""Name of the action of a reply, or of a part of one, that calls no tool there is."""


def ends_by_itself(state: RunState) -> bool:
    """Return whether the conversation of the run in *state* ends with an admitted `final` of the assistant's own.

    The stop reason does not tell: a run that stalls or uses up a cap is green where the verification at its end is. One
    whose script or recording is used up is ended by a `final` that jumar makes.
    """
    taken = [event for event in state.history if isinstance(event, ev.ActionTaken)]
    replies = _list_replies(state)
    if not taken or not replies or is_exhausted_reply(replies[-1].reply):
        return False
    return taken[-1].name == "final" and taken[-1].admitted


def has_only_usable_replies(state: RunState) -> bool:
    """Return whether each reply of the run in *state* is whole, and calls nothing but tools that there are.

    Not so where a provider refused to give one, where it is empty, cut off at its greatest length or without a call,
    and where arguments are no JSON object: what stands for such a reply in the conversation is partly jumar's.
    """
    if any(event.error or _is_broken(event.reply) for event in _list_replies(state)):
        return False
    return not any(isinstance(event, ev.ActionTaken) and event.name == NO_ACTION for event in state.history)


def _list_replies(state: RunState) -> list[ev.ModelCall]:
    """Return the calls whose replies stand in the conversation."""
    calls = (event for event in state.history if isinstance(event, ev.ModelCall))
    return [call for call in calls if not call.error or call.error in UNUSABLE]


def _is_broken(reply: Reply) -> bool:
    """Return whether *reply* is cut off or empty, or has a call whose arguments are no JSON object."""
    empty = not reply.tool_calls and not reply.content.strip()
    return reply.cut or empty or any(MALFORMED in call.arguments for call in reply.tool_calls)
