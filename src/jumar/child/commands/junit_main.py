"""Runs a command that writes JUnit XML and parses the report as text: nothing that it names is opened.

The format has no standard: what is read here is what Jenkins takes, as pytest, Node.js, Surefire, Gradle, jest-junit,
nextest, gotestsum, mocha, PHPUnit and others write it.
"""

from __future__ import annotations

import collections
import os
import re
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from jumar.child import runner_bridge

REPORT_BYTES = 64 << 20
"""A larger report is not read to its end."""

LONGEST_ID = 1000
"""Characters of an id; a case with a longer one is left out, as no record could hold many of them."""

TEXT = 8000
"""Characters that are kept of what a report says of one case."""

CASES, DEPTH = 100_000, 100
"""A report with more cases, or with elements nested more deeply, is refused."""

TAIL = 60
"""Lines of output that tell why there is no report."""

WORST_FIRST = ("failed", "error", "skipped", "xfailed", "passed")
"""Outcomes by precedence for a case reported more than once: by pytest if its clean-up fails, by others if repeated."""

UNLOADED = re.compile(r"collection failure|Test suite failed to run")
"""Message by which pytest and Jest report, as if it was a test, that a file could not be loaded."""

ARRANGING = re.compile(r"failed on (setup|teardown)")
"""Message by which pytest reports that a fixture broke."""

MISSING = re.compile(
    r"No module named '([\w.]+)'"
    r"|Cannot find module '([^'\s]+)'"
    r"|(?:ClassNotFoundException|NoClassDefFoundError): ([\w.$/]+)"
)
"""Messages by which Python, Node.js and Java report a missing module."""


class UnreadableReport(Exception):  # noqa: N818  it says what is wrong with the report
    """The report is not JUnit XML."""


class JunitCase(NamedTuple):
    """One test in a JUnit report."""

    id: str
    names: tuple[str, ...]
    """Its origin in the report: its file, its class, its name."""
    outcome: str
    ms: int
    why: str


