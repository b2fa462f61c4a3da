"""What a model answered. Replies are kept whole in the journal: the conversation is rebuilt from them."""

from __future__ import annotations

import msgspec


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of a reply."""

    name: str
    arguments: dict[str, object] = {}
    id: str = ""


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answered."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    opaque: dict[str, object] = {}
    """Provider parts that are handed back untouched; the repair model puts its counters here."""
    cut: bool = False
    """Whether it ends where the tokens it may have ended: what looks whole may be a part."""
