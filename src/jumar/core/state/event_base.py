"""The base of all events: how they are decoded."""

from __future__ import annotations

import msgspec


class EventBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Base class of all events: they are decoded strictly, by their type."""
