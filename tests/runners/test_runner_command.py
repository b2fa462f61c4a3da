"""The runner of any test command: one test, told by the exit status, under every way to start it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.child.commands.test_command_main import check_startable, find_program
from jumar.cli.doctor import gate
from jumar.cli.main import call
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, Cause, Ended
from jumar.errors import BadInput
from jumar.ports import Collected, Verification
from jumar.runners.command import SAMPLE_SUITE, CommandRunner, build_argv
from jumar.runners.command import build_test_id as id_of
from jumar.runs.setup.assembly import RunPlace, build_settings, build_verifier, store_tree
from jumar.task.resolve import Options, apply_options, apply_test_command
from jumar.task.task import list_targets, load_task
from jumar.testing import check_runner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.samples import sampled
from support.processes.other_users import sandbox
from support.processes.sandboxes import environment_of

RUNNER = CommandRunner()
ENVIRON = {"PATH": os.environ["PATH"]}


@pytest.mark.proof
def test_a_test_command_keeps_the_contract_of_runners(tmp_path: Path) -> None:
    anyio.run(check_runner, RUNNER, tmp_path, SAMPLE_SUITE)


def laid_out(folder: Path, suite: Suite, files: dict[str, str]) -> tuple[TrustedVerifier, str]:
    for path, text in files.items():
        (folder / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / path).write_text(text, "utf-8")
        (folder / "source" / path).chmod(0o755)
    store = Store(folder / "objects")
    tree = store.capture(folder / "source")
    return TrustedVerifier(store, RUNNER, suite, folder / "run", environ=ENVIRON), tree


def judged(folder: Path, command: str, files: dict[str, str], seconds: float = 30.0) -> Verification:
    suite = Suite(runner="command", command=command, timeout_seconds=seconds, test_timeout_seconds=seconds)
    verifier, tree = laid_out(folder, suite, files)
    verifier.expected = (id_of(suite),)
    return anyio.run(verifier.verify, tree, {})


def collected(folder: Path, command: str, files: dict[str, str]) -> Collected:
    verifier, tree = laid_out(folder, Suite(runner="command", command=command), files)
    return anyio.run(verifier.collect, tree)


@pytest.mark.slow
def test_exit_status_0_is_a_pass_and_any_other_a_red_with_what_the_command_printed(tmp_path: Path) -> None:
    files = {"check.sh": '#!/bin/sh\necho "seen $1"; exit "$1"\n'}
    good, bad = (judged(tmp_path / status, f"./check.sh {status}", files) for status in ("0", "3"))
    piped = judged(tmp_path / "piped", "CODE=3; ./check.sh $CODE || test $? = 3", files)

    assert (good.verdict.green, good.grade, good.executions) == (True, "X", 1)
    (red,) = bad.verdict.results.values()
    assert (red.id, red.outcome, red.blame) == ("test-command::./check.sh 3", "failed", None)
    assert red.excerpt == "seen 3\nthe command left with status 3"
    assert piped.verdict.green


@pytest.mark.slow
def test_a_command_that_cannot_be_started_is_no_red(tmp_path: Path) -> None:
    absent = judged(tmp_path / "a", "no-such-program --all", {"x.c": ""})
    found = collected(tmp_path / "b", "./check.sh", {"x.c": ""})

    assert absent.verdict.void is not None
    assert absent.verdict.void.cause is Cause.HARNESS
    assert "there is no program 'no-such-program' on PATH" in absent.verdict.void.reason
    assert "there is no file ./check.sh" in found.anomaly


@pytest.mark.slow
def test_a_command_that_does_not_end_is_a_timeout_and_its_children_end_with_it(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    script = f"#!/bin/sh\n(while true; do date +%s%N > {beat}; sleep 0.05; done) &\nsleep 60\n"
    done = judged(tmp_path / "t", "./hang.sh", {"hang.sh": script}, seconds=1.5)

    (late,) = done.verdict.results.values()
    assert done.ended is Ended.TIMEOUT
    assert (late.outcome, late.blame) == ("timeout", Blame.CODE)
    assert beat.exists()
    before = beat.read_text()
    anyio.run(anyio.sleep, 0.3)
    assert beat.read_text() == before


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("make check", "make"), ("CC=gcc make check", "make"), ("./run.sh -x", "./run.sh"), ("cd x && make", "cd"),
        ("$RUN all", ""), ("(make)", ""), ("'a b' c", ""),
    ],
)  # fmt: skip
def test_the_first_program_of_a_command_is_known_where_no_shell_has_to_expand_it(command: str, program: str) -> None:
    assert find_program(command) == program
    if program in ("cd", ""):
        assert check_startable(command, "", Path()) == ""


def test_a_command_is_started_directly_unless_it_has_the_syntax_of_a_shell() -> None:
    assert build_argv("make -k 'a b'") == ("make", "-k", "a b")
    assert build_argv("make && make check") == ("/bin/sh", "-c", "make && make check")
    assert build_argv("CC=gcc make") == ("/bin/sh", "-c", "CC=gcc make")


@pytest.mark.parametrize(
    ("command", "said"),
    [(" ", "--test-command 'make check'"), ("make 'check", "No closing quotation"), ("x {ids}", "[tests] report")],
)
def test_a_command_that_cannot_be_meant_is_refused_with_the_fix(command: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        build_argv(command)
    assert said in str(refused.value)


def repository(root: Path, **files: str) -> Path:
    for path, text in {"Makefile": "check:\n\ttrue\n", "src/a.c": "", "README.md": "", "tests/t.c": ""}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for name, text in files.items():
        (root / f"{name}.toml").write_text(text)
    return root


def test_with_a_test_command_all_files_may_be_edited_but_tests_build_files_and_what_the_command_names(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path)
    (root / "ci").mkdir()
    (root / "ci" / "all.sh").write_text("")
    (root / "a_test.go").write_text("")

    task = apply_options(load_task(root), Options(model="repair", test_command="sh ci/all.sh"))
    assert list_targets(task) == ("README.md", "src/a.c")
    named = repository(tmp_path / "named", task='[tests]\ncommand = "make check"\n[files]\neditable = ["*"]\n')
    assert "Makefile" not in list_targets(apply_options(load_task(named), Options(model="repair")))


@pytest.mark.parametrize(
    ("table", "runner"),
    [
        ('command = "make check"', "command"),
        ('command = "make check"\nreport = "out.xml"', "junit"),
        ('command = "make check"\nrunner = "pytest"', "pytest"),
        ("", "pytest"),
    ],
)
def test_a_command_without_a_report_is_one_test(tmp_path: Path, table: str, runner: str) -> None:
    task = load_task(repository(tmp_path, task=f"[tests]\n{table}\n"))

    assert task.suite.runner == runner


def test_the_whole_time_is_the_command_s_unless_a_limit_for_one_test_was_chosen(tmp_path: Path) -> None:
    def limit(options: Options, **files: str) -> float:
        return apply_options(load_task(repository(tmp_path, **files)), options).suite.test_timeout_seconds

    flag = Options(model="repair", test_command="make check", timeout_seconds=600.0)
    assert limit(flag) == 600.0
    assert limit(Options(model="repair", test_command="make check", test_timeout_seconds=7.0)) == 7.0
    assert limit(flag, task="[tests]\ntest_timeout_seconds = 9\n") == 9.0
    assert limit(Options(model="repair"), task='[tests]\ncommand = "make check"\n') == 120.0


@pytest.mark.parametrize(
    ("options", "table", "said"),
    [
        (Options(tests=("tests",), test_command="make"), "", "--test names single tests"),
        (Options(), 'command = "make"\nselect = ["tests"]', "[tests] select names single tests"),
        (Options(), 'command = "make"\nexpected = ["tests/t.c::a"]', "[tests] expected names single tests"),
        (Options(), 'command = "make"\nhidden = "tests"', "[tests] hidden names single tests"),
    ],
)
def test_what_names_single_tests_is_refused_for_a_test_command(
    tmp_path: Path, options: Options, table: str, said: str
) -> None:
    task = load_task(repository(tmp_path, task=f"[tests]\n{table}\n"))
    with pytest.raises(BadInput) as refused:
        apply_options(task, replace(options, model="repair"))
    assert said in str(refused.value)


def test_doctor_looks_for_the_program_of_a_test_command(tmp_path: Path) -> None:
    root = repository(tmp_path, task='[tests]\ncommand = "sh ci.sh"\n')
    (there,) = gate.check_tests(load_task(root), ENVIRON)
    (absent,) = gate.check_tests(apply_test_command(load_task(root), Options(test_command="no-such-program")), ENVIRON)

    assert (there.ok, there.found) == (True, "sh ci.sh: one test, passed if it exits with status 0")
    assert (absent.ok, absent.mend) == (False, "there is no program 'no-such-program' on PATH")


# --- every way to start it -----------------------------------------------------------------------------------------

CHECK = '#!/bin/sh\necho "seen $(cat src/a.txt)"; grep -q right src/a.txt\n'


def scripted(folder: Path, *texts: str) -> str:
    calls = [{"tool_calls": [{"name": "write_file", "arguments": {"path": "src/a.txt", "text": t}}]} for t in texts]
    (folder / "script.jsonl").write_text("\n".join(map(json.dumps, calls)))
    return f"script:{folder / 'script.jsonl'}"


def checkable(root: Path) -> Path:
    for path, text in {"ci/check.sh": CHECK, "src/a.txt": "wrong\n", "tests/t.c": ""}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "code", "passed"),
    [("on_write", 0, 1), pytest.param("on_final", 0, 1, marks=pytest.mark.proof), ("never", 0, None)],
)
def test_a_test_command_judges_runs_under_every_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, code: int, passed: int | None
) -> None:
    root, runs = checkable(tmp_path / "r"), str(tmp_path / "runs")
    common = ("--test-command", "ci/check.sh", "--sandbox", "S0", "--confirm", "0", "--json")
    how = ("--agent", "driver", "--gate", "off", "--test-policy", policy, "--model", scripted(tmp_path, "no", "right"))

    assert call(("run", str(root), *common, *how, "--runs", runs)) == code

    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["passed"], result["total"]) == (passed, 1)
    assert call(("score", str(root), str(Path(result["events"]).parent), *common)) == 0
    scored = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (scored["ok"], scored["grade"], scored["passed"]) == (True, "X", 1)


SUM = "{ n += $1 }\nEND { print n }\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"Makefile": "check:\n\tsh run.sh\n", "run.sh": "awk -f sum.awk\n", "sum.awk": SUM},
            "the test command 'make check' names or runs Makefile, run.sh, sum.awk, which judge",
        ),
        ({"Makefile": "check:\n\tfalse\n"}, "there is nothing beside tests, build files and configuration"),
        (
            {"Makefile": "check:\n\tfalse\n", "task.toml": "[files]\neditable = ['Makefile']\n"},
            "[files] editable names none but tests, files that steer their runner, and build files",
        ),
    ],
)
def test_where_the_command_runs_all_files_the_sentence_names_them_and_the_line_that_opens_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], said: str
) -> None:
    root = tmp_path / "r"
    root.mkdir()
    for path, text in files.items():
        (root / path).write_text(text)
    how = ("--test-command", "make check", "--sandbox", "S0", "--model", scripted(tmp_path, "no"))

    assert call(("run", str(root), *how, "--runs", str(tmp_path / "runs"))) == 2
    err = capsys.readouterr().err
    assert said in err
    assert ('[files] editable = ["sum.awk"]' in err) == ("sum.awk" in files)


@pytest.mark.slow
def test_the_search_for_repairs_is_refused_under_a_test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = checkable(tmp_path / "r")

    assert call(("run", str(root), "--model", "repair", "--test-command", "true", "--sandbox", "S0")) == 2
    assert "needs tests that run one by one under pytest" in capsys.readouterr().err


@pytest.mark.slow
def test_a_test_command_of_a_task_file_is_gated_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, runs = checkable(tmp_path / "r"), str(tmp_path / "runs")
    (root / "task.toml").write_text('[tests]\ncommand = "ci/check.sh"\nconfirm = 0\n')
    claimed = {"name": "edit_claim", "arguments": {"test_id": "test-command::ci/check.sh", "edit_target": "src/a.txt"}}
    texts = ("no", "right")
    edits = [{"name": "write_file", "arguments": {"path": "src/a.txt", "text": text}} for text in texts]
    edits[0:0] = [{"name": "write_file", "arguments": {"path": "ci/check.sh", "text": "exit 0"}}]
    (tmp_path / "s").write_text("\n".join(json.dumps({"tool_calls": [claimed, edit]}) for edit in edits))
    how = ("--agent", "driver", "--model", f"script:{tmp_path / 's'}", "--turns", "2", "--sandbox", "S0", "--json")

    assert call(("run", str(root), *how, "--runs", runs)) == 1
    stopped = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (stopped["stop"], stopped["passed"]) == ("turns", 0)
    assert call(("resume", str(Path(stopped["events"]).parent), "--turns", "9", "--json")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["stop"] == "green"

    assert call(("score", str(root), str(root), "--test-command", "no-such-program")) == 2
    assert "cannot start the test command" in capsys.readouterr().err


@pytest.mark.parametrize("tier", sampled(["S3", "S2", "S1", "S0"], "S3", "S0"))
def test_a_test_command_finds_the_programs_of_the_project_in_every_tier(tmp_path: Path, tier: str) -> None:
    environment_of(tmp_path / "r" / ".venv")
    (tmp_path / "r" / ".venv" / "bin" / "tool").write_text("#!/bin/sh\ntest -f src/a.c\n")
    (tmp_path / "r" / ".venv" / "bin" / "tool").chmod(0o755)
    (tmp_path / "r" / "src").mkdir()
    (tmp_path / "r" / "src" / "a.c").write_text("")
    task = apply_options(load_task(tmp_path / "r"), Options(model="repair", test_command=".venv/bin/tool && tool"))
    place = RunPlace.at(tmp_path / "run", ENVIRON, sandbox(tier))
    tree = store_tree(place.store, task)
    settings = build_settings(task, place.store, tree, None)
    verifier = build_verifier(place, settings, tree, (id_of(settings.suite),))

    done = anyio.run(verifier.verify, tree, {})

    assert done.verdict.green, done.verdict
    assert done.sandbox == tier
