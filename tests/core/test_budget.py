"""A budget: reserve, then settle; no sequence of honest calls passes a cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.budget import Budget, Cost, Spend, find_exhausted_cap, reserve, settle, to_micro_usd

cents = st.integers(0, 300).map(lambda n: n / 100)


@pytest.mark.slow
@given(cents, st.lists(st.tuples(cents, st.floats(0, 1))))
def test_the_cap_is_never_passed(cap: float, calls: list[tuple[float, float]]) -> None:
    budget, spend = Budget(usd=cap), Spend()
    for worst, used in calls:
        if reserve(budget, spend, Cost(worst)) is None:
            spend = settle(spend, worst * used, 0)

        assert spend.micro_usd <= to_micro_usd(cap)


@pytest.mark.parametrize(
    ("budget", "spend", "worst", "cap"),
    [
        (Budget(usd=0.5), Spend(micro_usd=400_000), Cost(0.1), None),
        (Budget(usd=0.5), Spend(micro_usd=400_001), Cost(0.1), "usd"),
        (Budget(usd=0.3), settle(settle(Spend(), 0.1, 0), 0.1, 0), Cost(0.1), None),
        (Budget(tokens=100), Spend(tokens=60), Cost(0.0, 41), "tokens"),
        (Budget(tokens=100), Spend(tokens=60), Cost(0.0, 40), None),
        (Budget(), Spend(micro_usd=10**12), Cost(10.0, 10**9), None),
        (Budget(tokens=100), settle(Spend(tokens=101), -5.0, -50), Cost(-1.0, -50), "tokens"),
        (Budget(usd=0.1), settle(Spend(micro_usd=100_001), -5.0, -50), Cost(-1.0, -50), "usd"),
    ],
)
def test_reservations(budget: Budget, spend: Spend, worst: Cost, cap: str | None) -> None:
    assert cap == reserve(budget, spend, worst)


@pytest.mark.parametrize(
    ("budget", "spend", "held", "cap"),
    [
        (Budget(attempts=2), Spend(attempts=1), 0.0, None),
        (Budget(attempts=2), Spend(attempts=2), 0.0, "attempts"),
        (Budget(attempts=None, turns=0), Spend(), 0.0, "turns"),
        (Budget(seconds=10), Spend(seconds=9.5), 0.0, None),
        (Budget(seconds=10), Spend(seconds=9.5), 1.0, "seconds"),
        (Budget(test_runs=3), Spend(test_runs=3), 0.0, "test_runs"),
    ],
)
def test_exhaustion(budget: Budget, spend: Spend, held: float, cap: str | None) -> None:
    assert cap == find_exhausted_cap(budget, spend, held)
