"""Finds the names of functions and classes that stand in a Python file of tests, by its text alone."""

from __future__ import annotations

import re
from collections.abc import Collection

from jumar.core.state.verdict import get_function

_NAME = re.compile(r"\b(?:def|class)\s+(\w+)")


def find_names(source: bytes) -> frozenset[str]:
    """Return the names that *source* defines, wherever they stand."""
    return frozenset(_NAME.findall(source.decode("utf-8", "replace")))


def is_written(test_id: str, names: Collection[str]) -> bool:
    """Return whether the test and its classes are among the *names* of its file; one made by code is not."""
    parts = get_function(test_id).split("::")[1:]
    return bool(parts) and all(part in names for part in parts)
