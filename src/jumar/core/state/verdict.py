"""Verdict of a verification. Green is earned id by id; no usable evidence is void, never a pass and never a fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """Outcome of one expected test id."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    IMPORT_ERROR = "import_error"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    MISSING = "missing"
    FLAKY = "flaky"
    """It came out differently on one and the same tree: no red, and never credited."""


ERRORS = frozenset({Outcome.ERROR, Outcome.IMPORT_ERROR, Outcome.TIMEOUT, Outcome.MISSING})
"""Outcomes of a test that could not even run to its end; worse than a failure."""

UNLIKE = {
    Outcome.SKIPPED: "it is skipped, and was not",
    Outcome.XFAILED: "it failed as expected (xfail), and did not",
    Outcome.XPASSED: "it passed though marked xfail, and did not fail so",
}
EXCUSED = frozenset(UNLIKE)
"""Outcomes that count as a pass only where the frozen run of the task's own tests had them too."""


class Ended(StrEnum):
    """End of the runner's process."""

    NORMAL = "normal"
    """It said goodbye on the channel and its exit status agreed."""
    TIMEOUT = "timeout"
    """The whole verification ran out of time and was killed."""
    CRASH = "crash"
    """A signal killed it."""
    EXIT = "exit"
    """It left without a goodbye."""
    UNSTARTED = "unstarted"
    """It never said hello: nothing of the code under test can have run."""


class Blame(StrEnum):
    """Cause of a test failure. Only the first two and a timeout make a red that code can answer."""

    CODE = "code"
    """An assertion, or an exception in the code under test."""
    ABSENT = "absent"
    """The code under test is not there, or has not the name that the test asks it for."""
    TEST = "test"
    """The test itself is broken: its file, its fixture, a package that it wants."""


class TestResult(msgspec.Struct, frozen=True):
    """Result of one test as the runner reported it."""

    __test__ = False

    id: str
    outcome: Outcome
    duration_ms: int = 0
    excerpt: str = ""
    """The traceback, for prompts; empty for a pass."""
    blame: Blame | None = None
    """Cause of the failure, where the runner can tell; None for a pass, and where it cannot."""
    absent: str = ""
    """For `Blame.ABSENT`, the module or file that is not there or lacks something, as the test names it, or empty."""


class Broken(msgspec.Struct, frozen=True):
    """Reason why the tests of a file could not be collected."""

    why: str
    blame: Blame | None = None
    absent: str = ""


class Report(msgspec.Struct, frozen=True):
    """Report of one invocation of a runner, decoded and not yet judged."""

    ended: Ended
    results: tuple[TestResult, ...] = ()
    broken: Mapping[str, Broken] = {}
    """Path of each test file that could not be collected -> why."""
    anomalies: tuple[str, ...] = ()
    """Invalid records on the channel: a wrong MAC, a gap in the sequence, a duplicate."""
    detail: str = ""
    """One sentence on an end that was not normal."""
    stopped: bool = False
    """True if something ended the session when each test had its result, and the process said goodbye."""
    lost: str = ""
    """Test after which the process of the code under test was gone: what ran later is no evidence; empty: it stayed."""
    shadows: tuple[str, ...] = ()
    """Modules at the top of the room that hide an installed module of the same name."""
    asked_tests: int | None = None
    """Requests of the code under test that the tests performed. None: it was not said,
    as in one process."""
    tied: tuple[str, ...] = ()
    """Tests that need the code under test in their own process by what they do themselves: lend it a file, say."""
    led: tuple[str, ...] = ()
    """Tests that need it there by a step with what it answered."""
    matched: tuple[str, ...] = ()
    """Tests that compare an object of the code under test with one that they made of a class of it."""
    copied: tuple[str, ...] = ()
    """Tests that hold something of which the code under test changed its copy, in two processes."""
    strengths: Mapping[str, int] = {}
    """Tests of a challenge that are not falsified wholly, each with its `challenge_rounds.Strength`."""
    reached: Mapping[str, Mapping[str, int]] = {}
    """Tests of a challenge, each with the assertions and comparisons that it came to, by file and line: how often.

    Of held-out tests also data there, as `child.challenge.compared_data` marks it, and the numbers of their calls.
    """
    missed: Mapping[str, tuple[int, ...]] = {}
    """The same, with the lines of those of its own that it did not come to, if there are any."""
    doubted: Mapping[str, str] = {}
    """Tests that are no evidence in two processes, whatever they came to, each with why."""
    conversed: Mapping[str, str] = {}
    """Tests in which more than questions and data crossed between two processes, each with why."""
    beyond: tuple[str, ...] = ()
    """Tests in the files of those that were asked for, which were not themselves, and did not run."""
    distributed: bool = False
    """True if the project has its tests distributed among processes, which this run did not do."""
    unconfined: tuple[str, ...] = ()
    """Gaps in the confinement of the tests' own process after its files were loaded, a sentence each."""


