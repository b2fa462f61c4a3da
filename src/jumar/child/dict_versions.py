"""Tells which dictionaries have not been written to since they were last looked at, without touching what they hold.

CPython gives each dictionary a number that changes with every change of it (PEP 509). To read the numbers of two
thousand dictionaries takes less than a millisecond; to look at their values takes ten, and in a process that was
forked as long again, because a reference that is only counted is a page that has to be copied.
An interpreter without such numbers says that everything may have changed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

try:
    # Beneath `ctypes`, which is not imported here: code under test may look whether it imports that itself.
    from _ctypes import _SimpleCData
except ImportError:  # an interpreter without it
    Number: Any = None
else:

    class Number(_SimpleCData):  # type: ignore[type-arg,no-redef]  # takes none before Python 3.9
        """A number of 64 bits somewhere in memory."""

        _type_ = "Q"


_READ = attrgetter("value")

OFFSET = 3 * 8
"""Bytes before the number: the reference count, the type and the number of entries."""


class DictVersions:
    """The versions of some dictionaries, given as such or as read-only views of them."""

    def __init__(self) -> None:
        self._kept: list[object] = []
        self._numbers: list[Any] = []

    def add(self, mappings: Sequence[Any]) -> list[int] | None:
        """Watch more dictionaries; return their versions, or None."""
        if not HAVE:
            return None
        kept = [one if type(one) is dict else gc.get_referents(one)[0] for one in mappings]
        numbers = [Number.from_address(id(one) + OFFSET) for one in kept]
        self._kept += kept
        self._numbers += numbers
        return [number.value for number in numbers]

    def read(self) -> list[int] | None:
        """Return the versions, which are the same as long as nothing is written; None where there are none."""
        return list(map(_READ, self._numbers)) if HAVE else None


def _has_versions() -> bool:
    """Return whether this interpreter numbers dictionaries as expected: tried with a class's and a module's."""
    if Number is None or sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return False

    class Sample:
        first = None

    module = type(sys)("sample")
    for target, names in ((Sample, vars(Sample)), (module, vars(module))):
        table = names if type(names) is dict else gc.get_referents(names)[0]
        if type(table) is not dict:
            return False
        number, seen = Number.from_address(id(table) + OFFSET), set()
        for value in range(3):
            before = number.value
            if number.value != before or before in seen:
                return False
            seen.add(before)
            setattr(target, "first", value)  # noqa: B010  as code under test would
            if number.value == before:
                return False
    return True


HAVE = _has_versions()
