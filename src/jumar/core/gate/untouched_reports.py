"""Compares what tests came to on the untouched tree in one process and in two, as reports have it."""

from __future__ import annotations

import re
from collections.abc import Collection

from jumar.core.state.verdict import Outcome, Report, TestResult, counts_as_pass

GIVEN_UP = re.compile(r"\bCannotRunApart\b")
"""Stands in what a test or file says that cannot be judged in two processes by what it does (`child/two_process`)."""

ASSERTED = re.compile("[Aa]ssert|Failed:")
"""Stands in what a test says that failed by an assertion of its own, or by one of pytest's."""

DECIDING = re.compile(r"(\w+)\.(__\w+__) would decide a comparison$")
"""Reason that two processes are no evidence for a test: a class of the code under test has that method."""

OPERATED = re.compile(r"a (\w+) that an operator came to would decide it by \w+$")
"""Another one: what an operator of such a class made is read."""

ARITHMETIC = frozenset(
    f"__{how}{name}__"
    for how in ("", "r")
    for name in ("add", "and", "floordiv", "matmul", "mod", "mul", "neg", "or", "pow", "sub", "truediv", "xor")
)
"""Operators that a class may have, in both forms."""


def list_alike(one: Report, two: Report) -> frozenset[str]:
    """Return the tests that came out the same: passed, or failed by an assertion in the same words or by one exception.

    What fails and needs the code under test in its own process tells nothing of two.
    """
    said = {result.id: _describe(result) for result in two.results}
    return frozenset(
        result.id
        for result in one.results
        if said.get(result.id) == _describe(result)
        and (result.id not in list_tied(two) or counts_as_pass(result.outcome, None))
    )


def list_seen(report: Report) -> frozenset[str]:
    """Return the tests that passed, or failed by an assertion: they came to compare something."""
    kinds = {result.id: _describe(result) for result in report.results}
    return frozenset(i for i, (outcome, said, _) in kinds.items() if outcome is Outcome.PASSED or said)


def list_given_up(ids: Collection[str], two: Report) -> frozenset[str]:
    """Return those of *ids* that two processes gave up for what they do, before the code ended them."""
    files = {path for path, broken in two.broken.items() if GIVEN_UP.search(broken.why)}
    given_up = {result.id for result in two.results if GIVEN_UP.search(_describe(result)[2])}
    return frozenset(i for i in ids if i in given_up or i.partition("::")[0] in files)


def list_unasserted(two: Report | None) -> frozenset[str]:
    """Return the tests that ended without an assertion: a stub raised, so what they compare was not seen there."""
    results = two.results if two else ()
    failed = {r.id for r in results if r.outcome is Outcome.FAILED and not _describe(r)[1]}
    return list_timeouts(two).union(failed, (r.id for r in results if r.outcome is Outcome.ERROR))


def list_asserted(report: Report | None) -> frozenset[str]:
    """Return the tests that failed by an assertion, and by nothing that two processes lack."""
    failed = [r.id for r in report.results if r.outcome is Outcome.FAILED and _describe(r)[1]] if report else []
    return frozenset(failed).difference((*list_tied(report), *report.doubted) if report else ())


def _describe(result: TestResult) -> tuple[Outcome, str, str]:
    """Return the outcome of a test, the words of an assertion that failed, or else the class of another exception.

    Without the lines in which pytest says where a value comes from (`+ where None = total()`): a method is another
    object in two processes.
    """
    if result.outcome is not Outcome.FAILED:
        return result.outcome, "", ""
    lines = result.excerpt.strip().splitlines()
    said = [line[1:].strip() for line in lines if re.match(r"E\s+[^+\s]", line)] or lines[-1:]
    if said and ASSERTED.search(said[0]):
        return result.outcome, re.sub("x[0-9a-f]{6,}", "x", "\n".join(said)), ""
    return result.outcome, "", said[0].partition(":")[0] if said else ""


def list_timeouts(report: Report | None) -> frozenset[str]:
    """Return the tests that took too long."""
    results = report.results if report else ()
    return frozenset(result.id for result in results if result.outcome is Outcome.TIMEOUT)


def is_same_reason(one: str, other: str) -> bool:
    """Return whether a test was given up for *one* reason as for the *other*: numbers in it, as of a folder, differ."""
    return re.sub(r"\d+", "", one) == re.sub(r"\d+", "", other)


def find_style(why: str) -> tuple[str, frozenset[str]] | None:
    """Return the class that would have a say, and the methods by which, if that is the reason *why*."""
    if match := DECIDING.match(why):
        return match[1], frozenset((match[2],))
    match = OPERATED.match(why)
    return (match[1], ARITHMETIC) if match else None


def list_tied(two: Report | None) -> tuple[str, ...]:
    """Return the tests that need the code under test in their own process, with or without its doing."""
    return (*two.tied, *two.led) if two else ()
