"""Finds texts of the product that name a file of the tests: a test that opened it would read what it expects.

It does not matter who opens it. Loaded by path inside the tested interpreter; standard library only, Python 3.8 or
newer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumar.child.two_process.capabilities import Capabilities

LONGEST = 4096
"""Characters of the longest path."""


class RoomPaths:
    """Paths of the tests' room. The product may name those alone that the tests handed out."""

    def __init__(self, room: str, capabilities: Capabilities, fault: Callable[[str], None]) -> None:
        self._room, self._capabilities, self._fault = room, capabilities, fault
        self._places = {
            os.path.join(folder, name)  # noqa: PTH118  compared as text
            for folder, folders, files in os.walk(os.path.realpath(room))
            for name in (*folders, *files)
        }

    def hand_out(self, text: str) -> None:
        """Let the product name what *text* names."""
        if "/" in text and self._leads_in(text):
            self._capabilities.hand_out(text)

    def check(self, text: str) -> None:
        """Record a fault if *text*, of the product, leads to a file of the tests that it was not given."""
        if self._leads_in(text) and not self._capabilities.is_handed_out(text):
            self._fault(f"the product names a file of the tests: {text}")

    def _leads_in(self, text: str) -> bool:
        if len(text) > LONGEST or "\0" in text:
            return False
        if "/" not in text:
            return os.path.join(self._room, text) in self._places and "." in text  # noqa: PTH118  as above
        here = {self._room, os.getcwd()}  # noqa: PTH109  as above
        found = (os.path.normpath(os.path.join(base, text)) for base in here)  # noqa: PTH118  as above
        return text.startswith(("/proc/", "/dev/fd/")) or any(place in self._places for place in found)
