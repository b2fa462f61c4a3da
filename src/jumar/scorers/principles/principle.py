"""A principle by which code is judged: its description, and an example of each mark."""

from __future__ import annotations

from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1)]

MARKS = (0, 1, 2)
"""Marks that a judge may give."""

BEST = 2


class Principle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One principle, `[[principle]]`: code does not follow it (0), follows it in part (1) or wholly (2)."""

    name: Text
    description: Text
    zero: Text
    """Calibration example: code whose mark is 0. So are the next two, for 1 and 2."""
    one: Text
    two: Text

    @property
    def examples(self) -> tuple[tuple[int, str], ...]:
        """Return each mark with its example."""
        return ((0, self.zero), (1, self.one), (2, self.two))
