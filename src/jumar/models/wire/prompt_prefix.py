"""Detects a prompt that continues the one before it, so that only its new messages are read."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from jumar.core.run.strategy import Message


def is_continuation(before: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Return whether *messages* begin with all of *before*, by identity.

    Messages that are equal are not believed to be the same: `1` and `True` are equal and are sent differently.
    """
    return before is messages or (len(before) <= len(messages) and all(map(is_, before, messages)))
