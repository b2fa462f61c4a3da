"""Stop reasons of a run. Every run ends with exactly one of these, and each has one exit code."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class StopReason(StrEnum):
    """Typed stop reason of a run."""

    GREEN = "green"
    UNPROVED = "unproved"
    """All tests passed, and the evidence is weaker than `--min-grade` asks for."""
    ATTEMPTS = "attempts"
    TURNS = "turns"
    STALLED = "stalled"
    FINAL = "final"
    UNTESTED = "untested"
    """It tested nothing: no test was expected and none was written, or each is skipped, as on the untouched tree."""
    ESCALATED = "escalated"
    BUDGET = "budget"
    GUARDRAIL = "guardrail"
    INFRA = "infra"
    INTERRUPTED = "interrupted"


class Escalation(msgspec.Struct, frozen=True):
    """A test that contradicts the instruction or another test, as the agent says: a person must decide."""

    test_id: str
    reason: str


USAGE_EXIT = 2
"""Exit code of a wrong request: nothing was run."""

EXIT_CODES: dict[StopReason, int] = {
    StopReason.GREEN: 0,
    StopReason.UNPROVED: 1,
    StopReason.ATTEMPTS: 1,
    StopReason.TURNS: 1,
    StopReason.STALLED: 1,
    StopReason.FINAL: 1,
    StopReason.UNTESTED: 1,
    StopReason.ESCALATED: 1,
    StopReason.BUDGET: 3,
    StopReason.GUARDRAIL: 4,
    StopReason.INFRA: 5,
    StopReason.INTERRUPTED: 130,
}


def get_exit_code(stop: StopReason, *, judges: bool) -> int:
    """Return the exit code of a run that stopped so. An end of its own is no failure where no test *judges*."""
    return 0 if stop is StopReason.FINAL and not judges else EXIT_CODES[stop]
