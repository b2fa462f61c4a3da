"""Removes the workspace of an ended run if it is large and shares no blocks: its bytes are in the objects."""

from __future__ import annotations

from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.process.room import discard
from jumar.runs.setup.assembly import RunPlace

KEPT_BYTES = 16 << 20
"""A workspace that weighed no more at first stays where it is."""


def leave_workspace(place: RunPlace, state: RunState) -> None:
    """Remove the workspace of the run that ended in *state*, if it costs much and can be laid out again."""
    settings, stop = state.run.settings, state.end.stop if state.end else None
    costly = settings.tree_bytes > KEPT_BYTES and not place.store.clones
    if costly and not settings.in_place and stop is not None and stop is not StopReason.INTERRUPTED:
        discard(place.folder / "workspace")
