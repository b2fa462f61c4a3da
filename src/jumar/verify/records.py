"""What a runner's end of the channel says, decoded. All runners speak the same records.

| record | says |
| --- | --- |
| `["hello", {...}]` | first: the runner was found; nothing of the code under test has run |
| `["collected", [id, ...]]` | ids that were found, in batches |
| `["start", id]` | this test runs next, where the runner tells |
| `["result", id, outcome, ms, excerpt, blame, absent]` | one test; `blame` is a `core.verdict.Blame` or empty |
| `["broken", path, why, blame, absent]` | a test file that could not be collected; `""` stands for all |
| `["unusable", why]`, `["usage", why]` | the runner is not there, or refuses its own configuration |
| `["stopped", why]` | something under test ended the session |
| `["end", status]` | last: the status the process is about to leave with |
"""

from __future__ import annotations

from collections.abc import Iterable

from jumar.core.verdict import Blame, Broken, Ended, Outcome, Report, TestResult
from jumar.ports import Collected, Record


def collected(records: Iterable[Record], ended: Ended, detail: str) -> Collected:
    """The ids in the records of a collection."""
    ids: list[str] = []
    broken: dict[str, Broken] = {}
    anomaly = "" if ended is Ended.NORMAL else detail
    for record in records:
        match record:
            case ["collected", list(some)]:
                ids.extend(map(str, some))
            case ["broken", str(path), str(why), str(blame), str(absent)]:
                broken[path] = Broken(why, _blame(blame), absent)
            case ["unusable" | "usage", str(why)]:
                anomaly = why
            case ["stopped", str(why)]:
                anomaly = f"the collection was stopped: {why}"
    return Collected(ids=tuple(dict.fromkeys(ids)), broken=broken, anomaly=anomaly)


def report(records: Iterable[Record], ended: Ended, detail: str) -> Report:
    """The results in the records of a verification. What was collected and then not reported is a result too."""
    results: dict[str, TestResult] = {}
    twice: list[str] = []
    broken: dict[str, Broken] = {}
    found: list[str] = []
    running = ""
    for record in records:
        match record:
            case ["collected", list(some)]:
                found.extend(map(str, some))
            case ["start", str(running)]:
                pass
            case ["result", str(test_id), str(outcome), int(ms), str(excerpt), str(blame), str(absent)]:
                twice += [f"{test_id} was reported twice"] if test_id in results else []
                results[test_id] = TestResult(test_id, Outcome(outcome), ms, excerpt, _blame(blame), absent)
            case ["broken", str(path), str(why), str(blame), str(absent)]:
                broken[path] = Broken(why, _blame(blame), absent)
            case ["unusable" | "usage", str(why)]:
                ended, detail = Ended.UNSTARTED, why
            case ["stopped", str(why)] if ended is Ended.NORMAL:
                ended, detail = Ended.EXIT, f"the session was stopped: {why}"
    for test_id in found:
        results.setdefault(test_id, _silent(test_id, ended, detail, lost=test_id == running))
    return Report(ended=ended, results=tuple(results.values()), broken=broken, anomalies=tuple(twice), detail=detail)


def _silent(test_id: str, ended: Ended, detail: str, *, lost: bool) -> TestResult:
    """The result of a test that was collected and never reported; *lost* if the process ended in it."""
    if ended is Ended.NORMAL:
        return TestResult(test_id, Outcome.MISSING, 0, "collected and not run")
    if lost:
        outcome = Outcome.TIMEOUT if ended is Ended.TIMEOUT else Outcome.ERROR
        return TestResult(test_id, outcome, 0, f"the run ended in this test: {detail}", Blame.CODE)
    return TestResult(test_id, Outcome.ERROR, 0, f"not run, the run ended before: {detail}", Blame.CODE)


def _blame(said: str) -> Blame | None:
    return Blame(said) if said in frozenset(Blame) else None
