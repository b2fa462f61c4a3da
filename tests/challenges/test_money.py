"""The cap of a challenge holds for agents, judge and proposer together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.challenges.agents_file import ModelTable
from jumar.challenges.money import compute_agents_usd
from jumar.challenges.order import ChallengeOrigin
from jumar.errors import BadInput

JUDGE, PROPOSER = ModelTable(model="openai:a", usd=3.0), ModelTable(model="openai:b", usd=2.0)
USD = st.floats(0.01, 100)


def origin(usd: float | None, generations: int = 0) -> ChallengeOrigin:
    return ChallengeOrigin("c", (), JUDGE, PROPOSER, generations, None, usd)


@pytest.mark.parametrize(
    ("usd", "generations", "judges", "spent", "left"),
    [
        (None, 3, True, 99.0, None),
        (10.0, 0, False, 0.0, 10.0),
        (10.0, 0, True, 0.0, 7.0),
        (10.0, 2, True, 0.0, 5.0),
        (10.0, 2, True, 4.0, 1.0),
    ],
)
def test_who_may_still_spend_is_held_back(
    usd: float | None, generations: int, spent: float, left: float | None, *, judges: bool
) -> None:
    assert compute_agents_usd(origin(usd, generations), judges=judges, spent=spent) == left


def test_nothing_left_is_said_with_what_is_held() -> None:
    with pytest.raises(BadInput, match=r"\$3 are held for the judge and \$2 for the proposer"):
        compute_agents_usd(origin(5.0, 1), judges=True)


@given(USD, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20), st.booleans())
def test_no_order_of_spending_passes_the_cap(usd: float, shares: list[tuple[float, float]], judges: bool) -> None:  # noqa: FBT001  hypothesis passes it
    """Whatever share of their money agents and judge use in each campaign, the sum stays within the cap."""
    spent = 0.0
    for agents, judge in shares:
        try:
            left = compute_agents_usd(origin(usd), judges=judges, spent=spent)
        except BadInput:
            break
        assert left is not None
        spent += agents * left + (judge * JUDGE.usd if judges else 0.0)
    assert spent <= usd + 1e-9
