"""Grades of the evidence, per test: each test is graded by its own challenge rounds.

The grade of a verdict is the lowest among the tests that were red before the change; where none was, among all.
`docs/verdicts.md` says what each grade means to a user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

import msgspec


class Grade(StrEnum):
    """Strength of the evidence for a test, best first."""

    A = "A"
    """It passed in a process of its own, which asked that of the code under test and got data back."""
    B = "B"
    """It passed there, too, and more crossed: code of the tests that was called, or a change of what they hold."""
    C = "C"
    """It failed whenever what it expects was changed, in one process with the code under test."""
    D = "D"
    """Its report was authenticated and reconciled, and believed."""
    X = "X"
    """Report of the runner itself."""


REACHABLE = "reachable"
"""Value of `--min-grade`: each test has the best grade that it can have."""

WANTED = (*reversed(tuple(Grade)), REACHABLE)
"""Values of `--min-grade`, from the loosest to the strictest."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the fresh runs of a green, by the ids of its tests."""

    runner: Grade
    """Of one run of the runner: D or X."""
    apart: frozenset[str] = frozenset()
    """Tests that passed in two processes, every time."""
    conversed: frozenset[str] = frozenset()
    """Tests in which more than questions and data crossed there, here or on the untouched files."""
    falsified: frozenset[str] = frozenset()
    """Tests that failed whenever what they expect was changed, and only then."""
    open_to_it: frozenset[str] = frozenset()
    """Tests of which each comparison can be changed so, or made stricter."""
    affirming: frozenset[str] = frozenset()
    """Tests that an object of the code under test keeps from being proved: one that affirms what is wrong, or decides
    although no test names its class. Right code that answers with data is proved there."""
    retreated: frozenset[str] = frozenset()
    """Tests that come out alike in one process and in two on the untouched files, and not with this change."""

    @property
    def proved(self) -> frozenset[str]:
        """Tests that are proved by more than the report of one run."""
        return self.apart | self.falsified


class Grades(msgspec.Struct, frozen=True):
    """Grade of each test of a green, of the whole verdict, and the best possible one."""

    tests: Mapping[str, Grade]
    lowest: Grade
    """Of the tests that were red before the change."""
    better: Mapping[str, Grade]
    """Test that could have had a better grade with other code -> that grade."""
    reachable: Grade
    """Best of *better* among the tests that count for the verdict; its own grade, where there is none."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of tests of each grade, best first."""
        counted = Counter(self.tests.values())
        return {str(grade): counted[grade] for grade in Grade if counted[grade]}

    def list_weakest(self, red: Collection[str]) -> tuple[str, ...]:
        """Return the tests in *red* that have the grade of the verdict."""
        return tuple(i for i, grade in self.tests.items() if grade is self.lowest and (i in red or not red))


def grade_tests(ids: Iterable[str], evidence: Evidence, red: Collection[str]) -> Grades:
    """Grade the tests *ids* of a green by *evidence*.

    Args:
        ids: all that is expected.
        evidence: what the fresh runs gave.
        red: those of *ids* that did not pass before the change; empty: all of them count for the verdict.
    """
    judging = [i for i in ids if i in red] or list(ids)
    tests = {i: _grade_test(i, evidence) for i in ids}
    better = {i: best for i, grade in tests.items() if (best := _find_best_grade(i, evidence)) < grade}
    lowest = max((tests[i] for i in judging), default=evidence.runner)
    return Grades(tests, lowest, better, min((better[i] for i in judging if i in better), default=lowest))


def _grade_test(test_id: str, evidence: Evidence) -> Grade:
    if test_id in evidence.apart:
        return Grade.B if test_id in evidence.conversed else Grade.A
    return Grade.C if test_id in evidence.falsified else evidence.runner


def _find_best_grade(test_id: str, evidence: Evidence) -> Grade:
    """Return the grade that right code would have for a test."""
    if test_id in evidence.retreated:
        return Grade.B if test_id in evidence.conversed else Grade.A
    could_be_falsified = test_id in evidence.open_to_it or test_id in evidence.affirming
    return Grade.C if could_be_falsified else evidence.runner


def format_grades(lowest: str, counts: Mapping[str, int], asked: int | None = None) -> str:
    """Return `grade C`, how many tests have which grade where they differ, and what the code *asked* of the tests."""
    told = [f"tests: {', '.join(f'{n} at {grade}' for grade, n in sorted(counts.items()))}"] if len(counts) > 1 else []
    told += [] if asked is None else [f"the code called into the tests {asked or 'at no'} time{'s' * (asked > 1)}"]
    return f"grade {lowest}" + (f" ({'; '.join(told)})" if told else "")


def describe_min_grade(reachable: str, wanted: str) -> str:
    """Return what `--min-grade` *wanted* asks for, in words that follow its name."""
    return (
        f"{wanted} (default unattended, or with held-out tests) asks for {reachable}, which one of its tests can have"
        if wanted == REACHABLE
        else f"asks for {wanted}"
    )


def list_below(grades: Mapping[str, str], better: Mapping[str, str], wanted: str) -> dict[str, str]:
    """Return those of *grades*, by test, that are below the grade *wanted*, the weakest first.

    *better* is the grade that a test could have had, where it has a weaker one.
    """
    weak = {i: grade for i, grade in grades.items() if not is_proved(grade, better.get(i, ""), wanted)}
    return dict(sorted(weak.items(), key=lambda item: item[1], reverse=True))


def is_proved(grade: str, reachable: str, wanted: str) -> bool:
    """Return whether a green of *grade* (`+H` or not) is at least what `--min-grade` asks for."""
    least = (reachable or grade) if wanted == REACHABLE else wanted
    return not least or grade.partition("+")[0] <= least.partition("+")[0]


def refuses_harder(wanted: str) -> bool:
    """Return whether `--min-grade` *wanted* refuses each green that the change made harder to judge: C at best."""
    return wanted in (REACHABLE, Grade.A, Grade.B)


def describe_below(below: Mapping[str, str], weaker: Mapping[str, str]) -> dict[str, str]:
    """Return what is said of each test *below* the grade that was asked for: its grade, and why it is no better."""
    reasons = {i: weaker.get(i, "") for i in below}
    return {i: f"grade {grade}{reasons[i] and f': {reasons[i]}'}" for i, grade in below.items()}
