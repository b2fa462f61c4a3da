"""Says how many tests of a verdict are excused: skipped, or expected to fail, on the untouched files as well.

They count as a pass, and nothing was tested by them.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.state.verdict import Outcome

ENVIRONMENT = "tests run in an environment of their own, and [task] env gives them variables"
"""Most tests that run for a person and are skipped here miss a variable."""


def format_passed(passed: int, total: int, excused: Mapping[str, int]) -> str:
    """Return `3 of 5 passed, 2 skipped`; *passed* counts those that are *excused*, by outcome, as a verdict does."""
    counts = "".join(f", {count} {outcome}" for outcome, count in excused.items())
    return f"{passed - sum(excused.values())} of {total} passed{counts}"


def explain_untested(excused: Mapping[str, int], total: int) -> str:
    """Return why nothing was tested, if all of *total* tests are *excused*; empty: at least one of them judges."""
    if not 0 < total == sum(excused.values()):
        return ""
    some = f"all {total} tests are" if total > 1 else "the only test is"
    words = dict.fromkeys("skipped" if outcome == Outcome.SKIPPED else "expected to fail" for outcome in excused)
    return f"{some} {' or '.join(words)}, so nothing was tested{_explain_skips(excused)}"


def list_notes(excused: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the note on tests that are skipped, if some of *total* are, and not all are *excused*; else none."""
    skipped = excused.get(Outcome.SKIPPED, 0)
    if not skipped or sum(excused.values()) >= total:
        return ()
    are, them = ("is", "it") if skipped == 1 else ("are", "them")
    return (f"{skipped} of {total} tests {are} skipped, so nothing was tested by {them}{_explain_skips(excused)}",)


def list_passed_over(files: Mapping[str, str]) -> list[str]:
    """Return a sentence on each of *files* that skips all of its tests while they are collected, with its reason."""
    return [
        f"{path} skips all of its tests, which judge nothing: {why or 'no reason given'}" for path, why in files.items()
    ]


def _explain_skips(excused: Mapping[str, int]) -> str:
    return f"; {ENVIRONMENT}" if Outcome.SKIPPED in excused else ""
