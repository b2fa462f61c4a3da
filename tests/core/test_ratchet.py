"""The ratchet: what is shipped is never below any prefix's maximum, and void attempts move nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.ratchet import Attempt, Ratchet, Rule, Score, Ties, holds

IDS = tuple(f"t{n}" for n in range(6))


def attempt(passed: set[str], errors: int = 0, tree: str = "tree") -> Attempt:
    return Attempt(tree, Score(len(passed), errors, len(IDS) - len(passed) - errors), frozenset(passed))


@pytest.mark.parametrize(
    ("new", "best", "rule", "expected"),
    [
        (attempt({"t0"}), None, Rule(), True),
        (attempt({"t0", "t1"}), attempt({"t0"}), Rule(), True),
        (attempt({"t0"}), attempt({"t0", "t1"}), Rule(), False),
        (attempt({"t0"}, errors=0), attempt({"t0"}, errors=2), Rule(), True),
        (attempt({"t0"}, errors=2), attempt({"t0"}, errors=0), Rule(), False),
        (attempt({"t1"}), attempt({"t0"}), Rule(), True),
        (attempt({"t1"}), attempt({"t0"}), Rule(ties=Ties.REVERT), False),
        (attempt({"t1", "t2"}), attempt({"t0"}), Rule(), True),
        (attempt({"t1", "t2"}), attempt({"t0"}), Rule(ratchet=Ratchet.IDENTITY), False),
        (attempt({"t0", "t2"}), attempt({"t0"}), Rule(ratchet=Ratchet.IDENTITY), True),
    ],
)
def test_what_holds(new: Attempt, best: Attempt | None, rule: Rule, *, expected: bool) -> None:
    assert expected is holds(new, best, rule)


attempts = st.builds(
    lambda p, e: attempt(p, min(e, len(IDS) - len(p))), st.sets(st.sampled_from(IDS)), st.integers(0, 6)
)


@pytest.mark.slow
@given(st.lists(attempts, min_size=1), st.builds(Rule, st.sampled_from(Ratchet), st.sampled_from(Ties)))
def test_the_best_never_sinks(tried: list[Attempt], rule: Rule) -> None:
    best: Attempt | None = None
    for new in tried:
        before = best
        best = new if holds(new, best, rule) else best

        assert best is not None
        assert before is None or best.score.rank >= before.score.rank
        if rule.ratchet is Ratchet.IDENTITY and before is not None:
            assert before.green_ids <= best.green_ids
    if rule.ratchet is Ratchet.COUNT and best is not None:
        assert best.score.rank == max(t.score.rank for t in tried)
