"""Detects a stalled run: the same action, without any news, three times in six.

Of an agent of somebody else's, turns are counted.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import msgspec

from jumar.core.gate.admission import WRITES
from jumar.core.state.events import ActionTaken
from jumar.core.state.run_state import EXTERNAL

WINDOW, REPEATS = 6, 3


def build_mark(action: ActionTaken, news: str) -> str:
    """Build the mark of an *action*: equal marks mean that the same was asked and nothing new came of it.

    *news* changes with the tree and with every proposal that was not made before.

    Looking again after an edit is not looking twice, also where the edit was taken back or refused; writing the same
    file again is, whatever lies between.
    """
    where = "" if action.name in WRITES else news
    return sha256(msgspec.json.encode((action.name, action.args, where), order="deterministic")).hexdigest()[:16]


def append_mark(recent: tuple[str, ...], newest: str) -> tuple[str, ...]:
    """Return the last marks, *newest* among them."""
    return (*recent, newest)[-WINDOW:]


def is_stalled(recent: tuple[str, ...]) -> bool:
    """Return whether one mark stands among *recent* too often."""
    return any(count >= REPEATS for count in Counter(recent).values())


def explain_stall(agent: str, recent: tuple[str, ...]) -> str:
    """Return why a run of *agent*, whose newest marks are *recent*, is stalled; empty: it is not."""
    if not is_stalled(recent):
        return ""
    if agent == EXTERNAL:
        return "three turns in six changed nothing, or came to the same files again"
    return "the same action came three times in six"
