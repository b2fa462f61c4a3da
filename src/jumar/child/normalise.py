"""Normalises the report of a failing test: cuts it to size, and removes what differs from run to run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

EXCERPT = 4000
"""Characters of a traceback that are reported, head and tail."""

PRINTED = 1000
"""Characters of what a failing test printed or logged that are reported, for each stream."""


def build_normaliser(room: str, private: str) -> Callable[[str], str]:
    """Return a function that cuts text to size and removes the room, scratch paths and addresses.

    A prompt made from the text is then the same for the same behaviour.
    """
    rooms, scratches = ((path, os.path.realpath(path)) if path else () for path in (room, private))

    def normalise(text: str) -> str:
        for scratch in scratches:
            text = text.replace(scratch, "TMP")
        for place in rooms:
            text = text.replace(place + os.sep, "").replace(place, ".")
        text = re.sub(r"\b0x[0-9a-f]{6,}\b", "0x...", text)
        return shorten(text, EXCERPT)

    return normalise


def shorten(text: str, most: int) -> str:
    """Return *text*, or its two ends with a mark between them: *most* characters of it."""
    return text if len(text) <= most else f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}"
