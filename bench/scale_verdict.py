"""A verdict as large as that of a small suite, for `bench/scale_measure.py` and `bench/scale_services.py`."""

from __future__ import annotations

from jumar.core.state.verdict import Ended, Outcome, TestResult, Verdict
from jumar.ports import Verification

IDS = 30
"""Tests in it."""


def make_verification() -> Verification:
    """Return the verdict that all tests passed."""
    ids = [f"tests/test_it.py::test_{number}" for number in range(IDS)]
    return Verification(
        verdict=Verdict({name: TestResult(name, Outcome.PASSED) for name in ids}, frozenset(ids)),
        ended=Ended.NORMAL, executions=1, duration_ms=9, output="001.txt", grade="D", natives={},
    )  # fmt: skip
