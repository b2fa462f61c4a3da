"""Base class of all events: decoding."""

from __future__ import annotations

import msgspec


class EventBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """Base class of all events: they are decoded strictly, by their type.

    They hold what was read from JSON, which has no cycles: the garbage collector need not look at them.
    """
