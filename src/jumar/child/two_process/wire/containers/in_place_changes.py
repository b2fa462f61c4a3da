"""Makes changes of the product in what the tests hold: a test that passes with them and without depends on neither."""

from __future__ import annotations

from typing import Any

from jumar.child.two_process.wire.containers.held_changes import HeldChanges
from jumar.child.two_process.wire.containers.shared_container import FIELDS


class InPlaceChanges(HeldChanges):
    """Makes all changes of the product in what the tests hold, as if both were in one process."""

    def _keep(self, number: int, items: list[Any]) -> list[Any] | None:  # noqa: ARG002  the other way needs it
        return items

    def note_filled(self, entry: Any) -> None:
        """Take over the data of an object, too."""
        super().note_filled(entry)
        if entry.kind == FIELDS and entry.thing.keep():
            self._values.note_content(self._values.numbers[id(entry.thing)], entry, entry.get_content())
