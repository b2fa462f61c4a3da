"""Reads the changes of a run, cut to fit on a page."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import msgspec

from jumar.core.quoting import CONTROL
from jumar.runs.archive.changes import read_patch_text

LINES = 300
"""Lines of one change that are shown."""

CHARACTERS = 200_000
"""Characters of one change that are shown."""

KINDS = {"+": "added", "-": "removed", "@": "hunk"}


class ChangePart(msgspec.Struct, frozen=True):
    """Lines of a change that follow each other and are of one kind."""

    kind: str
    """`added`, `removed`, `hunk`, `file` or `same`."""
    text: str


class Change(msgspec.Struct, frozen=True):
    """Change of a run."""

    parts: tuple[ChangePart, ...]
    left_out: bool
    """True if it has more lines than are shown."""

    @property
    def size(self) -> int:
        """Return the number of characters."""
        return sum(len(part.text) for part in self.parts)


def read_change(folder: Path) -> Change | None:
    """Return the final change of the run in *folder*, as `jumar diff` shows it; None: there is none.

    It is made of the run's objects, which the journal names: nothing vouches for its `best.patch`.

    Raises:
        BadInput: if its objects are not there, or git is not.
        Infra: if an object is missing or damaged.
    """
    text = read_patch_text(folder)
    lines = text[:CHARACTERS].removesuffix("\n").split("\n")
    if not text:
        return None
    parts = tuple(
        ChangePart(kind, show_controls("\n".join(group)) + "\n")
        for kind, group in groupby(lines[:LINES], key=_get_kind)
    )
    return Change(parts, len(lines) > LINES or len(text) > CHARACTERS)


def _get_kind(line: str) -> str:
    if line.startswith(("diff --git ", "index ", "--- ", "+++ ", "new file", "deleted file")):
        return "file"
    return KINDS.get(line[:1], "same")


def show_controls(text: str) -> str:
    """Return *text* with every control character escaped: characters that reorder text must be visible."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
