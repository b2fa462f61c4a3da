"""Challenge rounds of a green tree: tests are secretly falsified, and exactly those must fail.

The rounds of a challenge come in pairs. In the first round of a pair a coin decides for each test whether it is
falsified, in the second one each coin is turned round: so every test was seen to pass, and to fail when it had to, and
a pair confirms every outcome once. Nothing in the process tells which tests are false; to forge a pair is to guess all
of its coins. (Layer 4 of the catalogue of cheats; `docs/verdicts.md`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import msgspec

from jumar.core.state.verdict import EXCUSED, Ended, Outcome, Report, counts_as_pass, get_function, reconcile


class Strength(IntEnum):
    """Way in which a test can be falsified."""

    NONE = 0
    """It cannot: no statement of it can be turned so that it certainly fails."""
    PARTIAL = 1
    """A value that it expects can be changed. It also has a comparison that no change reaches."""
    WHOLE = 2
    """A value that it expects can be changed, and each comparison can be or is made stricter."""


class Round(msgspec.Struct, frozen=True):
    """One fresh run of all tests."""

    falsified: frozenset[str] = frozenset()
    """Test functions (ids without parameters) that must fail in it."""
    challenge: bool = True


def plan_rounds(strengths: Mapping[str, Strength], runs: int, heads: Iterable[bool]) -> tuple[Round, ...]:
    """Return the fresh runs that accept a tree: a challenge pair if a test can be falsified, then plain runs.

    Args:
        strengths: test function -> how it can be falsified.
        runs: number of fresh runs that must agree with the first one; a pair is never cut in two.
        heads: fair coins that nobody can foresee, without end.
    """
    coins = iter(heads)
    open_to_it = [name for name, strength in strengths.items() if strength is not Strength.NONE]
    chosen = frozenset(name for name in open_to_it if next(coins))
    pair = (Round(chosen), Round(frozenset(open_to_it) - chosen)) if open_to_it and runs else ()
    return (*pair, *(Round(challenge=False) for _ in range(runs - len(pair))))


class RoundResult(msgspec.Struct, frozen=True):
    """Result of one challenge round."""

    forged: tuple[str, ...] = ()
    """Tests that had to fail and did not: a report that is not made by running the tests."""
    unsteady: tuple[str, ...] = ()
    """Expected ids that passed before and did not now."""
    void: str = ""
    """Reason that the round is no evidence."""
    unproved: frozenset[str] = frozenset()
    """Falsified functions of which nothing was learnt: they hung, or only some of their cases are expected."""


def check_round(report: Report, asked: Round, expected: Iterable[str], accepted: Mapping[str, Outcome]) -> RoundResult:
    """Compare *report* with what *asked* must give: every expected id passes, but for the falsified, which fail."""
    if unbelievable := reconcile((), report).void:
        return RoundResult(void=unbelievable.reason)
    outcomes = {r.id: r.outcome for r in report.results}
    cases: dict[str, list[Outcome]] = {}
    for test_id, outcome in outcomes.items():
        cases.setdefault(get_function(test_id), []).append(outcome)
    wanted: dict[str, list[str]] = {}
    for test_id in expected:
        wanted.setdefault(get_function(test_id), []).append(test_id)
    forged, changed, unproved, void = [], [], set(), ""
    for function, ids in wanted.items():
        seen = cases.get(function, [])
        if function not in asked.falsified:
            changed += [i for i in ids if not _counts_as_passed(i, outcomes, seen, accepted)]
        elif not seen or report.ended is not Ended.NORMAL or Outcome.TIMEOUT in seen or _expects_only_some(ids, seen):
            unproved.add(function)
        elif _has_fewer_cases(ids, seen):
            void = f"{function} has {len(seen)} cases where the task's own run has {len(ids)}"
        else:
            standing = sum(outcome is not Outcome.FAILED for outcome in seen)
            excused = sum(i in accepted for i in ids)
            kept = sum(outcome in EXCUSED for outcome in seen)
            forged += [function] if standing > min(excused, kept) else []
    if report.ended is not Ended.NORMAL and not changed:  # all passed, and then it left: it is not believed
        changed = [i for ids in wanted.values() for i in ids]
    return RoundResult(tuple(forged), tuple(changed), void, frozenset(unproved))


def _counts_as_passed(
    test_id: str, outcomes: Mapping[str, Outcome], seen: list[Outcome], accepted: Mapping[str, Outcome]
) -> bool:
    own = [outcomes[test_id]] if test_id in outcomes else seen
    return bool(own) and all(counts_as_pass(outcome, accepted.get(test_id)) for outcome in own)


def _expects_only_some(ids: list[str], seen: list[Outcome]) -> bool:
    """Return whether the task expects only some cases of a function."""
    return len(ids) < len(seen) and "[" in ids[0]


def _has_fewer_cases(ids: list[str], seen: list[Outcome]) -> bool:
    """Return whether a falsified function has fewer cases than the frozen run: the code under test took them away."""
    return len(ids) > len(seen)