class JunitCases:
    """Collects the cases of a report while expat reads it."""

    def __init__(self) -> None:
        self.found: list[JunitCase] = []
        self._suites: list[dict[str, str]] = []
        self._case: dict[str, str] | None = None
        self._outcome, self._text, self._inside, self._depth = "passed", "", False, 0

    def build_parser(self) -> expat.XMLParserType:
        """Return a parser that fills `found`. It refuses document types: without one, no entities can blow up."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._hear
        return parser

    def _refuse(self, *_: object) -> None:
        raise UnreadableReport("it has a document type declaration")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise UnreadableReport("its elements lie too deep in each other")
        if tag == "testsuite":
            self._suites.append(attributes)
        elif tag == "testcase":
            unrun = attributes.get("status") in ("notrun", "disabled")
            self._case, self._text, self._outcome = attributes, "", "skipped" if unrun else "passed"
        elif self._case is not None and tag in ("failure", "error", "skipped"):
            kind = attributes.get("type", "")
            outcome = {"failure": "failed", "error": "error", "skipped": "skipped"}[tag]
            outcome = "xfailed" if kind == "pytest.xfail" else outcome
            self._outcome = min(self._outcome, outcome, key=WORST_FIRST.index)
            self._inside = True
            self._hear("\n".join(part for part in (kind, attributes.get("message", "")) if part) + "\n")

    def _hear(self, text: str) -> None:
        if self._inside and len(self._text) < TEXT:
            self._text += text[:TEXT]

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testsuite":
            self._suites.pop()
        elif tag == "testcase" and self._case is not None:
            self._keep(self._case)
            self._case = None
        elif tag in ("failure", "error", "skipped"):
            self._inside = False

    def _keep(self, case: dict[str, str]) -> None:
        suite = self._suites[-1] if self._suites else {}
        file = _make_relative(case.get("file") or suite.get("file", ""))
        name = case.get("name", "")
        group = case.get("classname", "" if file else suite.get("name", ""))
        # Without two colons it would be taken for the slug of an annotation.
        test_id = "::".join(part for part in (file, group if file or group else "suite", name) if part)
        if name and len(test_id) <= LONGEST_ID:
            found = JunitCase(
                test_id, (file, group, name), self._outcome, _parse_ms(case.get("time", "")), self._text.strip()
            )
            self.found.append(found)
        if len(self.found) > CASES:
            raise UnreadableReport("it has too many cases")


def main() -> None:
    """Serve one request: list the tests of a report, or report the outcomes of the requested ones."""
    runner_bridge.serve(run_job)


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """Run the command, read its report, send the records."""
    send(["hello", {}])
    pattern, asked = config["report"], config["ids"]
    heard: collections.deque[str] = collections.deque(maxlen=TAIL)
    try:
        for path in find_reports(pattern):
            path.unlink()
        if "*" not in pattern:
            Path(pattern).parent.mkdir(parents=True, exist_ok=True)
        status = runner_bridge.run_program(config["argv"], heard.append, stderr=subprocess.STDOUT)
    except OSError as error:
        send(["unusable", f"cannot run [tests] command {config['argv'][0]}: {error.strerror}"])
        return 0
    if not (there := find_reports(pattern)):
        send_missing_report(status, runner_bridge.normalise_text("".join(heard)), config, send)
        return 0
    cases: dict[str, JunitCase] = {}
    try:
        for path in there:
            for case in read(path):
                cases[case.id] = min(cases.get(case.id, case), case, key=lambda c: WORST_FIRST.index(c.outcome))
    except UnreadableReport as error:
        send(["stopped", f"the report {path} cannot be read: {error}"])
    send_cases(list(cases.values()), asked, send)
    if status and not any(case.outcome in ("failed", "error") for case in cases.values()):
        # What was asked for and is not in the report was not found: that is no red of the code.
        told = {name for case in cases.values() for name in (case.id, case.id.partition("[")[0])}
        for test_id in (i for i in asked if i not in told):
            send(["result", test_id, "missing", 0, "the report does not name this test", "test", ""])
        send(["stopped", f"the command left with status {status} although its report tells of no failure"])
    return 0


def send_missing_report(status: int, said: str, config: dict[str, Any], send: runner_bridge.Send) -> None:
    """Report that a command wrote no report: if it failed, code that does not compile is the usual reason.

    Whose code that is, cannot be told from here. A command that is content and wrote nothing is set up wrongly.
    """
    why = f"the command left with status {status} and wrote no report at {config['report']}"
    if status == 0 or not config["ids"]:
        last = said.strip().rpartition("\n")[2]
        send(["unusable", f"{why}; it said last: {last}" if last else why])
        return
    for head in list_heads(config["ids"]):
        send(["broken", head, f"{why}\n{said}", "", ""])


def send_cases(cases: Sequence[JunitCase], asked: Sequence[str], send: runner_bridge.Send) -> None:
    """Send the ids of *cases* if nothing was asked for, else the results of the asked ones and what broke them."""
    wanted = frozenset(asked)
    unloaded = [case for case in cases if case.outcome in ("failed", "error") and UNLOADED.search(case.why)]
    tests = [case for case in cases if case not in unloaded] if unloaded else cases
    if not asked:
        runner_bridge.collect(send, [case.id for case in tests])
    for case in tests:
        if case.id in wanted or case.id.partition("[")[0] in wanted:
            send(["result", case.id, case.outcome, case.ms, runner_bridge.normalise_text(case.why), *find_blame(case)])
    for case in unloaded:
        for head in list_heads(asked) if asked else case.names[2:]:
            if not asked or is_load_failure(case, head):
                send(["broken", head, runner_bridge.normalise_text(case.why), *find_blame(case)])


def list_heads(ids: Sequence[str]) -> list[str]:
    """Return the files or classes of *ids*, each once."""
    return list(dict.fromkeys(i.partition("::")[0] for i in ids))


def is_load_failure(case: JunitCase, head: str) -> bool:
    """Return whether *case*, which is no test, reports that the file or class *head* could not be loaded."""
    spelled = (spelling for name in case.names if name for spelling in (name, name.replace(".", "/") + ".py"))
    return any(head == name or head.startswith(name + ".") for name in spelled)


def find_blame(case: JunitCase) -> tuple[str, str]:
    """Return a `core.verdict.Blame`, and what is absent, as far as words tell: this is a report, not an exception."""
    if case.outcome == "passed":
        return "", ""
    if case.outcome in ("skipped", "xfailed"):
        return "test", ""
    if case.outcome == "error" and (missing := MISSING.search(case.why)):
        python, node, java = missing.groups(default="")
        return "absent", python or node or java.replace("/", ".")
    return ("test" if UNLOADED.search(case.why) or ARRANGING.search(case.why) else "code"), ""


def find_reports(pattern: str) -> list[Path]:
    """Return the files that *pattern*, a path or one with `*`, stands for, in their order."""
    return sorted(path for path in Path().glob(pattern) if not path.is_dir())


def read(path: Path) -> list[JunitCase]:
    """Return the cases of the report in *path*.

    Raises:
        UnreadableReport: if it is no JUnit XML, or no file.
    """
    cases = JunitCases()
    parser = cases.build_parser()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableReport("it is no file")
            for _ in range(REPORT_BYTES >> 16):
                piece = stream.read(1 << 16)
                parser.Parse(piece, not piece)
                if not piece:
                    return cases.found
    except (OSError, expat.ExpatError, ValueError, LookupError) as error:
        raise UnreadableReport(str(error)) from error
    raise UnreadableReport("it is too large")


def _make_relative(path: str) -> str:
    if not path:
        return ""
    room = os.path.realpath(Path.cwd()) + os.sep
    real = os.path.realpath(path)
    return real[len(room) :] if real.startswith(room) else os.path.normpath(path)


def _parse_ms(seconds: str) -> int:
    try:
        return min(max(int(1000 * float(seconds.replace(",", "") or 0)), 0), 1 << 40)
    except (ValueError, OverflowError):
        return 0
