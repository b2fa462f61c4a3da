"""A repository without tests: how its runs begin, what guards them, and that none of them ends green."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.cli.main import call as jumar
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Suite, Switches
from jumar.core.state.stop import EXIT_CODES, StopReason, get_exit_code
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import TestResult, Void
from jumar.journal.line_format import JournalEnd
from jumar.mcp_server.responses import build_standing
from jumar.runs.session import open_session
from jumar.runs.setup.result import build_result
from jumar.task.resolve import Options, apply_options
from jumar.task.task import list_targets, load_task
from jumar.task.untested import find_verify_commands, format_untested_line
from support.processes.fake_claude_code import Host, git
from support.worlds.driver_world import Turns, both, call, ended
from support.worlds.gate_scenarios import DONE
from support.worlds.gate_world import Terms, claim, edit, gated, judged, lying, write

BARE = "def add(a, b):\n    return a - b\n"
RIGHT = BARE.replace("a - b", "a + b")
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
ADD = edit("calc.py", "a - b", "a + b")
ID = "test_calc.py::test_add"


def story(folder: Path, *turns: Any, **terms: Any) -> Turns:
    """A run in a repository of one file that holds no test, played to its end."""
    made = gated(folder, turns, Terms(files={"calc.py": BARE}, only=True, instruction="add must add", **terms))
    ended(made)
    return made


def told(made: Turns) -> str:
    """All that the model was shown."""
    return "\n".join(m.content for prompt in made.model.prompts for m in prompt)


def test_under_the_strict_gate_the_agent_writes_the_first_failing_test_and_then_the_code(tmp_path: Path) -> None:
    made = story(tmp_path, ADD, write("test_calc.py", TEST), both(claim(ID, "calc.py"), ADD), DONE)

    state = made.world.replayed()
    assert state.end is not None
    assert state.end.stop is StopReason.GREEN
    assert lying(made)["calc.py"] == RIGHT
    assert state.expected == (ID,)
    refused = next(e for e in made.world.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken))
    assert "write a failing test first" in refused.reason
    assert "There is no test yet." in told(made)
    assert "Next: write a failing test" in told(made)


def test_a_first_test_that_turned_green_is_not_yet_the_end_of_the_work(tmp_path: Path) -> None:
    more = "from calc import add\n\n\ndef test_more():\n    assert add(0, 0) == 1\n"
    made = story(
        tmp_path, write("test_calc.py", TEST), both(claim(ID, "calc.py"), ADD), write("test_more.py", more), DONE
    )

    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.FINAL
    assert end.best is not None
    assert (end.best.passed, end.best.failed) == (1, 1)


@pytest.mark.parametrize("gate", [Gate.STRICT, Gate.REFACTOR])
def test_a_run_that_ends_with_no_test_at_all_is_untested_and_never_green(tmp_path: Path, gate: Gate) -> None:
    made = story(tmp_path, DONE, gate=gate, verify="true")

    state = made.world.replayed()
    assert state.end is not None
    assert state.end.stop is StopReason.UNTESTED
    assert state.end.best is None
    assert state.end.why == "the agent said: done; no test judged this run: none was there, and none was written."
    result = build_result(state, tmp_path, JournalEnd())
    assert (result.exit, result.passed, result.failed, result.errors, result.best) == (1, None, None, None, None)
    assert (result.grade, result.sandbox, result.standing) == ("", "", "no tests")


@pytest.mark.parametrize(
    ("verify", "left", "said"),
    [
        ("true", RIGHT, "true succeeded."),
        ("false", BARE, "false failed, and what it failed on went back."),
        ("", RIGHT, "none was written."),
    ],
)
def test_a_refactoring_without_tests_stays_only_if_the_command_that_guards_it_succeeds_and_is_never_green(
    tmp_path: Path, verify: str, left: str, said: str
) -> None:
    made = story(tmp_path, ADD, DONE, gate=Gate.REFACTOR, verify=verify)

    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.UNTESTED
    assert said in end.why
    assert build_result(made.world.replayed(), tmp_path, JournalEnd()).standing == "no tests"
    assert lying(made)["calc.py"] == left


def test_a_refactoring_that_leaves_a_green_test_of_its_own_is_green(tmp_path: Path) -> None:
    made = story(tmp_path, both(ADD, write("test_calc.py", TEST)), DONE, gate=Gate.REFACTOR, verify="true")

    state = made.world.replayed()
    assert state.end is not None
    assert state.end.stop is StopReason.GREEN
    assert state.expected == (ID,)


def test_a_cap_that_ends_a_run_without_a_test_is_untested_too_and_says_which(tmp_path: Path) -> None:
    made = story(tmp_path, call("list_files"), call("list_files"), budget=Budget(attempts=None, turns=1))

    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.UNTESTED
    assert end.why.startswith("the cap on turns is used up; no test judged this run")


def test_other_ends_keep_their_names_without_tests(tmp_path: Path) -> None:
    outside = call("write_file", path="../x.py", text="")
    made = story(tmp_path, outside, DONE, gate=Gate.REFACTOR)

    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.GUARDRAIL


def test_final_fails_only_where_tests_have_judged_the_run() -> None:
    assert get_exit_code(StopReason.FINAL, judges=False) == 0
    assert get_exit_code(StopReason.FINAL, judges=True) == EXIT_CODES[StopReason.FINAL] == 1
    for stop in StopReason:
        assert get_exit_code(stop, judges=True) == EXIT_CODES[stop]
    assert get_exit_code(StopReason.UNTESTED, judges=False) == 1


# --- a test command ------------------------------------------------------------------------------------------------

COMMAND = Suite(runner="command", command="make check")
WHOLE = "test-command::make check"
SECOND = "from calc import add\n\n\ndef test_zero():\n    assert add(1, 0) == 2\n"


def made_check(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """`make check`: all tests of the tree, in one exit status."""
    found = judged(files)
    assert not isinstance(found, Void)
    green = all(isinstance(r, TestResult) and r.outcome == "passed" for r in found.values())
    return {WHOLE: "passed" if green else "failed"}


def commanded(folder: Path, *turns: Any) -> Turns:
    """A run that a test command judges, and that is green when it begins."""
    made = gated(
        folder,
        turns,
        Terms(
            files={"calc.py": BARE}, only=True, instruction="add must add", also_expected=(WHOLE,), suite=COMMAND,
            judge=made_check, sites=lambda _path, _source: (), switches=Switches(model_may_run_tests=True),
        ),
    )  # fmt: skip
    ended(made)
    return made


def test_under_a_test_command_a_new_test_is_seen_red_by_the_command_turning_red(tmp_path: Path) -> None:
    made = commanded(tmp_path, write("test_calc.py", TEST), both(claim(WHOLE, "calc.py"), ADD), DONE)

    end = made.world.replayed().end
    assert end is not None
    assert end.stop is StopReason.GREEN
    assert lying(made) == {"calc.py": RIGHT, "test_calc.py": TEST}


def test_under_a_test_command_a_test_that_is_not_seen_red_goes_back_and_a_green_one_stays_as_it_is(
    tmp_path: Path,
) -> None:
    green, weak = TEST.replace("== 5", "== -1"), TEST.replace("== 5", "!= 99")
    made = commanded(
        tmp_path,
        write("test_green.py", green),
        write("test_calc.py", TEST),
        write("test_more.py", SECOND),
        both(claim(WHOLE, "calc.py"), ADD, write("test_calc.py", weak)),
        write("test_calc.py", weak),
        DONE,
    )

    assert lying(made) == {"calc.py": RIGHT, "test_calc.py": TEST}
    whys = [e.why for e in made.world.events(ev.Revert) if isinstance(e, ev.Revert)]
    assert "stays green with test_green.py" in whys[0]
    assert "was red before test_more.py" in whys[1]
    assert any("stays green with test_calc.py" in why for why in whys[2:])
    last = [e.reason for e in made.world.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken)][-2]
    assert "write new tests in a new file" in last


# --- what could guard it -------------------------------------------------------------------------------------------


def lay(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    return root


UNREAL = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'

GUARDS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "nothing": ({"a.py": ""}, ()),
    "make test before make check": (
        {"Makefile": "all: x\ncheck: a\n\ttrue\ntest:\n\ttrue\n"}, ("make test", "make check")
    ),
    "a target of another name, a variable": ({"Makefile": "tests:\n\ttrue\ntest := 1\n"}, ()),
    "a script of npm": ({"package.json": '{"scripts": {"test": "node --test"}}'}, ("npm test",)),
    "the script that npm writes itself": ({"package.json": UNREAL}, ()),
    "broken files": ({"package.json": "{", "pyproject.toml": "[", "setup.cfg": "x"}, ()),
    "mypy of the project": (
        {"pyproject.toml": "[tool.mypy]\nstrict = true\n", ".venv/bin/mypy": ""}, (".venv/bin/mypy .",)
    ),
    "mypy in setup.cfg": ({"setup.cfg": "[mypy]\n", "bin/mypy": ""}, ("mypy .",)),
    "pyright": ({"pyrightconfig.json": "{}", "bin/pyright": ""}, ("pyright",)),
    "tsc": ({"tsconfig.json": "{}", "node_modules/.bin/tsc": ""}, ("node_modules/.bin/tsc --noEmit",)),
    "configured and not installed": ({"mypy.ini": "", "tsconfig.json": "{}"}, ()),
    "go": ({"go.mod": "module x\n"}, ("go build ./...",)),
    "cargo": ({"Cargo.toml": "", "src/lib.rs": "fn a() {}\n"}, ("cargo check",)),
    "cargo with unit tests": ({"Cargo.toml": "", "src/lib.rs": "#[test]\nfn a() {}\n"}, ("cargo test",)),
    "make comes before a type checker": (
        {"Makefile": "check:\n", "mypy.ini": "", "bin/mypy": ""}, ("make check", "mypy .")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDS)
def test_commands_that_could_guard_a_refactoring_are_found_the_most_telling_first(tmp_path: Path, name: str) -> None:
    files, commands = GUARDS[name]
    root = lay(tmp_path, {**files, **{f"bin/{p}": "" for p in ("make", "npm", "go", "cargo")}})

    assert find_verify_commands(load_task(root), {"PATH": str(root / "bin")}) == commands


def test_a_program_that_is_not_there_guards_nothing(tmp_path: Path) -> None:
    root = lay(tmp_path, {"Makefile": "test:\n\ttrue\n", "go.mod": "module x\n"})

    assert find_verify_commands(load_task(root), {"PATH": ""}) == ()


def test_a_repository_without_a_test_file_gets_the_driver_and_a_sentence_that_says_which_option_to_set(
    tmp_path: Path,
) -> None:
    bare = load_task(lay(tmp_path / "bare", {"a.py": ""}))

    assert apply_options(bare, Options(model="anthropic:m")).agent == "driver"
    assert "`make test`" in format_untested_line("make test", Gate.REFACTOR)
    for option in ("[gate] verify", "--verify", "--test-command", "--gate strict"):
        assert option in format_untested_line("", Gate.REFACTOR)


def test_where_no_file_tells_the_language_all_files_but_tests_may_be_edited(tmp_path: Path) -> None:
    script = lay(tmp_path / "js", {"package.json": "{}", "add.js": "", "add.test.js": "", "docs/a.md": ""})
    python = lay(tmp_path / "py", {"a.py": "", "b.js": ""})
    named = lay(tmp_path / "named", {"b.js": "", "a.txt": "", "task.toml": '[tests]\nrunner = "pytest"\n'})

    assert list_targets(load_task(script)) == ("add.js", "docs/a.md")
    assert list_targets(load_task(python)) == ("a.py",)
    assert list_targets(load_task(named)) == ()


# --- every way in --------------------------------------------------------------------------------------------------


def scripted(folder: Path, *turns: tuple[str, dict[str, str]]) -> str:
    lines = [json.dumps({"tool_calls": [{"name": name, "arguments": args}]}) for name, args in turns]
    (folder / "script.jsonl").write_text("\n".join(lines))
    return f"script:{folder / 'script.jsonl'}"


EDIT = ("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"})
FINAL = ("final", {"message": "done"})


@pytest.mark.slow
def test_the_first_session_of_a_repository_without_tests_is_a_guarded_refactoring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first command fails on the untouched files, so it guards nothing.
    checks = f"test:\n\tfalse\ncheck:\n\t{sys.executable} -m py_compile calc.py\n"
    root = lay(tmp_path / "bare", {"calc.py": BARE, "Makefile": checks})
    model, runs = scripted(tmp_path, EDIT, FINAL), ("--runs", str(tmp_path / "runs"), "--sandbox", "S0", "--json")

    code = jumar(["run", str(root), "-i", "add must add", "--model", model, *runs])

    said = capsys.readouterr()
    result = json.loads(said.out.splitlines()[-1])
    assert (code, result["stop"], result["passed"], result["best"]) == (1, "untested", None, None)
    assert "no tests: refactor mode; edits need no claims, and stay only if `make check` succeeds" in said.err
    assert "make check succeeded" in result["why"]
    assert "+    return a + b" in (Path(result["events"]).parent / "best.patch").read_text()

    gone = ("--verify", "no-such-program --all")
    assert jumar(["run", str(root), "-i", "add must add", "--model", model, *gone, *runs]) == 2
    assert "the program no-such-program of [gate] verify is not on PATH; install it" in capsys.readouterr().err
    assert jumar(["run", str(root), "--model", model, *runs]) == 2
    assert "no instruction: say what to do with -i" in capsys.readouterr().err


@pytest.mark.slow
def test_an_external_agent_without_tests_and_guard_ends_with_its_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    root = lay(tmp_path / "bare", {"calc.py": BARE})
    (tmp_path / "agent.sh").write_text("sed -i 's/a - b/a + b/' calc.py\n")
    agent = ("--agent", "external", "--agent-command", f"sh {tmp_path / 'agent.sh'}", "--allow-unmetered")
    model = ("--model", "openai:m", "--price", "free", "--gate", "refactor", "-i", "add", "--sandbox", "S0")

    assert jumar(["run", str(root), *agent, *model, "--runs", str(tmp_path / "runs"), "--json"]) == 1

    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["stop"] == "untested"
    assert result["why"].startswith("the agent has ended; no test judged this run")
    assert "+    return a + b" in (Path(result["events"]).parent / "best.patch").read_text()


@pytest.mark.slow
def test_hooks_in_a_repository_without_tests_admit_edits_and_offer_what_could_judge_them(tmp_path: Path) -> None:
    root = lay(tmp_path / "bare", {"calc.py": BARE})
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    host = Host(root, gate=None)
    host.environ = {**host.environ, "JUMAR_HOOK_SANDBOX": "S0", "JUMAR_HOOK_CONFIRM": "0"}

    assert "[gate] verify" in host.prompt().context
    assert host.edit("calc.py", "a - b", "a + b") == ""
    assert host.stop().said == {"systemMessage": "jumar: no test judged the edits of this turn"}
    assert (root / "calc.py").read_text() == RIGHT

    host.prompt()
    assert host.write("test_calc.py", TEST) == ""
    assert host.stop().said == {}
    assert "1 test, none red" in host.prompt().context
    assert "no test asks for an edit of calc.py" in host.edit("calc.py", "a + b", "b + a")


@pytest.mark.slow
def test_a_session_of_a_host_in_a_repository_without_tests_is_a_refactoring_that_ends_untested(tmp_path: Path) -> None:
    root = lay(tmp_path / "bare", {"calc.py": BARE})
    task = apply_options(load_task(root), Options(agent="host", model="host", sandbox="S0"))

    async def visit() -> StopReason | None:
        async with open_session(task, tmp_path / "runs", environ={}) as session:
            stands = build_standing(session.state)
            assert (stands.mode, stands.passed, stands.total) == ("refactor", None, 0)
            done = await session.act(ToolCall("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"}))
            assert done.admitted
            return (await session.act(ToolCall("final", {"message": "done"}))).stop

    assert anyio.run(visit) is StopReason.UNTESTED
