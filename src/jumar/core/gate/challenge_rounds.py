"""Challenge rounds of a green tree: tests are secretly falsified, and exactly those must fail.

The rounds of a challenge come in pairs. In the first round of a pair a coin decides for each test whether it is
falsified, in the second one each coin is turned round: so every test was seen to pass, and to fail when it had to, and
a pair confirms every outcome once. (Layer 4 of the catalogue of cheats; `docs/verdicts.md`.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum

import msgspec

from jumar.core.state.verdict import EXCUSED, Ended, Outcome, Report, counts_as_pass, get_function, reconcile


class Strength(IntEnum):
    """Way in which a test is falsified, as it was seen while it ran."""

    IDLE = -2
    """It was not falsified, has assertions, and came to none of them; another case of it may have."""
    EMPTY = -1
    """It has assertions that were falsified, and came to none of them: it says nothing, in two processes too."""
    NONE = 0
    """Not at all: it asserts nothing, or a failure of it would not count."""
    AFFIRMING = 1
    """An object of the code under test has a say in what it compares, and affirmed something wrong."""
    ANSWERED = 2
    """An object of the code under test has a say in what it compares, of a class that the tests do not name."""
    SWAYED = 3
    """An object of the code under test has a say in what it compares."""
    PARTIAL = 4
    """It also has a comparison that nobody can ask for something wrong."""
    WHOLE = 5
    """All that it compares is asked for something wrong."""


class Round(msgspec.Struct, frozen=True):
    """One fresh run of all tests."""

    falsified: frozenset[str] = frozenset()
    """Test functions (ids without parameters) that must fail in it."""
    challenge: bool = True


def plan_rounds(names: Collection[str], runs: int, heads: Iterable[bool]) -> tuple[Round, ...]:
    """Return the fresh runs that accept a tree: a challenge pair if there is a test, then plain runs.

    Args:
        names: test functions.
        runs: number of fresh runs that must agree with the first one; a pair is never cut in two.
        heads: fair coins that nobody can foresee, without end.
    """
    coins = iter(heads)
    chosen = frozenset(name for name in names if next(coins))
    pair = (Round(chosen), Round(frozenset(names) - chosen)) if names and runs else ()
    return (*pair, *(Round(challenge=False) for _ in range(runs - len(pair))))


class ApartRounds:
    """Plan of the rounds of a green in two processes: one, and a pair if more than data crosses in some of its tests.

    A test that asks and gets data back tells the code under test nothing of what it expects: there is nothing to
    falsify. Where more crosses, it is falsified in one of two rounds, by a coin. If that is known of it before, the
    first round is one of the two. All rounds have all tests: the code under test sees no difference between them.

    Args:
        names: test functions.
        known: those of them in which more than questions and data crosses, as was seen before.
        again: further rounds in which all are run as they are.
        heads: fair coins that nobody can foresee, without end.
    """

    def __init__(self, names: Iterable[str], known: Iterable[str], again: int, heads: Iterable[bool]) -> None:
        self._names, self._again, self._coins = frozenset(names), again, iter(heads)
        self._turns: dict[str, list[bool]] = {}
        """Function of a pair -> whether it is falsified, for each round that is to come."""
        self.number = 0
        """Number of the last round that was planned."""
        self.note_conversed(known)

    @property
    def conversed(self) -> frozenset[str]:
        """Functions that have a pair of rounds."""
        return frozenset(self._turns)

    def note_conversed(self, names: Iterable[str]) -> None:
        """Note that more than questions and data crosses in the functions *names*."""
        for name in sorted(self._names.intersection(names).difference(self._turns)):
            falsified = next(self._coins)
            self._turns[name] = [falsified, not falsified]

    def count_left(self) -> int:
        """Return the number of rounds that are to come, as far as it is known."""
        return max(map(len, self._turns.values()), default=0) + self._again

    def plan_next(self) -> Round | None:
        """Return the next round; None after the last one."""
        self.number += 1
        turn = {name: turns.pop() for name, turns in self._turns.items() if turns}
        if not turn and self.number > 1:
            if not self._again:
                return None
            self._again -= 1
        return Round(frozenset(name for name, false in turn.items() if false), challenge=bool(self._names))


class RoundResult(msgspec.Struct, frozen=True):
    """Result of one challenge round."""

    forged: tuple[str, ...] = ()
    """Tests that had to fail and did not: a report that is not made by running the tests."""
    unsteady: tuple[str, ...] = ()
    """Expected ids that passed before and did not now."""
    void: str = ""
    """Reason that the round is no evidence."""
    unproved: frozenset[str] = frozenset()
    """Falsified functions of which nothing was learnt: they hung, cannot be falsified, or not all cases count."""
    cut_short: bool = False
    """True if a falsified test failed as it must, and none that is unsteady did: it was skipped, or the run ended."""


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
        elif (
            not seen
            or report.ended is not Ended.NORMAL
            or Outcome.TIMEOUT in seen
            or is_unable(report, function)
            or (_expects_only_some(ids, seen) and Outcome.PASSED not in seen)
        ):
            unproved.add(function)
        elif _has_fewer_cases(ids, seen):
            void = f"{function} has {len(seen)} cases where the task's own run has {len(ids)}"
        else:
            standing = sum(outcome is not Outcome.FAILED for outcome in seen)
            excused = sum(i in accepted for i in ids)
            kept = sum(outcome in EXCUSED for outcome in seen)
            forged += [function] if standing > min(excused, kept) else []
    cut = _is_cut_short(report, asked, changed)
    if report.ended is not Ended.NORMAL and not changed:  # all passed, and then it left: it is not believed
        changed = [i for ids in wanted.values() for i in ids]
    return RoundResult(tuple(forged), tuple(changed), void, frozenset(unproved), cut and bool(changed))


def accept_stop(report: Report, falsified: Collection[str]) -> Report:
    """Return *report* as one that ended normally, if it was stopped, and a falsified test failed as it must.

    Hooks of a project may look at how the session comes out. All tests have their results then, and the process said
    goodbye, so all that is watched was looked at.
    """
    fell = any(r.outcome is Outcome.FAILED and get_function(r.id) in falsified for r in report.results)
    return msgspec.structs.replace(report, ended=Ended.NORMAL, detail="") if report.stopped and fell else report


def _is_cut_short(report: Report, asked: Round, changed: Iterable[str]) -> bool:
    """Return whether a falsified test failed, or ended the run as it did, and no test of those that *changed* failed.

    A test that did not run has the outcome of an error where the run ended early.
    """
    early = () if report.ended is Ended.NORMAL else (Outcome.ERROR,)
    names, unrun, ends = {get_function(i) for i in changed}, {*EXCUSED, *early}, {Outcome.FAILED, *early}
    ran = [r for r in report.results if get_function(r.id) in names and r.outcome is not Outcome.PASSED]
    fell = any(r.outcome in ends and get_function(r.id) in asked.falsified for r in report.results)
    return fell and all(r.outcome in unrun for r in ran)


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


def is_unable(report: Report, function: str) -> bool:
    """Return whether a case of *function* cannot be falsified, as the process says that ran it."""
    return any(get_function(i) == function and n <= Strength.NONE for i, n in report.strengths.items())


def find_empty(report: Report) -> frozenset[str]:
    """Return the tests that came to none of their assertions: nothing was learnt by them.

    A case of a test that is not falsified may have nothing to assert where another one has.
    """
    seen = {r.id: report.strengths.get(r.id, Strength.WHOLE) for r in report.results}
    speaking = {get_function(i) for i, strength in seen.items() if strength != Strength.IDLE}
    idle = (i for i, strength in seen.items() if strength == Strength.IDLE and get_function(i) not in speaking)
    return frozenset((*idle, *(i for i, strength in seen.items() if strength == Strength.EMPTY)))


def list_later(report: Report, ids: Sequence[str], step: Round) -> frozenset[str]:
    """Return those of *ids* that ran when the process of the code under test was gone already."""
    if not report.lost:
        return frozenset()
    order = [result.id for result in report.results]
    before = set(order[: order.index(report.lost) + 1] if report.lost in order else order)
    falsified = {get_function(i) for i in before} & step.falsified
    return frozenset(i for i in ids if i not in before and get_function(i) not in falsified)
