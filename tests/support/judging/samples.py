"""Samples of cases: one of each kind is tried each time, and all of them in `make prove`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark.structures import ParameterSet


def sampled(names: Iterable[str], *samples: str) -> list[ParameterSet]:
    """Return all *names*: the *samples* each time, the others in `make prove`."""
    marks = {name: pytest.mark.slow if name in samples else pytest.mark.proof for name in names}
    assert set(samples) <= marks.keys()
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]
