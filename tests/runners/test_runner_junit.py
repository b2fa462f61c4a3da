"""The runner of commands that write JUnit XML keeps the contract, and a report is never more than text."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest

from jumar.child.commands.junit_main import JunitCase, UnreadableReport, find_blame, is_load_failure, read
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, Cause, Ended, Verdict
from jumar.errors import BadInput
from jumar.ports import Collected, Verification
from jumar.runners.junit import SAMPLE_SUITE, JunitRunner
from jumar.testing import check_runner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

RUNNER = JunitRunner()
PATH = {"PATH": os.environ["PATH"]}


@pytest.mark.proof
def test_junit_keeps_the_contract_of_runners(tmp_path: Path) -> None:
    anyio.run(check_runner, RUNNER, tmp_path, SAMPLE_SUITE)


PYTEST = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="3">
<testcase classname="tests.test_a.TestIt" name="test_ok" time="0.002" />
<testcase classname="tests.test_a" name="test_no[1-&quot;x&quot;]" time="0.5"><failure message="assert 1 == 2">
def &lt;
E assert</failure></testcase>
<testcase classname="tests.test_a" name="test_setup">
<error message="failed on setup with &quot;KeyError: 1&quot;">t</error></testcase>
<testcase classname="tests.test_a" name="test_twice" time="0.1" />
<testcase classname="tests.test_a" name="test_twice">
<error message="failed on teardown with &quot;x&quot;">t</error></testcase>
<testcase classname="tests.test_a" name="test_skip">
<skipped type="pytest.skip" message="why">f:1: why</skipped></testcase>
<testcase classname="tests.test_a" name="test_x"><skipped type="pytest.xfail" message="" /></testcase>
<testcase classname="" name="tests.test_b">
<error message="collection failure">E   ModuleNotFoundError: No module named 'app.new'
</error></testcase></testsuite></testsuites>"""

OTHERS = """<testsuites>
<testsuite name="com.x.CalcTest" file="src/CalcTest.php">
<testcase classname="Calc" name="adds" time="1,000.5"/></testsuite>
<testsuite name="bare"><properties><property name="os" value="x"/></properties>
<testcase name="no class"><system-out>&lt;failure/&gt;</system-out></testcase>
<testcase name="nested" classname="a::b" time="nan"><failure type="E"/><failure message="and"/>
<error message="both"/></testcase>
<testcase name="off" classname="gtest" status="notrun"/>
<testcase name="again" classname="surefire"><flakyFailure message="first">x</flakyFailure></testcase>
<testcase name="npe" classname="J">
<error type="java.lang.NoClassDefFoundError">java.lang.NoClassDefFoundError: com/x/New
 at</error></testcase>
<testcase name="" classname="nameless"/><testcase/>
</testsuite></testsuites>"""


def _read(folder: Path, text: str | bytes) -> list[JunitCase]:
    path = folder / "report.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path)


def test_what_pytest_reports_is_read(tmp_path: Path) -> None:
    cases = _read(tmp_path, PYTEST)

    assert [(case.id, case.outcome, case.ms) for case in cases] == [
        ("tests.test_a.TestIt::test_ok", "passed", 2),
        ('tests.test_a::test_no[1-"x"]', "failed", 500),
        ("tests.test_a::test_setup", "error", 0),
        ("tests.test_a::test_twice", "passed", 100),
        ("tests.test_a::test_twice", "error", 0),
        ("tests.test_a::test_skip", "skipped", 0),
        ("tests.test_a::test_x", "xfailed", 0),
        ("suite::tests.test_b", "error", 0),
    ]
    assert cases[1].why == "assert 1 == 2\n\ndef <\nE assert"
    said = [find_blame(case) for case in cases]
    assert said == [("", ""), ("code", ""), ("test", ""), ("", ""), *[("test", "")] * 3, ("absent", "app.new")]
    heads = ("tests.test_b", "tests.test_b.TestIt", "tests/test_b.py", "tests.test_bc", "tests")
    assert [is_load_failure(cases[-1], head) for head in heads] == [True, True, True, False, False]


