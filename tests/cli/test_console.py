"""What a person is told of a run while it works and when it has ended, and that an agent is told no more for it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from cli.test_cli import GOOD, lay
from jumar.agents.repair import RepairAgent
from jumar.cli.console.notices import LONGEST, NoticePrinter
from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.main import call
from jumar.cli.run import UNGATED, UNJUDGED, UNWRITTEN
from jumar.core.run import effects
from jumar.core.state import events as ev
from jumar.core.state.events import Localisation
from jumar.core.state.reply import ToolCall
from jumar.core.state.run_state import EXTERNAL, ConversationCell
from jumar.core.state.stop import StopReason
from jumar.core.state.verdict import Cause, TestResult, Void
from jumar.journal.line_format import JournalEnd
from jumar.models.script import ScriptLine
from jumar.runs.setup.result import build_result
from jumar.testing import FakeVerifier
from support.worlds.driver_world import Heard, both, ended, swift
from support.worlds.gate_scenarios import ADD, DONE, RUN, Story, played
from support.worlds.gate_world import claim, judged
from support.worlds.run_world import IDS, Terms, World, judge, program, world

BEHIND = "held-out tests of the same behaviour did not pass"
REASON = f"{BEHIND}\n\x1b[31m\u202e" + "and more, " * 60 + "the end"


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def refusing(files: Mapping[str, bytes]) -> Mapping[str, str] | Void:
    """As `stories.judge`; a program of 16 is for the visible tests alone."""
    return Void(Cause.HELD_OUT, REASON) if b"= 16" in files["app.py"] else judge(files)


def wavering(files: Mapping[str, bytes]) -> Mapping[str, str] | Void:
    """As `stories.judge`; of a program of 16 the last test comes out differently on the same tree."""
    found = judge(files)
    return {**found, IDS[16]: "flaky"} if b"= 16" in files["app.py"] and not isinstance(found, Void) else found


def told(folder: Path, terms: Terms, replies: tuple[str, ...] = ("16", "12")) -> tuple[World, Heard]:
    """A run that a person follows, of programs that pass as many tests as *replies* say."""
    model = Heard(tuple(ScriptLine(content=program(int(reply))) for reply in replies))
    made = world(folder, (), Terms(judge=terms.judge, model=model))
    with ProgressDisplay(Console()) as live:
        made.kernel.watch = live.watch
        anyio.run(made.kernel.run)
    made.journal.close()
    return made, model


def test_a_person_is_told_why_a_green_was_refused_and_the_agent_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, model = told(tmp_path, Terms(judge=refusing))

    said = next(line for line in capsys.readouterr().err.splitlines() if "went back" in line)
    assert said.startswith(f"app: went back: {BEHIND} and more, ")
    assert len(said) <= len("app: went back: ") + LONGEST
    assert said.isprintable()
    prompts = "\n".join(message.content for prompt in model.prompts for message in prompt)
    assert "no usable evidence" in prompts
    assert BEHIND not in prompts


def test_under_a_gate_a_person_is_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def forged(files: Mapping[str, bytes]) -> Mapping[str, str | TestResult] | Void:
        found = judged(files)
        assert not isinstance(found, Void)
        return Void(Cause.TAMPER, "tests that had to fail did not") if b"a + b" in files["calc.py"] else found

    made = played(tmp_path, Story(turns=(both(RUN, claim("add"), ADD), DONE), says=(), terms={"judge": forged}))
    with ProgressDisplay(Console()) as live:
        made.world.kernel.watch = live.watch
        ended(made)

    assert ": went back: tests that had to fail did not\n" in capsys.readouterr().err


def test_the_log_shows_a_reason_whole_and_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, _ = told(tmp_path, Terms(judge=refusing))
    capsys.readouterr()

    assert call(("log", "show", str(made.folder), "--all")) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(made.entries())
    shown = [line for line in lines if "void=" in line]
    assert len(shown) == 1
    assert f"void=held_out: {BEHIND} and more, " in shown[0]
    assert "the end" in shown[0]
    assert shown[0].isprintable()


def test_what_wavered_in_a_verdict_is_named_while_the_run_works_and_in_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = told(tmp_path, Terms(judge=wavering))

    assert f"app: 16 of 17 passed: kept; flaky: {IDS[16]}\n" in capsys.readouterr().err
    assert build_result(made.replayed(), made.folder, JournalEnd()).flaky == (IDS[16],)
    steady, _ = told(tmp_path / "steady", Terms(), ("12",))
    assert build_result(steady.replayed(), steady.folder, JournalEnd()).flaky == ()


SHAKY = """from pathlib import Path
from app import f
HERE = Path({here!r})


def test_f():
    assert f() == 2


def test_shaky():
    with HERE.open("a") as seen:
        seen.write(".")
    assert HERE.stat().st_size % 2
