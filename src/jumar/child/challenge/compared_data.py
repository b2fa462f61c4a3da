"""Sums up the data that tests compare: the same data comes to the same number in another process, too.

An object that is no data is taken for any other one, and nothing of it is called: where the code under test has a
process of its own, something else stands in its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

WHOLE, KIND = " whole ", " is "
"""Marks, in a report, of a sum of data, and of a kind of it."""

MOST, DEEPEST = 10_000, 100
"""Parts of a value that are looked at, and how deep."""

BITS = 48

ELSEWHERE = re.compile(r"(?<= at )0x[0-9a-fA-F]+|(?:/[^\s/'\",:;]+)+(?=/)")
"""Addresses and folders in a text: they differ from process to process."""

TEXTS = (str, bytes, bytearray)
READ: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, str.__str__), (bytes, bytes.__repr__), (bytearray, bytearray.__repr__),
    (int, lambda value: int.__format__(value, "x")),  # a decimal one has a limit of digits
    (float, float.__repr__), (complex, complex.__repr__),
)  # fmt: skip
"""Types of data, each with a method of its own that reads its objects, and those of its subclasses."""

LISTED, UNORDERED = (list, tuple), (set, frozenset)


class DataSum(NamedTuple):
    """Sum of what was compared in one place, in whatever order that came."""

    whole: int = 0
    """Sum of the data."""
    kinds: frozenset[str] = frozenset()
    """Words for what it was, and whether there was anything in it."""
    parts: int = 0
    """Parts of it that were looked at."""

    def add(self, value: Any) -> DataSum:
        """Return the sum with *value*."""
        reader = _DataReader()
        whole = (self.whole + _hash(reader.read(value))) % (1 << BITS)
        return DataSum(whole, self.kinds | {_name_kind(value)}, self.parts + MOST - reader.left)


class _DataReader:
    """Reader of one value."""

    def __init__(self) -> None:
        self.left = MOST

    def read(self, value: Any, depth: int = 0) -> str:
        """Return *value* as a text that does not depend on chance, as far as it is data."""
        self.left -= 1
        kind = type(value)
        if self.left <= 0 or depth > DEEPEST:
            return "..."
        if kind in LISTED:
            return f"({','.join([self.read(item, depth + 1) for item in value])})"
        if kind in UNORDERED:
            return f"{{{','.join(sorted([self.read(item, depth + 1) for item in (*value,)]))}}}"
        if kind is dict:
            # Another thread may fill it just now.
            pairs = [f"{self.read(name, depth + 1)}: {self.read(held, depth + 1)}" for name, held in [*value.items()]]
            return f"{{{','.join(sorted(pairs))}}}"
        for base, read in READ:
            if issubclass(kind, base):
                text = read(value)
                return f"{base.__name__} {ELSEWHERE.sub('', text) if '/' in text or ' at 0x' in text else text}"
        return _name_kind(value)


def _name_kind(value: Any) -> str:
    """Return what *value* is and whether there is anything in it, as a word that says no more."""
    kind = type(value)
    if value is None or value is ...:
        return repr(value)
    if kind is dict or kind in LISTED or kind in UNORDERED:
        return "some" if value else "none"
    if issubclass(kind, TEXTS):
        return "text" if next(base for base in TEXTS if issubclass(kind, base)).__len__(value) else "no text"
    return "number" if issubclass(kind, (int, float, complex)) else "object"


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=BITS // 8).digest()
    return int.from_bytes(digest, "big")
