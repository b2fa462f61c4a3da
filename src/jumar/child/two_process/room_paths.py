"""Finds texts of the product that name a file of the tests: a test that opened it would read what it expects.

It does not matter who opens it. Loaded by path inside the tested interpreter; standard library only, Python 3.8 or
newer.
"""

from __future__ import annotations

import fnmatch
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumar.child.two_process.capabilities import Capabilities

LONGEST = 4096
"""Characters of the longest path."""

WILD = re.compile(r"[*?\[]")
"""Characters that make a pattern of a path."""


class RoomPaths:
    """Paths of the tests' room. The product may name those alone that the tests handed out."""

    def __init__(self, room: str, capabilities: Capabilities, fault: Callable[[str], None]) -> None:
        self._room, self._capabilities, self._fault = room, capabilities, fault
        self.named: set[str] = set()
        """Words of the product that are names of folders of the room, too: nobody can tell which was meant."""
        self._places = {
            os.path.join(folder, name)  # noqa: PTH118  compared as text
            for folder, folders, files in os.walk(os.path.realpath(room))
            for name in (*folders, *files)
        }

    def hand_out(self, text: str) -> None:
        """Let the product name what *text* names."""
        named = [path for path in self._list_paths(text) if self._leads_in(path)] if "/" in text else []
        for path in dict.fromkeys((text, *named) if named else ()):
            self._capabilities.hand_out(path)

    def check(self, text: str) -> None:
        """Record a fault if *text*, of the product, leads to a file of the tests that it was not given."""
        if self._capabilities.is_handed_out(text):
            return
        if "/" not in text and len(text) <= LONGEST and "\0" not in text and self._is_there(text):
            self.named.add(text)
        if any(self._leads_in(path) and not self._capabilities.is_handed_out(path) for path in self._list_paths(text)):
            self._fault(f"the product names a file of the tests: {text}")

    def _list_paths(self, text: str) -> Iterator[str]:
        """Yield *text*, and what else somebody may open for it: the path in an address, what a pattern matches."""
        yield text
        if len(text) > LONGEST or "/" not in text:
            return
        plain = unquote(text)
        inside = plain.find(self._room)
        named = [plain[inside:], plain[inside:].partition("#")[0]] if inside >= 0 else []
        yield from (path for path in named if path != text)
        for pattern in (text, *named):
            folder = WILD.split(pattern, maxsplit=1)[0].rpartition("/")[0]
            if folder and len(folder) < len(pattern) - 1 and WILD.search(pattern) and self._is_there(folder):
                whole = os.path.join(self._room, pattern)  # noqa: PTH118  as above
                yield from (place for place in self._places if fnmatch.fnmatchcase(place, whole))

    def _leads_in(self, text: str) -> bool:
        if len(text) > LONGEST or "\0" in text:
            return False
        if "/" not in text:
            return os.path.join(self._room, text) in self._places and "." in text  # noqa: PTH118  as above
        return text.startswith(("/proc/", "/dev/fd/")) or self._is_there(text)

    def _is_there(self, path: str) -> bool:
        here = {self._room, os.getcwd()}  # noqa: PTH109  as above
        return any(os.path.normpath(os.path.join(base, path)) in self._places for base in here)  # noqa: PTH118  as above
