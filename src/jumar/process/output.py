"""Reads the output of a process as data: capped, its middle left out, and without terminal control codes."""

from __future__ import annotations

import os
import re
from pathlib import Path

OUTPUT_BYTES = 1 << 20
"""Bytes kept of the output, half of it from the start and half from the end."""

OMITTED = "\n[jumar: the middle of the output is left out here]\n"

_CONTROL = re.compile(
    r"""\x1b\][^\x07\x1b\n]*+(?:\x07|\x1b\\)            # a title, a link, the clipboard
      | \x1b[PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)        # other strings for a terminal
      | (?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]              # colours, cursor
      | \x1b[ -/]*+[0-~]                                # the rest of what begins with an escape
      | [\x00-\x08\x0b-\x1f\x7f-\x9f]                   # what no text holds""",
    re.VERBOSE,
)


def strip_terminal_codes(text: str) -> str:
    """Return *text* without terminal control codes; a carriage return ends a line."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def read_output(path: Path) -> str:
    """Return the content of the file at *path*, its middle left out if it is long."""
    half = OUTPUT_BYTES // 2
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if size <= OUTPUT_BYTES:
            return strip_terminal_codes(stream.read(OUTPUT_BYTES).decode("utf-8", "replace"))
        head = stream.read(half)
        stream.seek(size - half)
        tail = stream.read(half)
    return OMITTED.join(strip_terminal_codes(part.decode("utf-8", "replace")) for part in (head, tail))
