"""A verdict: green is earned id by id; silence is never a pass; anomalies are void."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.failure_text import find_reason
from jumar.core.state.verdict import EXCUSED, Broken, Cause, Ended, Outcome, Report, TestResult, reconcile

EXPECTED = ("t.py::a", "t.py::b")


def report(ended: Ended = Ended.NORMAL, /, **outcomes: str) -> Report:
    return Report(ended, tuple(TestResult(f"t.py::{n}", Outcome(o)) for n, o in outcomes.items()))


@pytest.mark.parametrize(
    ("given_report", "outcomes"),
    [
        (report(a="passed", b="passed"), ("passed", "passed")),
        (report(a="passed", b="failed"), ("passed", "failed")),
        (report(a="passed"), ("passed", "missing")),
        (report(Ended.TIMEOUT, a="passed"), ("passed", "error")),
        (report(Ended.EXIT), ("error", "error")),
        (report(Ended.EXIT, a="passed", b="passed"), ("passed", "error")),
        (report(Ended.CRASH, b="passed", a="passed"), ("error", "passed")),
        (Report(Ended.NORMAL, broken={"t.py": Broken("ImportError")}), ("import_error", "import_error")),
        (report(a="passed", b="passed", extra="failed"), ("passed", "passed")),
    ],
)
def test_outcomes(given_report: Report, outcomes: tuple[str, ...]) -> None:
    verdict = reconcile(EXPECTED, given_report)

    assert outcomes == tuple(r.outcome for r in verdict.results.values())
    assert verdict.green is (outcomes == ("passed", "passed"))
    assert verdict.total == verdict.passed + verdict.failed + verdict.errors


def test_nothing_expected_is_never_green() -> None:
    assert not reconcile((), report(a="passed")).green


def test_an_anomaly_is_tamper_and_no_start_is_harness() -> None:
    tampered = reconcile(EXPECTED, Report(Ended.NORMAL, anomalies=("wrong MAC",)))
    unstarted = reconcile(EXPECTED, Report(Ended.UNSTARTED, detail="no such interpreter"))
    twice = reconcile(EXPECTED, Report(Ended.NORMAL, (TestResult("t.py::a", Outcome.PASSED),) * 2))

    assert [v.void.cause for v in (tampered, unstarted, twice) if v.void] == [Cause.TAMPER, Cause.HARNESS, Cause.TAMPER]
    assert not any(v.green or v.results for v in (tampered, unstarted, twice))


@pytest.mark.parametrize(
    ("outcome", "frozen", "passes"),
    [
        ("skipped", None, False),
        ("skipped", "skipped", True),
        ("skipped", "xfailed", False),
        ("xfailed", "xfailed", True),
        ("xpassed", "xfailed", True),
        ("xpassed", None, False),
        ("passed", "skipped", True),
    ],
)
def test_an_excuse_counts_only_where_the_frozen_run_had_it(outcome: str, frozen: str | None, *, passes: bool) -> None:
    accepted = {"t.py::a": Outcome(frozen)} if frozen else {}

    verdict = reconcile(EXPECTED, report(a=outcome, b="passed"), accepted)

    assert verdict.green is passes
    assert verdict.excused == ({outcome: 1} if passes and outcome != "passed" else {})


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("xfailed", "it failed as expected (xfail), and did not on the untouched files"),
        ("xpassed", "it passed though marked xfail, and did not fail so on the untouched files"),
        ("skipped", "it is skipped, and was not on the untouched files"),
    ],
)
def test_an_outcome_that_the_untouched_files_did_not_have_is_red_with_that_reason(outcome: str, said: str) -> None:
    verdict = reconcile(EXPECTED, report(a=outcome, b="passed"), {"t.py::a": Outcome.FAILED})

    assert verdict.red_ids == ("t.py::a",)
    assert find_reason(verdict.results["t.py::a"].excerpt) == said


def test_where_each_test_is_excused_nothing_was_tested_and_nothing_is_green() -> None:
    frozen = {"t.py::a": Outcome.SKIPPED, "t.py::b": Outcome.XFAILED}

    verdict = reconcile(EXPECTED, report(a="skipped", b="xfailed"), frozen)

    assert (verdict.untested, verdict.green, verdict.passed, verdict.red_ids) == (True, False, 2, ())
    assert verdict.excused == {"skipped": 1, "xfailed": 1}
    assert not reconcile((), report()).untested


def test_an_id_read_from_the_syntax_tree_stands_for_its_parametrisations() -> None:
    good = report(Ended.NORMAL, **{"a[1]": "passed", "a[2]": "passed", "b": "passed"})
    bad = report(Ended.NORMAL, **{"a[1]": "passed", "a[2]": "failed", "b": "passed"})

    assert reconcile(EXPECTED, good).green
    assert reconcile(EXPECTED, bad).red_ids == ("t.py::a",)


results = st.dictionaries(st.sampled_from([*EXPECTED, "t.py::c"]), st.sampled_from(Outcome))


@pytest.mark.slow
@given(results, st.sampled_from(Ended), st.dictionaries(st.sampled_from(EXPECTED), st.sampled_from(sorted(EXCUSED))))
def test_green_means_every_id_earned_it(
    outcomes: dict[str, Outcome], ended: Ended, accepted: dict[str, Outcome]
) -> None:
    verdict = reconcile(EXPECTED, Report(ended, tuple(TestResult(i, o) for i, o in outcomes.items())), accepted)

    if verdict.green:
        assert ended is Ended.NORMAL
        assert set(EXPECTED) <= set(outcomes)
        assert all(outcomes[i] is Outcome.PASSED or i in accepted for i in EXPECTED)
    if verdict.void is None:
        assert verdict.total == len(EXPECTED) == verdict.passed + verdict.failed + verdict.errors
