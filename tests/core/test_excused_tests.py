"""Excused tests in words: how many were skipped, and that nothing was tested where all were."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jumar.core.gate.excused_tests import ENVIRONMENT, explain_untested, format_passed, list_notes


@pytest.mark.parametrize(
    ("excused", "total", "counts", "untested", "note"),
    [
        ({}, 0, "0 of 0 passed", "", ""),
        ({}, 5, "5 of 5 passed", "", ""),
        ({"skipped": 2}, 5, "3 of 5 passed, 2 skipped", "", "2 of 5 tests are skipped, so nothing was tested by them"),
        ({"skipped": 1}, 2, "1 of 2 passed, 1 skipped", "", "1 of 2 tests is skipped, so nothing was tested by it"),
        ({"skipped": 1}, 1, "0 of 1 passed, 1 skipped", "the only test is skipped, so nothing was tested", ""),
        ({"skipped": 3}, 3, "0 of 3 passed, 3 skipped", "all 3 tests are skipped, so nothing was tested", ""),
        (
            {"skipped": 1, "xfailed": 1},
            2,
            "0 of 2 passed, 1 skipped, 1 xfailed",
            "all 2 tests are skipped or expected to fail, so nothing was tested",
            "",
        ),
        ({"xfailed": 1}, 2, "1 of 2 passed, 1 xfailed", "", ""),
    ],
)
def test_what_is_skipped_is_said_and_never_counted_as_tested(
    excused: Mapping[str, int], total: int, counts: str, untested: str, note: str
) -> None:
    assert format_passed(total, total, excused) == counts
    assert explain_untested(excused, total) == (f"{untested}; {ENVIRONMENT}" if untested else "")
    assert list_notes(excused, total) == ((f"{note}; {ENVIRONMENT}",) if note else ())


def test_an_expected_failure_misses_no_variable() -> None:
    assert explain_untested({"xfailed": 2}, 2) == "all 2 tests are expected to fail, so nothing was tested"
