"""Shows changes of containers at once: the side of the product, and what the side of the tests does otherwise."""

from __future__ import annotations

from typing import Any


class ShownChanges:
    """Shows each change of the other side at once, as the product's process does."""

    def ignore(self, *_: Any, **__: Any) -> None:
        """Do nothing: only `held_changes.HeldChanges` has to know what was handed over, changed or dropped."""

    begin_test = end_call = note_shared = note_dropped = note_handed = note_method = ignore
    note_beside = note_own = note_filled = forget = ignore

    def apply(self, number: int, entry: Any, items: list[Any]) -> list[Any] | None:  # noqa: ARG002  one of the kinds needs them
        """Return what the container *number* is to hold now of *items*; None: they are kept for when it crosses."""
        return items

    def open(self, thing: Any) -> Any:
        """Return *thing*, a container that crosses again, as the other side has it."""
        return thing
