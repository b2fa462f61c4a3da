"""What could have passed a cap, lost a bill or another's run, and does not any more."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from shutil import copytree

import anyio
import pytest

from cli.test_cli import GOOD, Called, Files, jumar, lay
from jumar.agents.driver import Driver
from jumar.core.run.effects import Call, Verify
from jumar.core.run.reducers.transitions import replay
from jumar.core.run.strategy import Request
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget, Cost, to_micro_usd
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Price, Route, Switches
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy, Trigger
from jumar.errors import BadInput, Infra
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.models.script import ScriptLine, ScriptModel
from jumar.models.wire.prices import find_tariff
from jumar.ports import Answer, Ask
from jumar.runs.lifecycle import start
from jumar.runtime.actions import redact_event
from jumar.task.resolve import Options, apply_options
from jumar.task.task import list_tree_files, load_task
from support.processes import fake_provider as wire
from support.worlds.run_world import Terms, World, program, world

__all__ = ["jumar"]

KEY = "sk-planted-0123456789abcdefghij"


class Unrecorded:
    """A model whose answer was paid for and cannot be kept: a full disk, say."""

    name = "m"

    def worst(self, _ask: Ask) -> Cost:
        return Cost(0.25, 100)

    async def complete(self, _ask: Ask) -> Answer:
        raise Infra("cannot write the recording: No space left on device")


def test_a_call_whose_answer_cannot_be_kept_costs_what_was_set_aside(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms(model=Unrecorded()))
    with made.journal:
        state = anyio.run(made.kernel.run)

    assert state.end
    assert state.end.stop is StopReason.INFRA
    assert (state.spend.micro_usd, state.spend.tokens) == (250_000, 100)


def test_under_on_final_broken_infrastructure_elsewhere_does_not_take_the_last_verification(tmp_path: Path) -> None:
    made = world(tmp_path, (), Terms(model=Unrecorded(), policy=TestPolicy.ON_FINAL))
    with made.journal:
        anyio.run(made.kernel.run)

    assert len(made.events(ev.Tests)) == 1


def test_under_on_final_the_time_of_the_last_verification_is_kept_in_flight_too(tmp_path: Path) -> None:
    budget = Budget(seconds=200.0)
    made = world(tmp_path, (), Terms(policy=TestPolicy.ON_FINAL, budget=budget))
    with made.journal:
        left = made.kernel.shell.seconds_left(Call(Request("mid", "write")), made.kernel.state)
        last = made.kernel.shell.seconds_left(Verify(Trigger.FINAL), made.kernel.state)

    assert left is not None
    assert left <= 200.0 - 120.0
    assert last is None


def writing(passing: int) -> ScriptLine:
    return ScriptLine(tool_calls=(ToolCall("write_file", {"path": "app.py", "text": program(passing)}),))


def test_a_kill_before_best_was_written_down_loses_nothing_of_the_next_segment(tmp_path: Path) -> None:
    def made(folder: Path) -> World:
        agent = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
        model = ScriptModel((writing(12), writing(17)))
        terms = Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None, turns=1), agent=agent, model=model)
        return world(folder, (), terms)

    first = made(tmp_path / "first")
    with first.journal:
        anyio.run(first.kernel.run)
    events = [e.event for e in first.entries()]
    killed = made(tmp_path / "killed")
    copytree(tmp_path / "first" / "objects", tmp_path / "killed" / "objects", dirs_exist_ok=True)
    with killed.journal:
        killed.journal.append(events[1 : [type(e) for e in events].index(ev.BestFound)], 1.0)
    with Journal.open(tmp_path / "killed") as journal:
        again = Kernel(journal, killed.kernel.shell, killed.kernel.agent, replay(journal.entries))
        raised = ev.Limit(name="turns", old=1, new=2, by="resume")
        again.record((raised, ev.Resume(from_seq=journal.entries[-1].seq)))
        again.shell._parts.workspace.reset(again.state.tree)  # noqa: SLF001  as `resume` does
        end = anyio.run(again.run).end

    assert end
    assert end.stop is StopReason.GREEN
    assert killed.text == program(17)
    assert len(killed.events(ev.Tests)) == 2


@pytest.mark.parametrize(
    ("usd", "expected"), [(1e305, 10**15), (math.inf, 10**15), (math.nan, 10**15), (-5.0, 0), (0.0000001, 1)]
)
def test_money_is_never_paid_back_and_never_breaks_a_sum(usd: float, expected: int) -> None:
    assert to_micro_usd(usd) == expected


@pytest.mark.slow
def test_a_file_that_came_with_the_task_cannot_raise_a_profile_or_lower_a_price(tmp_path: Path) -> None:
    tables = '[budget]\nusd = 100000\n[prices."openai:gpt-6.1-terra"]\ninput = 0\noutput = 0\n'
    task = load_task(lay(tmp_path / "in" / "task", {**GOOD, "task.toml": tables}))
    chosen = apply_options(task, Options(model="openai:gpt-6.1-terra", profile="workday"))
    route = chosen.chosen_routes["mid"]

    assert chosen.budget.usd == 10.0
    assert (
        find_tariff(route).worst(1000, 1000)
        >= find_tariff(Route(model=route.model, max_output_tokens=1)).worst(1000, 1000)
        > 0
    )

    (tmp_path / "in" / "jumar.toml").write_text(tables)
    own = apply_options(load_task(tmp_path / "in" / "task"), Options(model="openai:gpt-6.1-terra"))
    assert own.chosen_routes["mid"].price == Price(input=0, output=0)
    assert find_tariff(own.chosen_routes["mid"]).worst(1000, 1000) == 0


def test_keys_are_struck_out_of_what_a_model_is_shown() -> None:
    shown = ev.Observation(name="read_file", content={"text": f"OPENAI_API_KEY={KEY}\n", "lines": ["1", KEY]})
    taken = ev.ActionTaken(name="search", args={"pattern": KEY}, admitted=False, reason=f"no {KEY}")

    assert KEY not in str(redact_event(shown, (KEY,)))
    assert KEY not in str(redact_event(taken, (KEY,)))
    assert redact_event(shown, ()) is shown


@pytest.mark.slow
def test_a_run_that_is_refused_leaves_the_runs_of_others_alone(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    task = lay(
        tmp_path / "task", {"app.py": "x = 1\n", "test_app.py": f"import os\nos.makedirs({str(runs / 'b')!r})\n"}
    )
    settled = apply_options(load_task(task), Options(model="repair", sandbox="S0"))

    with pytest.raises(BadInput, match="no tests"):
        anyio.run(lambda: start(settled, runs, environ=os.environ))
    assert [p.name for p in runs.iterdir() if p.is_dir()] == ["b"]


@pytest.mark.slow
def test_going_on_without_room_or_key_is_refused_before_the_journal_knows(
    jumar: Called,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lay(tmp_path / "task", GOOD)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    look = wire.reply("", ("list_files", {"path": ""}))
    with wire.Server(last=look) as server:
        chosen = (
            "--agent",
            "driver",
            "--model",
            "openai:x",
            "--base-url",
            server.url,
            "--price",
            "1,2",
            "--turns",
            "1",
        )
        code, out, _ = jumar("run", "task", *chosen, "--test-policy", "on_final", "--test-runs", "1", "--json")
    assert code == 1
    journal = Path(json.loads(out.splitlines()[-1])["events"])
    before = journal.read_bytes()

    code, _, err = jumar("resume", str(journal.parent), "--turns", "3")
    assert code == 2
    assert "--test-runs" in err
    assert journal.read_bytes() == before


def test_a_pipeline_that_asks_for_what_it_may_not_do_uses_up_its_attempts(tmp_path: Path) -> None:
    delete = ScriptLine(tool_calls=(ToolCall("delete_file", {"path": "test_app.py"}),))
    made = world(tmp_path, (), Terms(model=ScriptModel((delete,) * 50), budget=Budget(attempts=3)))
    with made.journal:
        state = anyio.run(made.kernel.run)

    assert state.end
    assert state.end.stop is StopReason.ATTEMPTS
    assert len(made.events(ev.ModelCall)) == 3


def test_another_idea_after_one_that_was_taken_back_is_no_stall(tmp_path: Path) -> None:
    look = ScriptLine(tool_calls=(ToolCall("read_file", {"path": "app.py"}),))
    lines = (look, writing(7), look, writing(6), look, writing(17))
    agent = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
    made = world(tmp_path, (), Terms(model=ScriptModel(lines), agent=agent, budget=Budget(attempts=None)))
    with made.journal:
        state = anyio.run(made.kernel.run)

    assert state.end
    assert state.end.stop is StopReason.GREEN


@pytest.mark.parametrize("name", ["hidden", "hidden/", "./hidden", "a//../hidden", "link", "./link/."])
def test_hidden_tests_are_withheld_by_whatever_name(tmp_path: Path, name: str) -> None:
    tables = f"[tests]\nhidden = {name!r}\n[task]\nreference = './solution'\n"
    files = {**GOOD, "hidden/test_h.py": "secret = 1\n", "solution/app.py": "def f(): return 2\n", "task.toml": tables}
    root = lay(tmp_path / "task", files)
    (root / "link").symlink_to("hidden")
    if ".." in name:
        with pytest.raises(BadInput, match="hidden"):
            load_task(root)
        return
    task = load_task(root)

    assert not [p for p in list_tree_files(root, task.withheld) if p.startswith(("hidden", "solution", "link"))]


@pytest.mark.parametrize("name", [".", "./", "solution/.."])
def test_the_task_s_own_folder_hides_nothing(tmp_path: Path, name: str) -> None:
    root = lay(tmp_path / "task", {**GOOD, "solution/a.py": "", "task.toml": f"[tests]\nhidden = {name!r}\n"})

    with pytest.raises(BadInput, match="hidden"):
        load_task(root)


WRONG = {"attempts": "5", "turns": 1.5, "usd": "1", "seed": "x", "model": 5, "tests": None, "model_may_run_tests": "no"}


@pytest.mark.parametrize("name", WRONG)
def test_an_option_of_the_wrong_type_is_one_sentence(name: str) -> None:
    with pytest.raises(BadInput, match=name):
        Options(**{"model": "repair", name: WRONG[name]})  # type: ignore[arg-type]  # the point of it


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (("--model", "repair", "--price", "1,2"), "--price"),
        (("--model", "repair", "--base-url", "http://127.0.0.1:9/v1"), "--base-url"),
        (("--model", "script:s", "--test-policy", "never", "--test-runs", "3"), "--test-runs"),
        (("--model", "script:s", "--test-policy", "never", "--ratchet", "identity"), "--ratchet"),
    ],
)
def test_an_option_without_effect_is_refused(jumar: Called, tmp_path: Path, argv: tuple[str, ...], named: str) -> None:
    lay(tmp_path, GOOD)

    code, _, err = jumar("run", ".", *argv)

    assert code == 2
    assert named in err


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["driver", pytest.param("pipeline", marks=pytest.mark.proof)])
def test_a_file_that_is_not_there_yet_can_be_written(jumar: Called, tmp_path: Path, agent: str) -> None:
    text = "def f():\n    return 2\n"
    call = {"name": "write_file", "arguments": {"path": "app.py", "text": text}}
    line = {"tool_calls": [call]} if agent == "driver" else {"content": f"```python\n{text}```"}
    files: Files = {"test_app.py": GOOD["test_app.py"], "task.toml": "[files]\neditable = ['app.py']\n"}
    lay(tmp_path / "task", files)
    (tmp_path / "s.jsonl").write_text(json.dumps(line))

    code, out, _ = jumar(
        "run", "task", "--agent", agent, "--gate", "off", "--model", f"script:{tmp_path / 's.jsonl'}", "--json"
    )

    assert code == 0, out
    assert json.loads(out.splitlines()[-1])["stop"] == "green"


@pytest.mark.slow
def test_what_the_run_itself_needs_is_no_part_of_the_task(
    jumar: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    lay(tmp_path, {**GOOD, "old.jsonl": json.dumps({"content": "x"})})
    look = wire.reply("", ("list_files", {"path": ""}))
    write = wire.reply("", ("write_file", {"path": "app.py", "text": "def f():\n    return 2\n"}))
    with wire.Server([look, write]) as server:
        model = ("--model", "openai:x", "--base-url", server.url, "--price", "1,2")
        purse = ("--ledger", "purse.db", "--ledger-usd", "1", "--record", "tape.jsonl")
        first, out, _ = jumar("run", ".", "--agent", "driver", "--gate", "off", *model, *purse, "--json")
    assert "purse.db" not in str(server.requests[0].body)
    again, said, _ = jumar(
        "run",
        ".",
        "--agent",
        "driver",
        "--gate",
        "off",
        "--model",
        "replay:tape.jsonl",
        "--ledger",
        "purse.db",
        "--json",
    )

    assert (first, again) == (0, 0)
    assert [json.loads(text.splitlines()[-1])["stop"] for text in (out, said)] == ["green", "green"]
