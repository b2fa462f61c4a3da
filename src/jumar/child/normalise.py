"""Normalises the report of a failing test: removes what differs from run to run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

EXCERPT = 4000
"""Characters of a traceback that are reported, head and tail."""


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
        if len(text) > EXCERPT:
            text = text[: EXCERPT // 2] + "\n[...]\n" + text[-EXCERPT // 2 :]
        return text

    return normalise
