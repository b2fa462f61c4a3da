"""Working directory and environment of the product's process, which those of the tests may follow."""

from __future__ import annotations

import os
from typing import Any


class ToldSurroundings:
    """Working directory and environment of the product's process, which those of the tests may follow.

    *room* is the folder for which theirs stands.
    """

    def __init__(self, room: str) -> None:
        self._room = room
        self.settle()

    def settle(self) -> None:
        """Note that the tests know how it is now."""
        self._place, self._raw, self._environ = find_place(), dict(_get_raw_environ()), dict(os.environ)

    def find_changes(self) -> list[Any] | None:
        """Return the directory, in the room or whole, and the variables that are others than before; None: no changes.

        What was removed is None.
        """
        if (find_place(), _get_raw_environ()) == (self._place, self._raw):
            return None
        before = self._environ
        self.settle()
        changed = {name: self._environ.get(name) for name in {*before, *self._environ}}
        inside = f"{self._place}/".startswith(f"{self._room}/")
        return [
            os.path.relpath(self._place, self._room) if inside else self._place,
            {name: value for name, value in changed.items() if value != before.get(name)},
        ]


def find_place() -> str:
    """Return the working directory; empty: it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109  asked with each message
    except OSError:
        return ""


def _get_raw_environ() -> Any:
    return getattr(os.environ, "_data", os.environ)  # the same comparison, without decoding all of it each time