class Cause(StrEnum):
    """Cause of a void."""

    TAMPER = "tamper"
    HARNESS = "harness"
    HELD_OUT = "held_out"
    """Every visible test passed, and the held-out ones did not: the answers are for the visible ones alone."""


class Void(msgspec.Struct, frozen=True):
    """Void verdict: there is no usable evidence; with the reason."""

    cause: Cause
    reason: str


class Verdict(msgspec.Struct, frozen=True):
    """An outcome per expected test id, or void."""

    results: Mapping[str, TestResult]
    """Expected id -> its result, in the order of the expected ids; empty when void."""
    green_ids: frozenset[str] = frozenset()
    void: Void | None = None

    @property
    def total(self) -> int:
        """Return the number of expected ids."""
        return len(self.results)

    @property
    def passed(self) -> int:
        """Return the number of expected ids that count as passed."""
        return len(self.green_ids)

    @property
    def errors(self) -> int:
        """Return the number of expected ids that could not run to their end."""
        return sum(r.outcome in ERRORS for r in self.results.values())

    @property
    def failed(self) -> int:
        """Return the number of expected ids that ran and did not pass."""
        return self.total - self.passed - self.errors

    @property
    def green(self) -> bool:
        """Every expected id passed, and at least one of them is not excused."""
        return self.void is None and self.total > 0 and self.passed == self.total and not self.untested

    @property
    def excused(self) -> dict[str, int]:
        """Return outcome -> number of the ids that have it and count as passed, although they did not pass."""
        found = Counter(str(r.outcome) for i, r in self.results.items() if i in self.green_ids)
        return {str(outcome): found[outcome] for outcome in Outcome if outcome in EXCUSED and found[outcome]}

    @property
    def untested(self) -> bool:
        """Return whether there are expected ids, and each is excused: none of them tested anything."""
        return 0 < self.total == sum(self.excused.values())

    @property
    def flaky_ids(self) -> tuple[str, ...]:
        """The expected ids whose outcome changed while the tree did not, in order."""
        return tuple(i for i, r in self.results.items() if r.outcome is Outcome.FLAKY)

    @property
    def red_ids(self) -> tuple[str, ...]:
        """The expected ids that did not pass, in order; flaky ids are not red."""
        return tuple(i for i, r in self.results.items() if i not in self.green_ids and r.outcome is not Outcome.FLAKY)


CHANGED = "it passed in one run and did not in another, on the same files"
"""Reason why a test is flaky."""


def mark_flaky(verdict: Verdict, flaky: Iterable[str], why: str) -> Verdict:
    """Return *verdict* with the ids *flaky* marked: their outcome changed while the tree did not."""
    changed = {i: TestResult(i, Outcome.FLAKY, 0, why, Blame.TEST) for i in flaky if i in verdict.results}
    return Verdict({**verdict.results, **changed}, verdict.green_ids.difference(changed), verdict.void)


def get_function(test_id: str) -> str:
    """Return the id of the test function of *test_id*, which is the same for all of its parameters."""
    return test_id.partition("[")[0]


