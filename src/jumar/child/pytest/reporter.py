"""Plug-in that reports one result per asked id, folded from its phases, and whatever kept ids from running.

Loaded by path inside the tested interpreter; standard library only, Python 3.8 or newer. pytest hands it all it needs.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from typing import TYPE_CHECKING, Any

from jumar.child.normalise import PRINTED, shorten
from jumar.child.pytest import tracebacks
from jumar.child.pytest.blame import CODE, TEST, WRAPPED
from jumar.child.pytest_refusals import explain_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    import pytest

    Wrapper = Generator[None, Any, None]
    Send = Callable[..., None]
    from jumar.child.pytest.blame import BlameFinder
    from jumar.child.test_timeout import TimeLimit

    Plain = Callable[[str], str]
    Blamed = tuple[str, str]

BATCH = 500
"""Ids in one record: a record has a size that it may not pass."""

BLAMED = "jumar_blamed"
"""The attribute of a report that holds what `BlameFinder` found."""

WORST_FIRST = ("failed", "error", "skipped", "xfailed", "xpassed", "passed")
"""Outcomes of phases, the deciding one first. A test that failed and could not clean up either has failed."""

NO_TESTS = 5
"""Status of a session in which no test was found."""

AGAIN = "rerun"
"""Outcome that plug-ins which repeat red tests give to the phases of all attempts but the last."""


class Reporter:
    """Selects the asked ids and sends a record for everything that happens to them."""

    def __init__(self, config: dict[str, Any], send: Send, plain: Plain, blame: BlameFinder, limit: TimeLimit) -> None:
        self._shuffle, self._quiet = config.get("shuffle"), config.get("quiet", False)
        self._asked = None if config["mode"] == "collect" else frozenset(config["ids"])
        self._files = sorted({i.partition("::")[0] for i in config["ids"]})
        self._send = send
        self._plain = plain
        self._blame = blame
        self._limit, self._patience = limit, config.get("patience", (config["limit"], {}))
        self._phases: dict[str, list[tuple[str, pytest.TestReport]]] = {}
        self._started, self._partial, self._failed, self._ran = 0.0, False, False, False
        self._whole, self._keeps_bytecode = config.get("whole", False), config.get("keeps_bytecode", False)
        self._done: list[list[object]] = []  # told with what comes next: nothing runs in between

    def pytest_cmdline_parse(self) -> Wrapper:
        """Report a conftest file or plug-in that does not load, and why pytest refuses its own configuration.

        It would stop without naming a test.
        """
        outcome = yield
        raised = outcome.excinfo[1] if outcome.excinfo else None
        cause: Any = getattr(raised, "__cause__", None) or raised
        if isinstance(cause, ImportError) or _name_raised(outcome) in WRAPPED:
            why = f"{raised}" if f"{cause}" in f"{raised}" else f"{raised}: {cause}"
            self._report_broken("", why, self._blame(cause, arranging=True))
        else:
            self._report_refusal(outcome)

    def pytest_collection(self) -> Wrapper:
        """Report why pytest does not even look for tests.

        From here on no bytecode is kept, unless all is to be as usual. That of plug-ins was, as some take a second to
        compile; that of the room could only outlive its source when a test rewrites it.
        """
        sys.dont_write_bytecode |= not self._keeps_bytecode
        outcome = yield
        self._limit.switch_off()
        self._report_refusal(outcome)

    def pytest_make_collect_report(self, collector: pytest.Collector) -> Wrapper:
        """Limit the time of a collection: an endless import is a broken file, not an endless run."""
        if type(collector).__name__ == "Module":
            self._blame.add_test_file(collector.nodeid)
            vars(collector)["collect"] = self._limit.guard_collect(collector.collect)
        with self._limit.limit():
            outcome = yield
        call = None if outcome.excinfo else getattr(outcome.get_result(), "call", None)
        if call is not None and call.excinfo is not None:
            setattr(outcome.get_result(), BLAMED, self._blame(call.excinfo.value, arranging=True))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report the files that could not be collected, and those that skip all of their tests."""
        if report.failed:
            self._failed = True
            self._report_broken(report.nodeid, report.longreprtext, getattr(report, BLAMED, TEST))
        elif report.skipped and self._asked is None and report.nodeid:
            self._send(["passed_over", report.nodeid, self._plain(_get_reason(report))])

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Run what was asked for; an id without parameters asks for all of its parametrisations."""
        if self._asked is None:
            return
        kept = [i for i in items if i.nodeid in self._asked or i.nodeid.partition("[")[0] in self._asked]
        chosen = set(kept)
        dropped = [i for i in items if i not in chosen]
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:], self._partial = kept, True
        if not self._quiet:
            self._send_ids("beyond", [i.nodeid for i in dropped])
        if self._shuffle is not None:
            items[:] = shuffle_items(items, self._shuffle)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Report the test ids that were collected."""
        self._send_ids("collected", [item.nodeid for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report which test is about to run, so that it is known in which one a process was lost."""
        usual, slow = self._patience
        self._limit.start(slow.get(nodeid, usual))
        self._started, self._ran = time.monotonic(), True
        self._phases[nodeid] = []
        self._tell(["start", nodeid])

    def pytest_runtest_call(self) -> Wrapper:
        """Apply the time limit to the test itself, to its set-up, and to its clean-up."""
        with self._limit.limit():
            yield

    pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Wrapper:
        """Find out what a phase fell over while the exception is there; plug-ins that report again keep the answer."""
        if call.excinfo is not None:
            self._limit.complete(call.excinfo.value)
        with tracebacks.suppress_frames() if self._quiet and call.excinfo is not None else contextlib.nullcontext():
            outcome = yield
        if not (outcome.excinfo or call.excinfo is None or self._quiet):
            setattr(outcome.get_result(), BLAMED, self._blame(call.excinfo.value, arranging=call.when != "call"))

    def pytest_exception_interact(self) -> None:
        """Watch the next phase anew: after a failure pytest takes the watch of `faulthandler` away."""
        self._limit.switch_off()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a phase. Subtests report here too, under the id of their test, which fails if one of them does."""
        self._failed |= report.failed
        if report.failed or not hasattr(report, "context"):
            self._phases.setdefault(report.nodeid, []).append((_get_outcome(report), report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report the test, unless a plug-in that repeats red tests is about to run it again."""
        ms = int(1000 * (time.monotonic() - self._started))
        phases = self._phases.pop(nodeid, [])
        if any(outcome == AGAIN for outcome, _ in phases):
            return
        outcome, reason, printed, blamed = "error", "pytest reported no phase of this test", "", TEST
        if phases:
            outcome, report = min(phases, key=lambda phase: WORST_FIRST.index(phase[0]))
            reason = "" if outcome == "passed" or self._quiet else _get_reason(report)
            printed = "" if outcome == "passed" or self._quiet else _format_printed(report)
            blamed = ("", "") if outcome == "passed" else _get_blame(report)
        if outcome == "passed" and not any(report.when == "call" for _, report in phases):
            outcome, reason, blamed = "error", "set up and not run, as an option of pytest says (--setup-only?)", TEST
        if self._limit.rung:
            outcome, blamed = "timeout", CODE
        self._done.append(["result", nodeid, outcome, ms, self._plain(reason) + self._plain(printed), *blamed])

    def pytest_sessionfinish(self) -> Wrapper:
        """Report that there will be no more results."""
        self._limit.switch_off()
        yield
        self._tell(["finish"])

    def check_status(self, status: int, room: Path) -> None:
        """Report that the session ended with another *status* than 0 although no test failed."""
        usual = self.list_usual_statuses(room)
        if usual is not None and status not in usual:
            self._tell(["stopped", f"pytest ended with status {status}, although no test failed"])

    def list_usual_statuses(self, room: Path) -> list[int] | None:
        """Return the statuses with which the session may end as things are now; None: any.

        One of some tests of the *room* alone may end with any, as a plug-in misses the others.
        """
        if self._failed or self._partial or self._quiet or self._asked is None:
            return None
        files = (file for pattern in ("test_*.py", "*_test.py") for file in room.rglob(pattern))
        if not (self._whole or set(self._files).issuperset(file.relative_to(room).as_posix() for file in files)):
            return None
        return [0] if self._ran else [0, NO_TESTS]

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Report what broke the session (sys.exit at import, a faulty plug-in), or stopped it (pytest.exit)."""
        self._tell(["stopped", self._plain(excinfo.exconly())])

    pytest_keyboard_interrupt = pytest_internalerror

    def _send_ids(self, kind: str, ids: list[str]) -> None:
        for start in range(0, len(ids), BATCH):
            self._send([kind, ids[start : start + BATCH]])

    def close(self) -> None:
        """Send the records that are left, also after a session that did not end normally."""
        self._tell()

    def _tell(self, *records: list[object]) -> None:
        self._send(*self._done, *records)
        self._done.clear()

    def _report_refusal(self, outcome: Any) -> None:
        if _name_raised(outcome) == "UsageError":
            self._send(["usage", explain_refusal(self._plain(str(outcome.excinfo[1])), sys.executable)])

    def _report_broken(self, where: str, why: str, blamed: Blamed) -> None:
        """Report the files a collector stands for as broken. If ids were asked for, a folder becomes its files.

        In a run of everything what nobody asked for is reported, too.
        """
        where = where.partition("::")[0]
        where = "" if where == "." else where
        inside = [f for f in self._files if not where or f == where or f.startswith(where + "/")]
        for path in dict.fromkeys([*inside, where]) if self._whole else [where] if self._asked is None else inside:
            self._send(["broken", path, self._plain(why), *blamed])


def shuffle_items(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return *items* in another order: the files, the classes within a file, the tests within a class."""
    chance = random.Random(seed)  # noqa: S311  an order, no secret
    drawn: dict[object, float] = {}
    return sorted(items, key=lambda item: [drawn.setdefault(node, chance.random()) for node in item.listchain()])


def _name_raised(outcome: Any) -> str:
    """Return the class name of what a wrapped hook raised. By name, as classes moved between versions of pytest."""
    return outcome.excinfo[0].__name__ if outcome.excinfo else ""


def _get_outcome(report: pytest.TestReport) -> str:
    outcome: str = report.outcome
    if outcome == AGAIN:
        return AGAIN
    expected = hasattr(report, "wasxfail")
    if report.failed:
        return "failed" if report.when == "call" else "error"
    if report.skipped:
        return "xfailed" if expected else "skipped"
    return "xpassed" if expected else "passed"


def _get_blame(report: pytest.TestReport) -> Blamed:
    """Return who is to blame for a phase: a test that excuses itself, or whoever the exception tells."""
    if report.skipped:
        return TEST
    # What has failed without an exception has passed although the test says that it fails.
    blamed: Blamed = getattr(report, BLAMED, TEST)
    return blamed


def _get_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])
    return report.longreprtext or str(getattr(report, "wasxfail", ""))


def _format_printed(report: pytest.TestReport) -> str:
    """Return the captured output and log of a failing test, each bounded, to be shown after its traceback."""
    texts = ""
    for title, text in report.sections:
        cut = shorten(text, PRINTED)
        texts += f"\n--- {title} ---\n{cut.rstrip()}" if title.startswith("Captured") and cut.strip() else ""
    return texts