def test_what_others_report_is_read(tmp_path: Path) -> None:
    cases = _read(tmp_path, OTHERS)

    assert [(case.id, case.outcome) for case in cases] == [
        ("src/CalcTest.php::Calc::adds", "passed"),
        ("bare::no class", "passed"),
        ("a::b::nested", "failed"),
        ("gtest::off", "skipped"),
        ("surefire::again", "passed"),
        ("J::npe", "error"),
    ]
    assert [case.ms for case in cases[:3]] == [1_000_500, 0, 0]
    assert find_blame(cases[-1]) == ("absent", "com.x.New")


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><testsuite>&b;</testsuite>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY p SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&p;"/></testsuite>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "document type"),
        (OUTSIDE, "document type"),
        ("<a>" * 1000, "too deep"),
        ("<testsuite><testcase name='a'/>", "no element found"),
        ("not xml", "syntax error"),
        ("", "no element found"),
        (b"<?xml version='1.0' encoding='no-such'?><a/>", "unknown encoding"),
        (b"\xff\x00\xff", "syntax error"),
        ("<testsuite>" + "<testcase name='n'/>" * 100_001 + "</testsuite>", "too many cases"),
    ],
)
def test_a_report_that_is_none_is_refused(tmp_path: Path, text: str | bytes, why: str) -> None:
    with pytest.raises(UnreadableReport, match=why):
        _read(tmp_path, text)


def test_only_a_file_is_read_and_not_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with (tmp_path / "large").open("wb") as sink:
        sink.write(b"<testsuite>")
        sink.seek(65 << 20)
        sink.write(b" ")
    (tmp_path / "endless").symlink_to("/dev/zero")

    for name in ("pipe", "link", "large", "endless"):
        with pytest.raises(UnreadableReport):
            read(tmp_path / name)


def test_a_long_story_and_a_long_name_are_bounded(tmp_path: Path) -> None:
    cases = _read(
        tmp_path,
        f"<testsuite><testcase name='{'n' * 2000}'/><testcase name='a'><failure message='{'m' * 99_999}'>"
        f"{'t ' * 99_999}</failure></testcase></testsuite>",
    )

    assert [case.id for case in cases] == ["suite::a"]
    assert len(cases[0].why) <= 16_000


