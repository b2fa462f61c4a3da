"""Spending caps of a run. The worst case is reserved before a call is made, so that no cap is ever passed."""

from __future__ import annotations

from math import ceil, floor

import msgspec

MICRO = 1_000_000
"""Micro-dollars in a dollar: money is added as whole numbers, so that sums are exact."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Caps of a run; None is no cap."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    attempts: int | None = 5
    turns: int | None = None
    test_runs: int | None = None


PROFILES = {
    "workday": Budget(usd=10.0, seconds=8 * 3600.0),
    "overnight": Budget(usd=30.0, seconds=12 * 3600.0),
}
"""Caps for a person who watches now and then, and for nobody watching."""

UNATTENDED = frozenset({"overnight"})
"""Profiles of runs that nobody watches: what they are confined by may not be weak without a word."""


class Spend(msgspec.Struct, frozen=True):
    """Resources that a run has used so far. Money is in micro-dollars."""

    micro_usd: int = 0
    tokens: int = 0
    seconds: float = 0.0
    attempts: int = 0
    turns: int = 0
    test_runs: int = 0

    @property
    def usd(self) -> float:
        """Dollars spent."""
        return self.micro_usd / MICRO


class Cost(msgspec.Struct, frozen=True):
    """The worst case of one model call."""

    usd: float = 0.0
    tokens: int = 0


MOST_USD = 1e9
"""Largest amount in usd. More, or no number, is a provider's mistake: it exceeds every cap, and sums with it stay
exact."""


def to_micro_usd(usd: float) -> int:
    """Return *usd* in micro-dollars, rounded up: a reservation never understates, and nothing is ever paid back."""
    return ceil(round(max(0.0, min(MOST_USD, usd)) * MICRO, 3))


def reserve(budget: Budget, spend: Spend, worst: Cost) -> str | None:
    """Return the name of the cap that a call of *worst* cost could pass, or None if the call may be made."""
    if budget.usd is not None and spend.micro_usd + to_micro_usd(worst.usd) > floor(round(budget.usd * MICRO, 3)):
        return "usd"
    if budget.tokens is not None and spend.tokens + max(0, worst.tokens) > budget.tokens:
        return "tokens"
    return None


def settle(spend: Spend, usd: float, tokens: int) -> Spend:
    """Return the spend after a call that cost *usd* and *tokens*; less than nothing is nothing."""
    more = max(0, tokens)
    return msgspec.structs.replace(spend, micro_usd=spend.micro_usd + to_micro_usd(usd), tokens=spend.tokens + more)


CAPS = ("attempts", "turns", "test_runs", "seconds")
"""Caps on resources that are used up bit by bit; money and tokens are reserved call by call."""


def find_exhausted_cap(
    budget: Budget, spend: Spend, held_seconds: float = 0.0, names: tuple[str, ...] = CAPS
) -> str | None:
    """Return the first cap among *names* that leaves no room for more, or None.

    *held_seconds* are set aside for the verification that has to come at the end.
    """
    for name in names:
        cap = getattr(budget, name)
        if cap is not None and getattr(spend, name) + (held_seconds if name == "seconds" else 0) >= cap:
            return name
    return None
