"""Time that a search reserves for the verification of its finds. Pure."""

from __future__ import annotations

from jumar.core.state.run_state import Judged, RunState
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome

SEARCHING = 0.5
"""The share of the remaining time that a search has at least, however long a verification takes."""


def estimate_run_seconds(judged: Judged, suite: Suite) -> float:
    """Return the time that one green run of the tests takes, measured from *judged*.

    Tests that hung will not hang then.
    """
    measured = judged.tests.duration_ms / 1000 / max(1, judged.tests.executions)
    hung = sum(run.outcome is Outcome.TIMEOUT for run in judged.runs.values())
    return max(0.0, measured - hung * suite.test_timeout_seconds)


def count_acceptance_runs(confirm: int) -> int:
    """Return how many runs of the tests the verification of a green takes at most.

    The first, those in two processes, the rounds of a challenge, and two of the untouched tree.
    """
    return 2 * max(confirm, 2) + 3 if confirm else 1


def compute_search_seconds(left: float, state: RunState) -> float:
    """Return the part of the *left* seconds for a search, so that its find can still be verified."""
    held = state.run_seconds * count_acceptance_runs(state.run.settings.suite.confirm)
    return max(left - held, left * SEARCHING)
