"""Decodes the records of a runner. All runners send the same records.

| record | says |
| --- | --- |
| `["hello", {...}]` | first: no code under test has run; `shadows`: modules of the room that hide installed ones |
| `["collected", [id, ...]]` | ids that were found, in batches |
| `["beyond", [id, ...]]` | ids in the same files that were not asked for, in batches |
| `["start", id]` | this test runs next, where the runner tells |
| `["result", id, outcome, ms, excerpt, blame, absent]` | one test; `blame` is a `core.verdict.Blame` or empty |
| `["broken", path, why, blame, absent]` | a test file that could not be collected; `""` stands for all |
| `["unusable", why]`, `["usage", why]` | the runner is not there, or refuses its own configuration |
| `["stopped", why]` | something under test ended the session |
| `["doubtful", why]` | something outside of the tests makes all of them no evidence in two processes |
| `["tampered", what]` | the framework, a hook or a test is not what it was, or a pass is not what was seen |
| `["unconfined", what]` | the tests' own process, beside that of the code under test, is not kept from this |
| `["distributed"]` | the project has its tests distributed among processes, which this one did not do |
| `["lost", id]` | after this test the process of the code under test was gone |
| `["doubted", id, why]` | the test is no evidence in two processes, and why |
| `["conversed", id, why]` | more than questions and data crossed in the test, and why |
| `["matched", id]` | the test compares an object of the code under test with one that it made of its class |
| `["copied", id]` | the code changed its copy of what the test holds, which the test does not see |
| `["tied", id]` | the test does what needs the code under test in its own process: it lends a file, patches a library |
| `["led", id]` | the test does that in a step with what the code answered, which chooses what it answers |
| `["strength", id, n]` | the test came to no assertion (-1), cannot be falsified (0), or not wholly (1) |
| `["reached", id, places]` | how often the test came to an assertion or comparison, by place; sums of data |
| `["missed", id, lines]` | the lines of its own assertions and comparisons that the test did not come to |
| `["asked", count]` | requests of the code under test that the tests in a process of their own performed |
| `["finish"]` | there are no more results, where the runner tells |
| `["end", status]` | last: the status the process is about to leave with |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jumar.core.quoting import make_one_line
from jumar.core.state.verdict import Blame, Broken, Ended, Outcome, Report, TestResult
from jumar.ports import Collected, Record

ORDER = ("hello", "collected", "start", "result", "finish", "end")
"""Records of a serial runner come in this order, but for the start of the next test; others come at any time."""


NOTED = ("tied", "led", "matched", "copied")
"""Records that note something of a test, and fields of a report."""

LINE = 300
"""Characters of what a process says in a reason."""


def parse_collection(records: Iterable[Record], ended: Ended, detail: str) -> Collected:
    """Return the ids in the records of a collection."""
    ids: list[str] = []
    broken: dict[str, Broken] = {}
    passed_over: dict[str, str] = {}
    anomaly = "" if ended is Ended.NORMAL else detail
    for record in records:
        match record:
            case ["passed_over", str(path), str(why)]:
                passed_over[path] = make_one_line(why.removeprefix("Skipped: "), LINE)
            case ["collected", list(some)]:
                ids.extend(map(str, some))
            case ["broken", str(path), str(why), str(blame), str(absent)]:
                broken[path] = Broken(why, _parse_blame(blame), absent)
            case ["unusable" | "usage", str(why)]:
                anomaly = why
            case ["stopped", str(why)]:
                anomaly = f"the collection was stopped: {why}"
    return Collected(ids=tuple(dict.fromkeys(ids)), broken=broken, passed_over=passed_over, anomaly=anomaly)


def build_report(records: Iterable[Record], ended: Ended, detail: str, *, serial: bool = False) -> Report:
    """Return the results in the records of a verification. A test that was collected and not reported counts.

    A *serial* runner says what it starts, runs one test at a time, and says when it is done.
    """
    records = list(records)
    odd = [*find_disorder(records, serial=serial and ended is Ended.NORMAL)]
    results: dict[str, TestResult] = {}
    broken: dict[str, Broken] = {}
    found: list[str] = []
    running, leaves = "", ended is not Ended.NORMAL
    for record in records:
        match record:
            case ["collected", list(some)]:
                found.extend(map(str, some))
            case ["start", str(running)]:
                pass
            case ["result", str(test_id), str(outcome), int(ms), str(excerpt), str(blame), str(absent)]:
                odd += [f"{test_id} was reported twice"] if test_id in results else []
                known = Outcome(outcome) if outcome in frozenset(Outcome) else None
                odd += [] if known else [f"{test_id} was reported with an outcome that there is none of"]
                results[test_id] = TestResult(test_id, known or Outcome.ERROR, ms, excerpt, _parse_blame(blame), absent)
            case ["broken", str(path), str(why), str(blame), str(absent)]:
                broken[path] = Broken(why, _parse_blame(blame), absent)
            case ["unusable" | "usage", str(why)]:
                ended, detail = Ended.UNSTARTED, make_one_line(why, LINE)
            case ["tampered", str(what)]:
                odd.append(f"tampered with: {make_one_line(what, LINE)}")
            case ["stopped" | "doubtful", str(why)] if ended is Ended.NORMAL:
                ended, detail = Ended.EXIT, f"the session was stopped: {make_one_line(why, LINE)}"
    over = results.keys() >= {*found} and not (leaves or any(record[0] == "doubtful" for record in records))
    for test_id in found:
        results.setdefault(test_id, _build_silent(test_id, ended, detail, lost=test_id == running))
    report = Report(ended=ended, results=tuple(results.values()), broken=broken, anomalies=tuple(odd), detail=detail)
    stopped = over and ended is Ended.EXIT
    return _add_circumstances(msgspec.structs.replace(report, stopped=stopped), records)


def find_disorder(records: Sequence[Record], *, serial: bool) -> Iterator[str]:
    """Yield faults that no honest run has, a sentence each: records out of order, too many or too few."""
    kinds = [str(record[0]) for record in records]
    for kind, place in (("hello", 0), ("end", len(kinds) - 1)):
        if kind in kinds and (kinds.count(kind) > 1 or kinds[place] != kind):
            yield f"the record `{kind}` came twice or out of its place"
    if not serial:
        return
    last, running = "hello", ""
    for record in records:
        kind = str(record[0])
        if kind in ORDER and ORDER.index(kind) < ORDER.index(last) and (kind, last) != ("start", "result"):
            yield f"a record `{kind}` came after one that says `{last}`"
        if kind == "result" and record[1] != running:
            yield f"{record[1]} was reported and had not been started"
        running = str(record[1]) if kind == "start" else running
        last = kind if kind in ORDER else last
    if "start" in kinds and not {"finish", "stopped"}.intersection(kinds):
        yield "the session ended before it was over"


def _add_circumstances(report: Report, records: Sequence[Record]) -> Report:
    """Add to *report* what bears on the grade: the separation of processes."""
    asked, unconfined = report.asked_tests, list(report.unconfined)
    noted: dict[str, list[str]] = {what: [*getattr(report, what)] for what in NOTED}
    shadows: tuple[str, ...] = ()
    lost, strengths, beyond = "", dict[str, int](), list[str]()
    reasons: dict[str, dict[str, str]] = {"doubted": {}, "conversed": {}}
    for record in records:
        match record:
            case ["asked", int(asked)]:
                pass
            case ["lost", str(lost)]:
                pass
            case ["beyond", list(some)]:
                beyond.extend(map(str, some))
            case ["doubted" | "conversed" as what, str(test_id), str(why)]:
                reasons[what][test_id] = make_one_line(why, LINE)
            case ["strength", str(test_id), int(strength)]:
                strengths[test_id] = strength
            case [str(what), str(test_id)] if what in noted:
                noted[what].append(test_id)
            case ["hello", {"shadows": list(paths)}]:
                shadows = tuple(map(str, paths))
            case ["unconfined", str(what)]:
                unconfined.append(make_one_line(what, LINE))
    split = ["distributed"] in records
    report = msgspec.structs.replace(
        report, distributed=split, shadows=shadows, strengths=strengths, beyond=tuple(beyond), **reasons
    )
    noted_ids = {what: tuple(ids) for what, ids in noted.items()}
    report = msgspec.structs.replace(report, missed=dict(_list_missed(records)), **noted_ids)
    report = msgspec.structs.replace(report, reached=dict(_list_reached(records)))
    return msgspec.structs.replace(report, asked_tests=asked, unconfined=tuple(unconfined), lost=lost)


def _list_reached(records: Sequence[Record]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the tests of a challenge, each with what it came to, and how often."""
    for record in records:
        match record:
            case ["reached", str(test_id), dict(places)]:
                yield test_id, {str(place): count for place, count in places.items() if isinstance(count, int)}


def _list_missed(records: Sequence[Record]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the tests that did not come to all of their own assertions, each with the lines of these."""
    for record in records:
        match record:
            case ["missed", str(test_id), list(lines)]:
                yield test_id, tuple(line for line in lines if isinstance(line, int))


def _build_silent(test_id: str, ended: Ended, detail: str, *, lost: bool) -> TestResult:
    """Return the result of a test that was collected and never reported; *lost* if the process ended in it."""
    if ended is Ended.NORMAL:
        return TestResult(test_id, Outcome.MISSING, 0, "collected and not run")
    if lost:
        outcome = Outcome.TIMEOUT if ended is Ended.TIMEOUT else Outcome.ERROR
        return TestResult(test_id, outcome, 0, f"the run ended in this test: {detail}", Blame.CODE)
    return TestResult(test_id, Outcome.ERROR, 0, f"not run, the run ended before: {detail}", Blame.CODE)


def _parse_blame(said: str) -> Blame | None:
    return Blame(said) if said in frozenset(Blame) else None
