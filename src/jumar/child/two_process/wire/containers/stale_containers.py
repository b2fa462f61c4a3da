"""Containers that the product changed on its side alone: to compare them as they are here proves nothing."""

from __future__ import annotations

import collections
import gc
from typing import Any

WALKED = (list, dict, set, tuple, collections.deque)
"""Types of containers that a comparison looks into."""

LEVELS, MOST = 4, 1000
"""Levels of such containers in one another that are looked at, and the most parts of one and containers in all."""


class StaleContainers:
    """Containers that are here what they were before, by identity. They are kept alive until the test is over."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()

    def add(self, thing: Any) -> None:
        """Note that the product changed *thing* on its side, and the tests did not see it."""
        if len(self._known) < MOST:
            self._known[id(thing)] = thing

    def remove(self, thing: Any) -> None:
        """Note that *thing* is the same on both sides again."""
        self._known.pop(id(thing), None)

    def has(self, value: Any) -> bool:
        """Return whether *value* is one of them, or has one in it."""
        parts = [value] if self._known else []
        for _ in range(LEVELS):
            if any(id(part) in self._known for part in parts):
                return True
            parts = gc.get_referents(*(part for part in parts if type(part) in WALKED))[:MOST]
        return False