"""


@pytest.mark.proof
def test_the_report_names_flaky_tests_even_where_it_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = lay(tmp_path / "task", {**GOOD, "test_app.py": SHAKY.format(here=str(tmp_path / "seen"))})
    lay(tmp_path, {"s.jsonl": json.dumps({"content": "def f():\n    return 2\n"}) + "\n"})
    named = "flaky    test_app.py::test_shaky\n"

    ran = call(("run", str(task), "--agent", "pipeline", "--model", f"script:{tmp_path / 's.jsonl'}", "-q",
                "--confirm", "2", "--runs", str(tmp_path / "runs")))  # fmt: skip
    assert ran == 0
    assert named in capsys.readouterr().out

    (task / "app.py").write_text("def f():\n    return 2\n")
    (tmp_path / "seen").write_bytes(b"")
    assert call(("score", str(task), str(task), "-q", "--confirm", "4")) == 1
    assert named in capsys.readouterr().out


def test_a_person_is_told_why_a_reply_of_the_pipeline_was_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = (ScriptLine(content="def broken(:"), ScriptLine(content=""), ScriptLine(content=program(17)))
    made = world(tmp_path, (), Terms(model=Heard(replies)))
    with ProgressDisplay(Console()) as live:
        made.kernel.watch = live.watch
        anyio.run(made.kernel.run)
    made.journal.close()

    said = [line for line in capsys.readouterr().err.splitlines() if "rejected" in line]
    assert len(said) == 2
    assert said[0].startswith(
        "app: jumar rejected the model's reply (write): there is no fenced block, and the text of app.py is not"
    )
    assert said[1] == "app: jumar rejected the model's reply (fix): the reply is empty"


@pytest.mark.slow
def test_a_run_says_what_it_refused_what_judged_it_and_who_spoke_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "calc.py").write_text("x = 1\n")
    (tmp_path / "r" / "test_calc.py").write_text("def test_x():\n    assert 0\n")
    writes = [{"name": "write_file", "arguments": {"path": "test_calc.py", "text": f"{n}"}} for n in range(22)]
    last = {"name": "final", "arguments": {"message": "It works.\ngreen"}}
    lines = [{"tool_calls": writes}, {"tool_calls": [last]}]
    (tmp_path / "s").write_text("\n".join(json.dumps(line) for line in lines))
    how = ("--agent", "driver", "--gate", "off", "--test-policy", "never", "--sandbox", "S0")

    call(("run", str(tmp_path / "r"), *how, "--model", f"script:{tmp_path / 's'}", "--runs", str(tmp_path / "runs")))

    said = capsys.readouterr()
    refused = [line for line in said.err.splitlines() if "refused" in line]
    assert refused[0].startswith("r: refused write_file test_calc.py: test_calc.py is read-only")
    assert refused[20:] == ["r: more was refused: see `jumar log show`"]
    assert UNWRITTEN in said.out
    assert UNJUDGED not in said.out
    assert UNGATED not in said.out
    assert "the agent's last words: It works.\n  green.\n" in said.out


def test_a_person_is_told_what_went_back_of_what_an_agent_changed_by_itself(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms())
    notices, effect = NoticePrinter(), effects.Finish(effects.Halt(StopReason.FINAL))
    first = made.replayed()
    state = replace(first, start=replace(first.run, agent=EXTERNAL))
    assert not list(notices.find_notices(state, effect))
    went = ev.Revert(to="t", paths=("test_app.py",), why="changed around the tools: it is read-only", found=True)

    said = list(notices.find_notices(replace(state, conversation=ConversationCell(went, state.conversation)), effect))

    assert said == ["went back: test_app.py: changed around the tools: it is read-only"]
    made.journal.close()


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&- 3>&-"])
def test_a_closed_stream_is_the_null_device(tmp_path: Path, closed: str) -> None:
    task = lay(tmp_path / "task", GOOD)
    argv = shlex.join([sys.executable, "-m", "jumar.cli.main", "score", str(task), str(task), "--sandbox", "S0"])

    done = subprocess.run(["sh", "-c", f"{argv} --confirm 0 {closed}"], stdout=subprocess.PIPE, text=True, check=False)

    assert done.stdout.startswith(("green", "red"))


class Blind(FakeVerifier):
    """Nothing can be traced."""

    async def localise(
        self,
        tree: str,
        red: Sequence[str],  # noqa: ARG002  the port's signature
        green: Sequence[str],  # noqa: ARG002  as above
        seconds: float | None = None,  # noqa: ARG002  as above
    ) -> Localisation:
        """A failure, with its reason."""
        return Localisation(tree=tree, suspects=(), problem="no line of the editable files ran")


def test_a_localisation_that_fails_says_so_on_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = ScriptLine(tool_calls=(ToolCall("final", {"message": "nothing found"}),))
    made = world(tmp_path, (), Terms(agent=RepairAgent(), model=Heard((nothing,))))
    made.kernel.shell._parts = replace(  # noqa: SLF001  the one part that the story needs otherwise
        made.kernel.shell._parts,  # noqa: SLF001  as above
        verifier=Blind(made.store, IDS, judge),
    )
    with ProgressDisplay(Console()) as live:
        made.kernel.watch = live.watch
        anyio.run(made.kernel.run)
    made.journal.close()

    said = capsys.readouterr().err
    assert said.count("localisation failed, so every line is searched alike: no line of the editable files ran") == 1


def test_what_quotes_an_end_of_a_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Console().say_line("warning: 1 tests pass although the code is gone: a.xml::adds\nup\r")

    assert capsys.readouterr().out == "warning: 1 tests pass although the code is gone: a.xml::adds\\nup\\r\n"
