"""Reply of a model. Replies are kept whole in the journal: the conversation is rebuilt from them."""

from __future__ import annotations

import msgspec


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of a reply."""

    name: str
    arguments: dict[str, object] = {}
    id: str = ""


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reply of a model."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    opaque: dict[str, object] = {}
    """Provider parts that are handed back untouched; the repair model puts its counters here."""
    cut: bool = False
    """True if the reply ends at the token limit: it may be truncated even if it looks complete."""
