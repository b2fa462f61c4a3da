"""Runs `[tests] command`, which writes a JUnit XML report, and reads the report at `[tests] report`.

Ids are `file::class::name` where the report tells the file, else `class::name`. The evidence is what the report says.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from jumar.child import start
from jumar.child.commands import junit_main
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.errors import BadInput
from jumar.languages.project_kinds import find_test_files
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode
from jumar.sandbox.program_files import find_path_files

IDS, REPORT = "{ids}", "{report}"


class JunitRunner:
    """The adapter of commands that write JUnit XML."""

    name = "junit"
    grade = "X"

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Return the programs on the person's PATH: only the person knows which of them the command needs."""
        return Surroundings(readable=find_path_files(environ.get("PATH", ""), environ.get("HOME", ""), origin))

    def collection(self, suite: Suite, room: Path) -> Invocation:  # noqa: ARG002  # as above
        """Return the command without names: the tests that it reports are the suite."""
        return _build_invocation(suite, ())

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # as above
        """Return the command with the names of *ids*, if it has a place for them."""
        return _build_invocation(suite, ids)

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        return decode.parse_collection(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*, by the usual names and folders, and those that *select* names."""
        return find_test_files(paths, select)

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:  # noqa: ARG002  # of no known language
        """Return no sites: a file does not show the names of its tests in a report."""
        return ()


def _build_invocation(suite: Suite, ids: Sequence[str]) -> Invocation:
    if not suite.command.strip() or not suite.report:
        raise BadInput(
            "the runner junit needs [tests] command (what runs the tests) and report (where it writes its JUnit XML); "
            'for a command that writes none, set [tests] runner = "command"'
        )
    report = PurePosixPath(suite.report)
    if report.is_absolute() or ".." in report.parts:
        raise BadInput(f"[tests] report = {suite.report!r} must be a path in the task's own folder")
    try:
        words = shlex.split(suite.command)
    except ValueError as error:
        raise BadInput(f"[tests] command = {suite.command!r} is no command line: {error}") from error
    return Invocation(
        argv=(sys.executable, "-I", "-S", "-B", *start.build_command(junit_main)),
        config={"argv": list(_fill_in(words, ids, str(report))), "report": str(report), "ids": list(ids)},
        env=suite.env,
    )


def _fill_in(words: Iterable[str], ids: Sequence[str], report: str) -> Iterable[str]:
    """Return *words* with the path of the report; those with a place for ids are repeated for every asked name."""
    names = list(dict.fromkeys(i.rpartition("::")[2] for i in ids))
    for word in (word.replace(REPORT, report) for word in words):
        yield from (word.replace(IDS, name) for name in names) if IDS in word else (word,)


_SCRIPT = """\
import pathlib, sys, types
from xml.etree import ElementTree as xml

report, *names = sys.argv[1:]
suite = xml.Element("testsuite", name="sample")
case = lambda name: xml.SubElement(suite, "testcase", classname="sample", name=name, file="tests/sample.py")
module = types.ModuleType("sample")
try:
    exec(pathlib.Path("tests/sample.py").read_text(), vars(module))
except ImportError as error:
    loading = xml.SubElement(suite, "testcase", name="tests/sample.py")
    xml.SubElement(loading, "error", message="collection failure").text = str(error)
for name in names or [name for name in vars(module) if name.startswith("test_")]:
    if name not in vars(module):
        continue
    if not names:
        xml.SubElement(case(name), "skipped", message="only listed")
        continue
    try:
        vars(module).get("setup", lambda: None)()
    except Exception as error:
        xml.SubElement(case(name), "error", message=f"failed on setup with {error!r}")
        continue
    try:
        vars(module)[name]()
        case(name)
    except AssertionError as error:
        xml.SubElement(case(name), "failure", message=repr(error))
xml.ElementTree(suite).write(report)
sys.exit(any(True for tag in ("failure", "error") for _ in suite.iter(tag)))
"""

_ONE = "def test_one():\n    assert 1 + 1 == {}\n"

SAMPLES: dict[str, dict[str, str]] = {
    name: {"check.py": _SCRIPT, "tests/sample.py": source}
    for name, source in (
        ("passing", _ONE.format(2)),
        ("failing", _ONE.format(3)),
        ("broken_import", "import no_such_module_anywhere\n\n\n" + _ONE.format(2)),
        ("broken_fixture", "def setup():\n    raise RuntimeError('broken')\n\n\n" + _ONE.format(2)),
        (
            "several",
            (
                "from threading import Event\n\n\ndef test_one(): pass\n\n\n"
                "def test_two(): assert False\n\n\ndef test_three(): Event().wait()\n"
            ),
        ),
    )
}
"""Tiny projects, as `jumar.testing.check_runner` wants them; `SAMPLE_SUITE` runs them."""

SAMPLE_SUITE = Suite(runner="junit", command="python check.py {report} {ids}", report="out/report.xml")

plugin = JunitRunner()
