"""Stories of the driver on the real journal and workspace: what its actions do, what it is shown, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.agents.driver import MOST
from jumar.agents.extraction import text_protocol
from jumar.agents.tools import tool_calls
from jumar.agents.tools.catalogue import ALL
from jumar.core.gate.admission import Action
from jumar.core.prompts.feedback import OUTPUT_LIMIT
from jumar.core.run.effects import Halt
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Rule, Ties
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.settings import Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptLine
from jumar.runtime import actions
from support.worlds.driver_world import (
    FILES,
    Echo,
    Rules,
    both,
    call,
    ended,
    interrupting,
    resumed,
    swift,
    turns,
    writes,
)
from support.worlds.run_world import IDS, TOTAL, program


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


MANY = Budget(attempts=None, turns=30)
RUNS_TESTS = Switches(model_may_run_tests=True)
RUNS_COMMANDS = Switches(model_may_run_commands=True)


def test_it_reads_writes_and_ends_green(tmp_path: Path) -> None:
    made = turns(tmp_path, (call("read_file", path="app.py"), writes(12), writes(TOTAL)))

    assert ended(made) is StopReason.GREEN
    assert made.text("app.py") == program(TOTAL)
    assert len(made.model.prompts) == 3
    assert made.last() == "wrote app.py\n12 of 17 passed" + "".join(f"\n\nFAILED {i}\nfailed" for i in IDS[12:])


def test_what_is_sent_first_names_the_task_the_files_the_tests_and_their_results(tmp_path: Path) -> None:
    made = turns(tmp_path, (), Rules(instruction="count higher"))

    ended(made)

    system, first = made.model.prompts[0]
    assert (system.role, first.role) == ("system", "user")
    assert "all tests run" in system.content
    assert "run_tests" not in system.content
    assert first.content.startswith("count higher\n")
    for part in ("\nsrc/sums.py\n", "Read-only, among them the tests:\ntest_app.py", "8 of 17 passed", IDS[8]):
        assert part in first.content


def test_a_long_listing_is_cut(tmp_path: Path) -> None:
    made = turns(tmp_path, ())
    made.agent.__init__(tuple(f"src/module_{n}.py" for n in range(9000)), (), Switches())  # type: ignore[misc]

    ended(made)

    first = made.model.prompts[0][1].content
    assert len(first) < OUTPUT_LIMIT
    assert "src/module_0.py\n" in first
    assert " more" in first


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("list_files"), "list_files\napp.py\ndocs/notes.md\nsrc/sums.py\ntest_app.py"),
        (call("list_files", path="./src/"), "list_files src/\nsrc/sums.py"),
        (call("list_files", path="lib"), "list_files lib\nthere is no file or folder 'lib'; list_files without a path"),
        (
            call("read_file", path="./src/sums.py"),
            "read_file src/sums.py\nlines 1-2 of 2\ndef total(rows):\n    return",
        ),
        (call("read_file", path="src/sums.py", start="2", end=2.0), "lines 2-2 of 2\n    return sum(rows)\n"),
        (
            call("read_file", path="src/sums.py", start=3),
            "src/sums.py has 2 lines, counted from 1; 3 to 2 are not there",
        ),
        (call("read_file", path="nothing.py"), "there is no file 'nothing.py'"),
        (call("search", pattern=r"s.m\("), "search\nsrc/sums.py:2:     return sum(rows)"),
        (call("search", pattern="sum", path="docs"), "docs/notes.md:1: The total is a sum."),
        (call("search", pattern="absent"), "no match"),
        (call("search", pattern="("), "'(' is no regular expression"),
        (call("search", pattern="(" * 500 + ")" * 500), "at most 200 are searched for; use a simpler expression"),
        (call("edit_file", path="src/sums.py", old="sum(rows)", new="rows[0]"), "edited src/sums.py\n8 of 17 passed"),
        (call("delete_file", path="src/sums.py"), "deleted src/sums.py\n8 of 17 passed"),
        (call("delete_file", path="src/sum.py"), "there is no file 'src/sum.py' to delete"),
        (call("write_file", path="src/new.py", text="x = 1\n"), "wrote src/new.py\n8 of 17 passed"),
        (writes(8), "app.py holds exactly this text already"),
        (call("edit_file", path="src/sum.py", old="a", new="b"), "there is no file 'src/sum.py'"),
    ],
)
def test_each_action_tells_what_came_of_it(tmp_path: Path, asked: ScriptLine, told: str) -> None:
    made = turns(tmp_path, (asked,))

    assert ended(made) is StopReason.FINAL
    assert told in made.last()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (call("write_file", path="test_app.py", text="# nothing\n"), "test_app.py is read-only"),
        (call("write_file", path="docs/notes.md", text="x"), "docs/notes.md is not among the editable files"),
        (call("write_file", path="", text="x"), "'' is not the path of a file"),
        (call("edit_file", path="test_app.py", old="tests", new="x"), "test_app.py is read-only"),
        (call("delete_file", path="test_app.py"), "test_app.py is read-only"),
        (call("edit_file", path="app.py", old="PASING", new="x"), "edit_file was not performed: "),
        (call("edit_file", path="app.py", old="S", new="x"), "edit_file was not performed: "),
        (call("edit_file", path="app.py", old="", new="x"), "`old` is empty"),
        (call("edit_file", path="app.py", old="PASSING", new="PASSING"), "`old` and `new` are the same"),
        (call("write_file", path="app.py"), "write_file needs `text` (string), not path"),
        (call("write_file", path="app.py", text=None), "`text` of write_file must be of type string"),
        (call("write_file", path="app.py", text=["x"]), "`text` of write_file must be of type string"),
        (call("read_file"), "read_file needs `path` (string)"),
        (call("read_file", path="app.py", start="one"), "`start` of read_file must be of type integer"),
        (call("read_file", path="app.py", start=True), "`start` of read_file must be of type integer"),
        (call("read_file", path="app.py", start="²"), "`start` of read_file must be of type integer"),
        (call("read_file", path="app.py", start="٣"), "`start` of read_file must be of type integer"),
        (call("read_file", path="app.py", start="9" * 4301), "`start` of read_file must be of type integer"),
        (call("read_file", path="app.py", end=10**18), f"`end` of read_file is out of range: at most {10**18 - 1}"),
        (call("read_file", path="../../etc/passwd"), "'../../etc/passwd' leads outside the workspace"),
        (call("search", pattern="x", path="/etc"), "'/etc' leads outside the workspace"),
        (call("list_files", path="~"), "'~' leads outside the workspace"),
        (call("read_file", path="a" * 5000), "is too long for the name of a file"),
        (call("write_file", _malformed='{"path": "app.py", '), "the arguments of write_file are no JSON object"),
        (call("out_of_time", message="now"), "there is no tool 'out_of_time'; there are list_files, read_file"),
        (call("run_tests"), "run_tests is switched off in this run"),
        (call("run_command", command="ls"), "run_command is switched off in this run"),
        (ScriptLine(content="I think it is fine."), "the reply holds no action; call a tool"),
        (ScriptLine(error="refusal"), "the model gave no usable answer: refusal; call a tool"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(tmp_path: Path, asked: ScriptLine, why: str) -> None:
    made = turns(tmp_path, (asked, call("final")))

    assert ended(made) is StopReason.FINAL
    (_, admitted, reason), final = made.taken()
    assert not admitted
    assert why in made.last()
    assert reason in made.last()
    assert final[0] == "final"
    assert not made.events(ev.Write)
    assert made.triggers() == ["baseline"]
    assert made.text("app.py") == program(8)


def test_a_write_outside_ends_the_run(tmp_path: Path) -> None:
    evil = call("write_file", path="../evil.py", text="x = 1\n")
    made = turns(tmp_path / "run", (both(evil, writes(TOTAL)),))

    assert ended(made) is StopReason.GUARDRAIL
    assert not list(tmp_path.glob("evil.py"))
    assert [name for name, *_ in made.taken()] == ["write_file"]


def test_each_write_of_a_turn_is_verified_before_the_next_action(tmp_path: Path) -> None:
    edit = call("edit_file", path="app.py", old="PASSING = 12", new="PASSING = 14")
    made = turns(tmp_path, (both(writes(12), call("read_file", path="app.py"), edit, writes(10)),), Rules(budget=MANY))

    assert ended(made) is StopReason.FINAL
    assert made.triggers() == ["baseline", "write", "write", "write"]
    assert len(made.shown("driver.run_tests")) == 4
    *_, said, one, two, three, four = made.model.prompts[-1]
    assert [c.id for c in said.tool_calls] == [m.call_id for m in (one, two, three, four)]
    assert one.content.startswith("wrote app.py\n12 of 17 passed")
    assert two.content.endswith(program(12))
    assert three.content.startswith("edited app.py\n14 of 17 passed")
    assert four.content.startswith("wrote app.py\n10 of 17 passed")
    assert four.content.endswith("taken back: 10 of 17 passed, the best has 14")
    assert (made.text("app.py") or "").startswith("PASSING = 14")


@pytest.mark.parametrize(
    ("lines", "rules", "stop"),
    [
        ((writes(12),), Rules(), StopReason.FINAL),
        ((writes(TOTAL), writes(3)), Rules(), StopReason.FINAL),
        ((writes(TOTAL),), Rules(), StopReason.GREEN),
        ((), Rules(), StopReason.FINAL),
        ((writes(12), writes(13)), Rules(budget=Budget(turns=1)), StopReason.TURNS),
        ((both(writes(12), writes(13)),), Rules(budget=Budget(turns=1)), StopReason.TURNS),
        ((writes(12), writes(13)), Rules(budget=Budget(usd=0.01)), StopReason.BUDGET),
        ((call("write_file", path="/x", text=""),), Rules(), StopReason.GUARDRAIL),
        ((writes(12), *[ScriptLine(error="server")] * 5), Rules(), StopReason.INFRA),
        ((writes(12), *[ScriptLine(error="refusal")] * 3), Rules(), StopReason.STALLED),
    ],
)
def test_under_on_final_there_is_one_verification_whatever_ends_the_run(
    tmp_path: Path, lines: tuple[ScriptLine, ...], rules: Rules, stop: StopReason
) -> None:
    rules = Rules(budget=rules.budget, policy=TestPolicy.ON_FINAL)
    made = turns(tmp_path, lines, rules)

    assert ended(made) is stop
    assert made.triggers() == ["final"]
    (shown,) = made.shown("driver.run_tests")
    (final,) = made.events(ev.Final)
    assert isinstance(final, ev.Final)
    assert final.test_result == shown


@pytest.mark.parametrize("when", ["Act", "Reserve", "Call"])
def test_under_on_final_an_interrupt_is_verified_too_and_so_is_each_segment(tmp_path: Path, when: str) -> None:
    made = turns(tmp_path, (writes(12), writes(13)), Rules(policy=TestPolicy.ON_FINAL))
    made.world.kernel.watch = interrupting(made, when, 2)

    assert ended(made) is StopReason.INTERRUPTED
    assert made.triggers() == ["final"]

    end = resumed(made)

    assert end.end
    assert (end.end.stop, made.text("app.py")) == (StopReason.FINAL, program(13))
    assert made.triggers() == ["final", "final"]
    *_, final = made.events(ev.Final)
    assert isinstance(final, ev.Final)
    assert final.test_result == made.shown("driver.run_tests")[-1]


def test_under_never_nothing_is_verified_or_shown(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(12), writes(TOTAL)), Rules(policy=TestPolicy.NEVER))

    assert ended(made) is StopReason.FINAL
    assert not made.triggers()
    assert not made.events(ev.Observation)
    assert made.text("app.py") == program(TOTAL)
    assert made.last() == "wrote app.py"
    assert "passed" not in made.model.prompts[0][1].content
    (final,) = made.events(ev.Final)
    assert isinstance(final, ev.Final)
    assert final.test_result is None


def test_under_on_final_a_write_says_when_the_tests_run(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(12),), Rules(policy=TestPolicy.ON_FINAL))

    ended(made)

    assert made.last() == "wrote app.py; the tests run when the run ends"


def test_the_model_may_run_the_tests_where_it_is_allowed_and_it_moves_no_ratchet(tmp_path: Path) -> None:
    asked = call("run_tests", test_ids=[IDS[9], "test_app.py::test_16"])
    made = turns(tmp_path, (asked, call("run_tests")), Rules(switches=RUNS_TESTS))

    assert ended(made) is StopReason.FINAL
    assert made.triggers() == ["baseline", "model", "model"]
    assert len(made.events(ev.BestFound)) == 1
    end = made.world.replayed()
    assert (end.spend.test_runs, end.spend.attempts) == (2, 0)
    first, second = (m.content for m in made.model.prompts[-1] if m.role == "tool")
    assert first.startswith("run_tests\n0 of the 2 you asked for passed; in all:\n8 of 17 passed")
    assert (IDS[9] in first, IDS[10] in first, IDS[16] in first) == (True, False, True)
    assert all(i in second for i in IDS[8:])


def test_tests_are_asked_for_by_file_too_and_unknown_ones_are_told(tmp_path: Path) -> None:
    lines = (call("run_tests", test_ids="test_app.py"), call("run_tests", test_ids=["test_app.py::test_99"]))
    made = turns(tmp_path, lines, Rules(switches=RUNS_TESTS))

    ended(made)

    first, second = (m.content for m in made.model.prompts[-1] if m.role == "tool")
    assert all(i in first for i in IDS[8:])
    assert "there is no test 'test_app.py::test_99'" in second
    assert made.triggers() == ["baseline", "model"]


def test_under_on_final_what_the_model_runs_leaves_the_last_test_run_alone(tmp_path: Path) -> None:
    rules = Rules(policy=TestPolicy.ON_FINAL, switches=RUNS_TESTS, budget=Budget(test_runs=2))
    made = turns(tmp_path, (call("run_tests"), writes(9), call("run_tests")), rules)

    ended(made)

    assert made.triggers() == ["model", "final"]
    assert made.world.replayed().spend.test_runs == 2
    assert "no test run is left in the budget" in made.last()


@pytest.mark.parametrize(("cap", "stop"), [("attempts", StopReason.ATTEMPTS), ("test_runs", StopReason.BUDGET)])
def test_caps_hold_within_a_turn_of_many_writes(tmp_path: Path, cap: str, stop: StopReason) -> None:
    budget = Budget(**{"attempts": None, cap: 3})
    made = turns(tmp_path, (both(*(writes(n) for n in (9, 10, 11, 12, 13))),), Rules(budget=budget))

    assert ended(made) is stop
    assert made.triggers() == ["baseline", "write", "write", "write"]
    assert made.text("app.py") == program(11)


def test_commands_run_where_they_are_allowed(tmp_path: Path) -> None:
    lines = (call("run_command", command="python -V"), call("run_command", command="forever"))
    made = turns(tmp_path, lines, Rules(switches=RUNS_COMMANDS, commands=Echo()))

    ended(made)

    first, second = (m.content for m in made.model.prompts[-1] if m.role == "tool")
    assert first == "run_command\nexit status 0\npython -V"
    assert second == "run_command\nit did not end in time\nforever"
    assert not made.events(ev.Write)


def test_a_command_that_an_interrupt_cut_off_is_told_and_the_turn_goes_on(tmp_path: Path) -> None:
    echo = Echo()
    line = both(call("run_command", command="make"), writes(9))
    made = turns(tmp_path, (line,), Rules(switches=RUNS_COMMANDS, commands=echo))
    echo.during = lambda: made.world.kernel.halt(Halt(StopReason.INTERRUPTED))

    assert ended(made) is StopReason.INTERRUPTED
    resumed(made)

    assert made.taken()[0] == ("run_command", False, "the command was cut off")
    first, second = (m.content for m in made.model.prompts[-1] if m.role == "tool")
    assert first == "run_command was not performed: the command was cut off"
    assert second.startswith("wrote app.py\n9 of 17 passed")


def test_what_is_shown_of_a_command_is_capped(tmp_path: Path) -> None:
    line = call("run_command", command="x" * 50_000)
    made = turns(tmp_path, (line,), Rules(switches=RUNS_COMMANDS, commands=Echo()))

    ended(made)

    assert len(made.last()) <= OUTPUT_LIMIT + 20
    assert "characters left out" in made.last()


def test_green_from_the_start_with_an_instruction_ends_with_the_models_own_word(tmp_path: Path) -> None:
    rules = Rules(start=TOTAL, instruction="tidy up", budget=MANY)
    made = turns(tmp_path, (writes(TOTAL, "tidied"), writes(TOTAL, "tidier"), call("final", message="tidy")), rules)

    assert ended(made) is StopReason.GREEN
    assert made.text("app.py") == program(TOTAL, "tidier")
    assert made.taken()[-1][0] == "final"


def test_green_from_the_start_with_nothing_to_do_asks_nobody(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(3),), Rules(start=TOTAL))

    assert ended(made) is StopReason.GREEN
    assert not made.model.prompts


def test_an_interrupt_within_a_turn_goes_on_with_the_next_action(tmp_path: Path) -> None:
    made = turns(tmp_path, (both(writes(9), writes(10), writes(11)),), Rules(budget=MANY))
    made.world.kernel.watch = interrupting(made, "Act", 2)

    assert ended(made) is StopReason.INTERRUPTED
    assert made.text("app.py") == program(9)

    end = resumed(made)

    assert end.end
    assert end.end.stop is StopReason.FINAL
    assert made.text("app.py") == program(11)
    assert made.triggers() == ["baseline", "write", "write", "write"]
    assert [name for name, *_ in made.taken()] == ["write_file"] * 3 + ["final"]
    one, two, three = (m.content for m in made.model.prompts[-1] if m.role == "tool")
    assert "9 of 17 passed" in one
    assert two.startswith(
        "wrote app.py\ntaken back: stopped before it was verified: interrupted\ntaken up again: it was never verified\n"
        "10 of 17 passed"
    )
    assert "11 of 17 passed" in three


def test_a_call_cut_off_in_flight_is_asked_again_and_what_was_sent_stays(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(12), writes(13)), Rules(policy=TestPolicy.ON_FINAL))
    flights = iter(range(9))

    def cut_the_second() -> None:
        if next(flights) == 1:
            made.world.kernel.halt(Halt(StopReason.INTERRUPTED))

    made.model.during = cut_the_second

    assert ended(made) is StopReason.INTERRUPTED

    resumed(made)

    _, cut, again, *_ = made.model.prompts
    assert again[: len(cut)] == cut
    (news,) = again[len(cut) :]
    assert news.role == "user"
    assert news.content.startswith("12 of 17 passed")


def test_a_final_that_was_taken_up_again_has_a_result(tmp_path: Path) -> None:
    made = turns(tmp_path, (call("final", message="enough"), writes(TOTAL)))

    assert ended(made) is StopReason.FINAL
    end = resumed(made)

    assert end.end
    assert end.end.stop is StopReason.GREEN
    *_, said, result = made.model.prompts[-1]
    assert said.tool_calls[0].id == result.call_id
    assert result.content == "the run had ended with this, and was taken up again: go on"


READ = call("read_file", path="app.py")


@pytest.mark.parametrize(
    "lines",
    [
        (READ,) * 3,
        (both(READ, READ, READ),),
        (writes(3),) * 3,
        (writes(9, "a"), writes(9, "b")) * 3,
        (call("write_file", path="test_app.py", text=""),) * 3,
        (call("edit_file", path="app.py", old="absent", new="x"),) * 3,
        (READ, call("list_files"), READ, call("search", pattern="x"), READ),
        (ScriptLine(content="Hm."),) * 3,
        (call("read_file"),) * 3,
        (ScriptLine(error="refusal"),) * 3,
    ],
)
def test_the_same_action_three_times_in_six_has_stalled(tmp_path: Path, lines: tuple[ScriptLine, ...]) -> None:
    made = turns(tmp_path, lines, Rules(budget=MANY))

    assert ended(made) is StopReason.STALLED
    assert len(made.taken()) <= 6


def test_a_toggle_stalls_at_its_third_writing(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(9, "a"), writes(9, "b")) * 3, Rules(budget=MANY))

    assert ended(made) is StopReason.STALLED
    assert len(made.taken()) == 5


@pytest.mark.parametrize(
    "lines",
    [
        (ScriptLine(content="Hm."), ScriptLine(content="Well."), ScriptLine(content="So.")),
        tuple(call("read_file", path="app.py", start=1, end=n) for n in (1, 2, 3, 4)),
        (call("read_file", path=1), call("read_file", path=2), call("read_file", path=3)),
        (READ, writes(9), READ, writes(10), READ, writes(11), READ),
    ],
)
def test_what_differs_or_follows_a_change_has_not_stalled(tmp_path: Path, lines: tuple[ScriptLine, ...]) -> None:
    made = turns(tmp_path, lines, Rules(budget=MANY))

    assert ended(made) is StopReason.FINAL


def test_running_the_tests_after_each_edit_is_no_stall(tmp_path: Path) -> None:
    lines = tuple(line for n in range(9, 14) for line in (writes(n), call("run_tests")))
    made = turns(tmp_path, lines, Rules(budget=MANY, switches=RUNS_TESTS))

    assert ended(made) is StopReason.FINAL
    assert made.triggers().count("model") == 5


def test_ties_that_are_reverted_are_told(tmp_path: Path) -> None:
    made = turns(tmp_path, (writes(8, "other"),), Rules(rule=Rule(ties=Ties.REVERT)))

    ended(made)

    assert made.last().endswith("taken back: 8 of 17 passed, the best has 8")


TEXT = Switches(text_actions=True, model_may_run_tests=True, model_may_run_commands=True)


def test_a_model_without_tools_acts_in_plain_text(tmp_path: Path) -> None:
    reply = (
        "First I look.\n\n```action read_file path=app.py\n```\n\nThen I write.\n\n"
        f"```action write_file path=app.py\n{program(12)}```\n"
    )
    made = turns(
        tmp_path,
        (ScriptLine(content=reply), ScriptLine(content="```action final\nThat is all.\n```")),
        Rules(switches=TEXT),
    )

    assert ended(made) is StopReason.FINAL
    assert made.agent.tools == ()
    assert [name for name, *_ in made.taken()] == ["read_file", "write_file", "final"]
    *_, said, results = made.model.prompts[-1]
    assert (said.role, said.content, results.role) == ("assistant", reply, "user")
    assert results.content.startswith(f"1. read_file app.py\nlines 1-1 of 1\n{program(8)}\n\n2. wrote app.py\n12 of 17")
    (final,) = made.events(ev.Final)
    assert isinstance(final, ev.Final)
    assert final.message == "That is all."


def test_the_protocol_is_explained_in_text_mode_alone(tmp_path: Path) -> None:
    plain, tooled = turns(tmp_path / "a", (), Rules(switches=TEXT)), turns(tmp_path / "b", ())
    ended(plain)
    ended(tooled)

    assert "```action edit_file" in plain.model.prompts[0][0].content
    assert "```action" not in tooled.model.prompts[0][0].content
    assert [t.name for t in tooled.agent.tools] == [
        "list_files", "read_file", "search", "write_file", "edit_file", "delete_file", "escalate", "final",
    ]  # fmt: skip


def test_text_actions_are_taken_where_tools_were_offered(tmp_path: Path) -> None:
    made = turns(tmp_path, (ScriptLine(content=f"```action write_file path=app.py\n{program(TOTAL)}```"),))

    assert ended(made) is StopReason.GREEN


def test_a_broken_block_is_told_and_the_others_are_performed(tmp_path: Path) -> None:
    reply = f"```action write_file path=app.py\n{program(9)}```\n\n```action write_file path=app.py\n{program(TOTAL)}"
    made = turns(tmp_path, (ScriptLine(content=reply),), Rules(switches=TEXT))

    assert ended(made) is StopReason.FINAL
    assert made.text("app.py") == program(9)
    assert "is not closed" in made.last()


@pytest.mark.parametrize(
    "reply",
    [
        Reply("", (ToolCall("read_file", {"path": "app.py"}, "a"), ToolCall("final", {}, "b")), cut=True),
        Reply("", (ToolCall("read_file", {"path": "app.py"}, "a"), ToolCall("write_file", {}, "b")), cut=True),
        Reply(f"```action read_file path=app.py\n```\n```action write_file path=app.py\n{program(TOTAL)}```", cut=True),
        Reply("", (ToolCall("list_files", {}, "a"), ToolCall("no_such_tool", {}, "b")), cut=True),
    ],
)
def test_the_last_action_of_a_reply_that_was_cut_off_is_not_performed(tmp_path: Path, reply: Reply) -> None:
    made = turns(tmp_path, ())
    ended(made)
    first, last = made.agent.actions(replace(made.world.kernel.state, reply=reply))

    assert not first.fault
    assert last.fault.startswith("the reply was cut off at its greatest length")


def test_three_broken_blocks_in_one_reply_are_no_stall(tmp_path: Path) -> None:
    made = turns(tmp_path, (ScriptLine(content="```action\n```\n" * 3), call("final")), Rules(switches=TEXT))

    assert ended(made) is StopReason.FINAL
    assert made.last().startswith("1. an action needs a name: list_files")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("    return sum(rows)\n", "    rows = list(rows)\n    return sum(rows)\n", "rows = list(rows)\r\n    return"),
        ("    return sum(rows)\r\n", "    pass\r\n", "(rows):\r\n    pass\r\n"),
        ("sum(rows)", "0\n", "    return 0\r\n\r\n"),
    ],
)
def test_an_edit_keeps_the_line_ends_of_its_file(tmp_path: Path, old: str, new: str, text: str) -> None:
    sums = FILES["src/sums.py"].replace("\n", "\r\n")
    lines = (call("write_file", path="src/sums.py", text=sums), call("edit_file", path="src/sums.py", old=old, new=new))
    made = turns(tmp_path, lines, Rules(budget=MANY))

    ended(made)

    written = (tmp_path / "workspace/src/sums.py").read_bytes().decode()
    assert text in written
    assert written.count("\n") == written.count("\r\n")


def test_more_calls_than_were_performed_all_have_a_result(tmp_path: Path) -> None:
    refused = ScriptLine(
        tool_calls=(ToolCall("read_file", {"path": "app.py"}), ToolCall("list_files")), error="refusal"
    )
    made = turns(tmp_path, (refused, call("final")))

    ended(made)

    *_, said, one, two = made.model.prompts[-1]
    assert [c.id for c in said.tool_calls] == [one.call_id, two.call_id]
    assert one.content.startswith("the model gave no usable answer")
    assert two.content == "not performed"


ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    ["\ud800", "9" * 5000, "./" * 2000, "nan", ""]
)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from([10**18, -(10**18), 1e300, 3.0])
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=4,
)
NAMES = [offer.name for offer in ALL]
ANY_CALL = st.builds(
    ToolCall,
    st.sampled_from([*NAMES, *NAMES, "write_files", "out_of_time", "\ud800"]) | ANY_TEXT,
    st.dictionaries(
        st.sampled_from([*(a.name for offer in ALL for a in offer.arguments), "files", "_malformed"]) | ANY_TEXT,
        st.sampled_from(["app.py", "src"]) | ANY_JSON,
        max_size=4,
    ),
    st.just("a") | ANY_TEXT,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_whatever_is_called_with_whatever_is_performed_or_refused_and_can_be_written_down(data: st.DataObject) -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"path": deep}
    unspeakable: list[dict[str, object]] = [deep, {"path": "app.py", "start": 10**5000}, {"path": 10**5000, "text": ""}]
    worst = st.builds(ToolCall, st.sampled_from(NAMES), st.integers(0, 2).map(lambda n: unspeakable[n]))
    with swift() as folder:
        made = turns(folder, (), Rules(switches=Switches(model_may_run_tests=True, model_may_run_commands=True)))
        with made.world.journal:
            calls = data.draw(st.lists(ANY_CALL | worst, min_size=1, max_size=6))
            state = replace(made.world.kernel.state, reply=Reply(tool_calls=tuple(calls)))
            found = made.agent.actions(state)
            assert len(found) == len(calls)
            for action in (*found, *tool_calls.parse_actions(calls)):
                if action.name != "run_command" or action.fault:
                    msgspec.json.encode(list(actions.act(made.parts, action, state, last=False)))


@pytest.mark.parametrize("text", [False, True])
def test_a_reply_of_a_thousand_actions_is_fifty_and_a_sentence(tmp_path: Path, text: bool) -> None:  # noqa: FBT001
    line = ScriptLine(
        content="".join(f"```action read_file path=app.py start={n}\n```\n" for n in range(1000)) if text else "",
        tool_calls=() if text else tuple(ToolCall("read_file", {"path": "app.py", "start": n}) for n in range(1000)),
    )
    made = turns(tmp_path, (line, call("final")), Rules(budget=MANY))

    assert ended(made) is StopReason.FINAL
    *read, rest, final = made.taken()
    assert [name for name, *_ in read] == ["read_file"] * MOST
    assert rest == ("none", False, f"a reply may hold {MOST} actions; the other 950 were not performed")
    assert final[0] == "final"
    assert rest[2] in "".join(m.content for m in made.model.prompts[-1])


def test_the_actions_of_a_reply_are_found_once_and_those_of_another_anew(tmp_path: Path) -> None:
    made = turns(tmp_path, ())
    ended(made)
    one, other = (
        replace(made.world.kernel.state, reply=Reply("", (ToolCall("read_file", {"path": path}),)))
        for path in ("app.py", "src/sums.py")
    )

    first = made.agent.actions(one)

    assert made.agent.actions(one) is first
    assert made.agent.actions(other)[0].args["path"] == "src/sums.py"
    assert made.agent.actions(one) == first
    assert made.agent.actions(replace(one, flaw="no usable answer"))[0].name == "none"


@pytest.mark.parametrize("internal", [(), ("out_of_time",)])
def test_only_our_own_search_ends_a_run_for_its_time(internal: tuple[str, ...]) -> None:
    (found,) = tool_calls.parse_actions((ToolCall("out_of_time", {"message": "now"}),), internal)

    if internal:
        assert found == Action("out_of_time", message="now")
    else:
        assert found.name == "unparsable"
        assert found.message.startswith("there is no tool 'out_of_time'; there are write_file, ")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (ToolCall("write_file", {"path": "a", "text": None}), "the text of 'a' must be a string"),
        (ToolCall("write_file", {"path": 1, "text": ""}), "`path` of 'write_file' must be a string"),
        (ToolCall("delete_file", {"path": "\ud800"}), "`path` of 'delete_file' must be a string of valid Unicode"),
        (ToolCall("final", {"message": ["x"]}), "`message` of 'final' must be a string"),
        (ToolCall("final", {}, "\ud800"), "must be a string of valid Unicode"),
        (ToolCall("write_files", {"files": []}), "write_files needs `files`"),
    ],
)
def test_a_call_of_a_script_that_cannot_be_performed_is_told(asked: ToolCall, why: str) -> None:
    (found,) = tool_calls.parse_actions((asked,))

    assert found.name == "unparsable"
    assert why in found.message


THOUGHT = f"```action write_file path=app.py\n{program(3)}```\n"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (f"<think>\nPerhaps:\n{THOUGHT}</think>\n```action final\n```", ["final"]),
        (f"\ufeff<THINK>{THOUGHT}</THINK>\n```action final\n```", ["final"]),
        (f"Perhaps:\n{THOUGHT}</think>\n```action final\n```", ["final"]),
        ("<think>\n```action write_file path=app.py\nx\n</think>\n```action final\n```", ["final"]),
        (f"<think>\n{THOUGHT}", ["none"]),
        (f"So.\n<think>\n{THOUGHT}", ["none"]),
        (f"So. <reasoning> {THOUGHT}\n{THOUGHT}", ["none"]),
        (f"{THOUGHT}</think> Now:\n```action final\n```", ["none"]),
        ("So.\n<think>\n```action write_file path=app.py\nx\n</think>\n```action final\n```", ["none"]),
        ("Hm.\n```action write_file path=app.py\nx\n</think>\n```action final\n```", ["none"]),
        (f"<think>a</think>\n{THOUGHT}<think>\n{THOUGHT}</think>\n{THOUGHT}", ["none"]),
        ("<think>a</think>\n```action write_file path=app.py\n# <think></think>\n```", ["write_file"]),
    ],
)
def test_nothing_of_a_reply_s_reasoning_is_performed(tmp_path: Path, content: str, names: list[str]) -> None:
    made = turns(tmp_path, (ScriptLine(content=content), call("final")), Rules(switches=TEXT, budget=MANY))

    ended(made)

    taken = [name for name, *_ in made.taken()]
    assert taken == (names if names == ["final"] else [*names, "final"])
    assert made.text("app.py") == program(8)
    assert (text_protocol.UNTOLD in made.model.prompts[-1][-1].content) == (names == ["none"])
