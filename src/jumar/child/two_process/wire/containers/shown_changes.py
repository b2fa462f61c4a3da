"""Shows changes of containers at once: the side of the product, and what the side of the tests does otherwise."""

from __future__ import annotations

from typing import Any


class ShownChanges:
    """Shows each change of the other side at once, as the product's process does."""

    def begin_test(self) -> None:
        """Forget what only one test has seen."""

    def end_call(self) -> None:
        """Note that a call of the other side has ended, which was not within another one."""

    def note_shared(self, number: int, entry: Any, held: list[Any]) -> None:
        """Note that the container of *entry*, with what it *held*, is shared under *number* from now on."""

    def note_dropped(self, number: int) -> None:
        """Note that the other side does not refer to the container with *number* any more."""

    def note_handed(self, number: int) -> None:
        """Note that this side hands over the container with *number*."""

    def note_method(self, number: int, known: bool, *, reads: bool) -> None:  # noqa: FBT001  facts
        """Note that a method of the container with *number*, if it is of one, is called next; or one that *reads*."""

    def note_beside(self) -> None:
        """Note that this side hands over data that is not shared."""

    def note_own(self, number: int) -> None:
        """Note that this side changed the container with *number*: the other gets what it holds here."""

    def note_filled(self, entry: Any) -> None:
        """Note that the container of *entry* has what the other side has, as far as it takes that over."""

    def forget(self, number: int) -> None:
        """Forget the container with *number*: it is not shared any more."""

    def apply(self, number: int, entry: Any, items: list[Any]) -> list[Any] | None:  # noqa: ARG002  one of the kinds needs them
        """Return what the container *number* is to hold now of *items*; None: they are kept for when it crosses."""
        return items

    def open(self, thing: Any) -> Any:
        """Return *thing*, a container that crosses again, as the other side has it."""
        return thing