@pytest.mark.parametrize(
    ("suite", "sentence"),
    [
        (Suite(), "needs .tests. command"),
        (Suite(command="make test"), "needs .tests. command"),
        (Suite(command="make 'test", report="r.xml"), "No closing quotation"),
        (Suite(command="make", report="/var/r.xml"), "must be a path in the task's own folder"),
        (Suite(command="make", report="../r.xml"), "must be a path in the task's own folder"),
    ],
)
def test_what_is_missing_in_the_task_is_told(suite: Suite, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        RUNNER.collection(suite, Path("/room"))


@pytest.mark.parametrize(
    ("command", "ids", "argv"),
    [
        ("mvn -q test", ("a::b",), ["mvn", "-q", "test"]),
        ("run {ids} --out={report}", ("f::c::one two", "f::c::3"), ["run", "one two", "3", "--out=r/j.xml"]),
        ("run {ids} -k", (), ["run", "-k"]),
        ("gradle --tests='*.{ids}'", ("C::a", "C::b"), ["gradle", "--tests=*.a", "--tests=*.b"]),
        ("sh -c 'a; b > \"$c\"'", (), ["sh", "-c", 'a; b > "$c"']),
    ],
)
def test_a_command_is_split_as_a_shell_would_and_names_get_words(
    command: str, ids: tuple[str, ...], argv: list[str]
) -> None:
    made = RUNNER.verification(Suite(command=command, report="./r/j.xml"), Path("/room"), ids)

    assert made.config["argv"] == argv


def test_test_files_are_known_by_usual_names_and_by_being_selected() -> None:
    paths = (
        "src/calc.py",
        "test_calc.py",
        "src/test/java/CalcTest.java",
        "tests/data.txt",
        "lib/calc.spec.ts",
        "qa/x.c",
    )

    assert RUNNER.test_files(paths, ()) == tuple(p for p in paths if p not in ("src/calc.py", "qa/x.c"))
    assert RUNNER.test_files(paths, ("qa",)) == tuple(p for p in paths if p != "src/calc.py")


class Desk:
    """Collects and judges one small project with a command."""

    def __init__(self, folder: Path, suite: Suite, files: dict[str, str]) -> None:
        for path, text in files.items():
            (folder / "source" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / path).write_text(text, "utf-8")
        store = Store(folder / "objects")
        self.tree = store.capture(folder / "source")
        self.verifier = TrustedVerifier(store, RUNNER, suite, folder / "run", environ=PATH)

    def collect(self) -> Collected:
        return anyio.run(self.verifier.collect, self.tree)

    def judge(self, *ids: str) -> Verification:
        self.verifier.expected = ids
        return anyio.run(self.verifier.verify, self.tree, {})


def _outcomes(verdict: Verdict) -> dict[str, tuple[str, Blame | None]]:
    return {i: (str(r.outcome), r.blame) for i, r in verdict.results.items()}


@pytest.mark.slow
def test_a_real_pytest_is_run_by_its_report(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        Suite(
            command="python -m pytest -q --continue-on-collection-errors --junitxml={report}", report="out/junit.xml"
        ),
        {
            "out/junit.xml": "<testsuite><testcase classname='stale' name='test_stale'/></testsuite>",
            "test_a.py": "import pytest\ndef test_ok(): pass\ndef test_no(): assert 0\n"
            "@pytest.mark.parametrize('n', [1, 2])\ndef test_many(n): assert n\ndef test_fix(nope): pass\n",
            "test_b.py": "import not_there\ndef test_b(): pass\n",
        },
    )

    found = desk.collect()
    done = desk.judge("test_a::test_ok", "test_a::test_no", "test_a::test_many", "test_a::test_fix", "test_b::test_b")

    assert found.ids == (
        "test_a::test_ok", "test_a::test_no", "test_a::test_many[1]", "test_a::test_many[2]", "test_a::test_fix",
    )  # fmt: skip
    assert _outcomes(done.verdict) == {
        "test_a::test_ok": ("passed", None),
        "test_a::test_no": ("failed", Blame.CODE),
        "test_a::test_many": ("passed", None),
        "test_a::test_fix": ("error", Blame.TEST),
        "test_b::test_b": ("import_error", Blame.ABSENT),
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_test_runner_of_node_is_run_by_its_report(tmp_path: Path) -> None:
    command = "node --test --test-reporter=junit --test-reporter-destination={report}"
    source = "const t = require('node:test'); const a = require('node:assert');\n"
    source += "t('adds up', () => {}); t('does not', () => a.equal(1, 2));\n"
    desk = Desk(tmp_path, Suite(command=command, report="junit.xml"), {"sum.test.js": source})

    found = desk.collect()
    done = desk.judge(*found.ids)

    assert [i.rpartition("::")[2] for i in found.ids] == ["adds up", "does not"]
    assert [r.outcome for r in done.verdict.results.values()] == ["passed", "failed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "anomaly", "void", "outcome"),
    [
        ("no-such-program-anywhere", "cannot run [tests] command no-such-program-anywhere: No such file", True, ""),
        ("python -c pass", "left with status 0 and wrote no report at r.xml", True, ""),
        ("python -c 'exit(\"no compiler\")'", "no report at r.xml; it said last: no compiler", False, "import_error"),
        ("python w.py '<testsuite>'", "the report r.xml cannot be read: no element found", False, "error"),
        ("python w.py '<testsuite><testcase name=\"a\"/></testsuite>' 3", "tells of no failure", False, "error"),
        ("python w.py '<testsuite name=\"s\"/>'", "", False, "missing"),
    ],
)
def test_a_command_without_a_usable_report_is_never_green(
    tmp_path: Path, command: str, anomaly: str, outcome: str, *, void: bool
) -> None:
    writer = "import sys\nopen('r.xml', 'w').write(sys.argv[1])\nsys.exit(int(''.join(sys.argv[2:]) or 0))\n"
    desk = Desk(tmp_path, Suite(command=command, report="r.xml"), {"w.py": writer})

    found = desk.collect()
    done = desk.judge("suite::a")

    assert anomaly in found.anomaly
    assert bool(anomaly) == bool(found.anomaly)
    assert (done.verdict.void is not None) is void
    if done.verdict.void is not None:
        assert (done.verdict.void.cause, done.ended) == (Cause.HARNESS, Ended.UNSTARTED)
        assert anomaly in done.verdict.void.reason
    else:
        assert [r.outcome for r in done.verdict.results.values()] == [outcome]


@pytest.mark.slow
def test_a_command_that_hangs_is_named_with_what_gives_it_longer(tmp_path: Path) -> None:
    found = Desk(tmp_path, Suite(command="sleep 99", report="r.xml", timeout_seconds=0.5), {"a": ""}).collect()

    assert found.anomaly.startswith("`sleep 99` was killed after 0.5 s, before it had named the tests: ")
    assert "--timeout" in found.anomaly
