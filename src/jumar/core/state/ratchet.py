"""Ratchet: keeps the best attempt. Only one at least as high can replace it; the workspace ends with it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Score(msgspec.Struct, frozen=True):
    """Rank of an attempt: more passed, then fewer errors, then fewer failed."""

    passed: int
    errors: int
    failed: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order of scores: a higher tuple is a better attempt."""
        return (self.passed, -self.errors, -self.failed)


class Ratchet(StrEnum):
    """Criterion by which a new attempt is compared."""

    COUNT = "count"
    """Number of expected ids that passed."""
    IDENTITY = "identity"
    """The same, and no id that was green may be lost."""


class Ties(StrEnum):
    """Treatment of an attempt that is neither better nor worse."""

    KEEP = "keep"
    """The newer tree stays. Measured: reverting ties costs 0.6 to 2.3 points of final pass rate."""
    REVERT = "revert"


class Attempt(msgspec.Struct, frozen=True):
    """A tree that has a usable verdict. The highest so far is the best."""

    tree: str
    score: Score
    green_ids: frozenset[str]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the ratchet of a run."""

    ratchet: Ratchet = Ratchet.COUNT
    ties: Ties = Ties.KEEP


def holds(attempt: Attempt, best: Attempt | None, rule: Rule, deleted: Sequence[str] = ()) -> bool:
    """Return whether *attempt* becomes the best; if not, the workspace is reset to *best*.

    *deleted* are files of the best tree that it does not have and did not move: at a tie they are not given away.
    """
    if best is None:
        return True
    if rule.ratchet is Ratchet.IDENTITY and not best.green_ids <= attempt.green_ids:
        return False
    if is_tie(attempt, best):
        return rule.ties is Ties.KEEP and not deleted
    return attempt.score.rank > best.score.rank


def is_tie(attempt: Attempt, best: Attempt | None) -> bool:
    """Return whether *attempt* is neither better nor worse than *best*."""
    return best is not None and attempt.score.rank == best.score.rank