def get_file(test_id: str) -> str:
    """Return the path of the file of *test_id*."""
    return test_id.partition("::")[0]


def counts_as_pass(outcome: Outcome, accepted: Outcome | None) -> bool:
    """Return whether *outcome* is a pass, given the outcome in the frozen run of the task's own tests (*accepted*)."""
    if outcome is Outcome.PASSED:
        return True
    if outcome is Outcome.XPASSED:
        return accepted in (Outcome.XFAILED, Outcome.XPASSED)
    return outcome in EXCUSED and outcome is accepted


def reconcile(expected: Iterable[str], report: Report, accepted: Mapping[str, Outcome] | None = None) -> Verdict:
    """Judge *report* against the ids that had to be reported.

    An expected id without parameters stands for all its parametrisations where only those were reported: that is how
    ids read from a syntax tree meet what the runner calls them.
    """
    accepted = accepted or {}
    if report.anomalies:
        return Verdict({}, void=Void(Cause.TAMPER, "; ".join(report.anomalies[:3])))
    if report.ended is Ended.UNSTARTED:
        return Verdict({}, void=Void(Cause.HARNESS, report.detail or "the runner did not start"))
    reported = {r.id: r for r in report.results}
    if len(reported) != len(report.results):
        return Verdict({}, void=Void(Cause.TAMPER, "a test was reported twice"))
    families = _group_families(reported)
    results = {
        i: reported.get(i) or _merge_family(i, families.get(i)) or _build_unreported(i, report) for i in expected
    }
    green = frozenset(i for i, r in results.items() if counts_as_pass(r.outcome, accepted.get(i)))
    results |= {i: _explain(r) for i, r in results.items() if r.outcome in UNLIKE and i not in green}
    if report.ended is not Ended.NORMAL and len(green) == len(results) > 0:
        # All passed, and then the process left without a goodbye: whoever did that is not believed.
        last = next((r.id for r in reversed(report.results) if r.id in results), next(reversed(results)))
        results[last] = TestResult(last, Outcome.ERROR, 0, f"passed, and then {report.detail or report.ended}")
        green -= {last}
    return Verdict(results, green)


def _explain(result: TestResult) -> TestResult:
    """Return *result*, a pass if the untouched files had it, with the reason why it is red."""
    said = f"E   {UNLIKE[result.outcome]} on the untouched files"
    skip = f"{said}\n\n{result.excerpt}".strip()
    return msgspec.structs.replace(result, excerpt=skip if result.outcome is Outcome.SKIPPED else said)


def _group_families(reported: Mapping[str, TestResult]) -> dict[str, list[TestResult]]:
    families: dict[str, list[TestResult]] = {}
    for test_id, result in reported.items():
        head, bracket, _ = test_id.partition("[")
        if bracket:
            families.setdefault(head, []).append(result)
    return families


def _merge_family(test_id: str, members: list[TestResult] | None) -> TestResult | None:
    """Return one result for all parametrisations of *test_id*: the first that is no pass, else a pass."""
    if not members:
        return None
    worst = next((m for m in members if m.outcome is not Outcome.PASSED), members[0])
    return msgspec.structs.replace(worst, id=test_id, duration_ms=sum(m.duration_ms for m in members))


def _build_unreported(test_id: str, report: Report) -> TestResult:
    """Return the result of an unreported test: the file was broken, the process was cut short, or the test is gone."""
    path = test_id.partition("::")[0]
    if path in report.broken:
        broken = report.broken[path]
        return TestResult(test_id, Outcome.IMPORT_ERROR, 0, broken.why, broken.blame, broken.absent)
    if report.ended is Ended.NORMAL:
        return TestResult(test_id, Outcome.MISSING, 0, "the runner did not report this test")
    why = report.detail or f"not reported: the run ended by {report.ended}"
    return TestResult(test_id, Outcome.ERROR, 0, why, Blame.CODE)
