"""The way out of an agent that finds that a test contradicts the instruction or another test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from cli.test_cli import Called, jumar, lay
from hooks.test_claim import run
from jumar.core.state import events as ev
from jumar.core.state.settings import Switches
from jumar.core.state.stop import EXIT_CODES, Escalation, StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.hooks.claim_command import ClaimOutcome
from jumar.hooks.escalate_command import escalate_in_session
from jumar.models.script import ScriptLine
from mcp_server.test_mcp import Guest, visiting
from support.processes import fake_provider as wire
from support.processes.external_run import Outing, Terms
from support.processes.fake_claude_code import RED, RIGHT, Host, quick, repository
from support.processes.fake_sessions import House
from support.worlds.driver_world import Rules, Turns, both, call, ended, resumed, swift, turns, writes
from support.worlds.gate_scenarios import ADD, ALL_GREEN, CALC_ADD, WRONG_MUL
from support.worlds.gate_world import FILES, claim, gated, id_of, lying
from support.worlds.gate_world import Terms as Gated
from support.worlds.run_world import IDS, TOTAL, program

__all__ = ["jumar"]

WHY = "test_neg asks for the opposite"
MUL = id_of("mul")


@pytest.fixture(name="tmp_path")
def _tmp_path() -> Iterator[Path]:
    with swift() as folder:
        yield folder


def escalate(test_id: str, reason: str = WHY) -> ScriptLine:
    return call("escalate", test_id=test_id, reason=reason)


def escalations(made: Turns) -> list[dict[str, object]]:
    """What the journal says was escalated."""
    taken = [e for e in made.events(ev.ActionTaken) if isinstance(e, ev.ActionTaken)]
    return [dict(e.args) for e in taken if e.name == "escalate" and e.admitted]


def test_an_escalation_ends_the_run_typed_with_exit_1_and_stands_in_the_journal(tmp_path: Path) -> None:
    made = gated(tmp_path, (both(claim("add"), ADD), escalate(MUL)))

    assert ended(made) is StopReason.ESCALATED
    assert EXIT_CODES[StopReason.ESCALATED] == 1
    assert escalations(made) == [{"test_id": MUL, "reason": WHY}]
    state = made.world.replayed()
    assert state.escalated == Escalation(MUL, WHY)
    assert state.end is not None
    assert state.end.why == f"the agent escalated {MUL}: {WHY}."
    assert lying(made) == {**FILES, "calc.py": CALC_ADD}, "the best tree is kept, and no test was edited"


def test_edits_that_wait_are_judged_first_as_at_final(tmp_path: Path) -> None:
    good = gated(tmp_path / "good", (both(claim("add"), ADD, escalate(MUL)),))
    bad = gated(tmp_path / "bad", (both(claim("mul"), WRONG_MUL, escalate(MUL)),))

    assert (ended(good), ended(bad)) == (StopReason.ESCALATED, StopReason.ESCALATED)
    assert lying(good)["calc.py"] == CALC_ADD
    assert lying(bad) == FILES
    assert [e.test_ids for e in bad.events(ev.Repair) if isinstance(e, ev.Repair)] == [(MUL,)]


@pytest.mark.parametrize("gate", [Gate.STRICT, Gate.REFACTOR])
def test_it_is_no_green_even_if_every_test_passes(tmp_path: Path, gate: Gate) -> None:
    terms = Gated(files=ALL_GREEN, gate=gate, instruction="mul must add")
    made = gated(tmp_path, (escalate(MUL, "the task says that mul must add"),), terms)

    assert ended(made) is StopReason.ESCALATED


def test_in_refactor_mode_what_is_not_green_goes_back(tmp_path: Path) -> None:
    terms = Gated(files=ALL_GREEN, gate=Gate.REFACTOR, instruction="tidy up")
    breaking = call("edit_file", path="calc.py", old="a * b", new="a")
    made = gated(tmp_path, (both(breaking, escalate(MUL)),), terms)

    assert ended(made) is StopReason.ESCALATED
    assert lying(made) == {**FILES, **ALL_GREEN}


@pytest.mark.parametrize("policy", TestPolicy)
def test_without_a_gate_it_works_under_every_policy(tmp_path: Path, policy: TestPolicy) -> None:
    made = turns(tmp_path, (both(writes(9), escalate(IDS[16])),), Rules(policy=policy))

    assert ended(made) is StopReason.ESCALATED
    assert made.text("app.py") == program(9)
    assert made.triggers() == {"on_write": ["baseline", "write"], "on_final": ["final"], "never": []}[policy]


def test_it_works_in_the_plain_text_protocol(tmp_path: Path) -> None:
    text = f"I cannot do both.\n\n```action escalate test_id={IDS[16]}\nIt wants 17,\nthe task 9.\n```\n"
    made = turns(tmp_path, (ScriptLine(content=text),), Rules(switches=Switches(text_actions=True)))

    assert ended(made) is StopReason.ESCALATED
    assert escalations(made) == [{"test_id": IDS[16], "reason": "It wants 17,\nthe task 9."}]
    assert "```action escalate test_id=" in made.model.prompts[0][0].content


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            escalate("test_calc.py::test_none"),
            "there is no test 'test_calc.py::test_none' in this run; there is test_calc",
        ),
        (escalate("test_mul"), f"there is no test 'test_mul' in this run; there is {MUL}"),
        (escalate(""), "there is no test ''"),
        (escalate(MUL, " \n"), f"say in `reason` what {MUL} contradicts"),
        (call("escalate", test_id=MUL), "escalate needs `reason` (string)"),
    ],
)
def test_an_unknown_test_or_no_reason_is_refused_with_a_sentence_and_the_run_goes_on(
    tmp_path: Path, line: ScriptLine, why: str
) -> None:
    made = gated(tmp_path, (line, call("final", message="done")))

    assert ended(made) is StopReason.FINAL
    (name, admitted, reason), _ = made.taken()
    assert (name, admitted) == ("escalate", False)
    assert why in reason
    assert reason in made.last()


def test_who_resumes_an_escalated_run_lets_the_agent_go_on(tmp_path: Path) -> None:
    made = turns(tmp_path, (both(writes(9), escalate(IDS[16])), writes(TOTAL)))
    ended(made)

    state = resumed(made)

    assert state.end is not None
    assert state.end.stop is StopReason.GREEN
    assert state.escalated is None
    assert "the run had ended with this, and was taken up again: go on" in str(made.model.prompts[-1])


def test_the_system_prompt_says_when_in_one_sentence(tmp_path: Path) -> None:
    made = gated(tmp_path, (escalate(MUL),))

    ended(made)

    assert "Where a test contradicts the task or another test, call escalate" in made.model.prompts[0][0].content


# --- where people and programs meet it --------------------------------------------------------------------------------

TASK = {
    "a.py": "def two():\n    return 1\n",
    "test_a.py": "from a import two\n\n\ndef test_two():\n    assert two() == 2\n",
}
SCRIPT = {
    "tool_calls": [
        {"name": "write_file", "arguments": {"path": "a.py", "text": "def two():\n    return 3\n"}},
        {"name": "escalate", "arguments": {"test_id": "test_a.py::test_two", "reason": "the task\nwants 3"}},
    ]
}


@pytest.mark.slow
def test_every_report_of_a_run_names_the_test_and_the_reason(jumar: Called, tmp_path: Path) -> None:
    lay(tmp_path / "task", {**TASK, "s.jsonl": json.dumps(SCRIPT)})
    argv = ("run", "task", "--agent", "driver", "--test-policy", "never", "--sandbox", "S0", "--confirm", "0")

    code, out, _ = jumar(*argv, "--model", "script:task/s.jsonl")
    (written,) = Path(".jumar", "runs").glob("*/result.json")
    result = json.loads(written.read_text())

    assert (code, result["stop"], result["exit"]) == (1, "escalated", 1)
    assert result["escalated"] == {"test_id": "test_a.py::test_two", "reason": "the task\nwants 3"}
    assert out.startswith("escalated  ")
    assert "\nthe agent escalated test_a.py::test_two: the task wants 3.\n" in out


def test_a_run_is_asked_at_its_address(jumar: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    with run(b'{"admitted": true, "text": "escalated: it"}') as (address, heard):
        monkeypatch.setenv("JUMAR_HOST", address)
        code, out, _ = jumar("escalate", "t.py::a", "it", "wants", "2")

    assert (code, out) == (0, "escalated: it\n")
    assert heard == [("/token/escalate", {"test_id": "t.py::a", "reason": "it wants 2"})]


@pytest.mark.slow
def test_an_external_agent_escalates_and_what_it_did_is_judged_first(tmp_path: Path) -> None:
    script = f"""
        def escalate(test, why):
            return post(os.environ["JUMAR_HOST"] + "/escalate", {{"test_id": test, "reason": why}})

        ask()
        print(escalate("test_app.py::test_none", "x"))
        write("app.py", {program(9)!r})
        print(escalate({IDS[16]!r}, "it wants more than 16"))
    """
    with wire.Server() as server:
        outing = Outing(tmp_path, script, server)
        end = outing.run()

    refused, admitted = outing.said().splitlines()
    assert "'admitted': False" in refused
    assert "there is no test" in refused
    assert admitted.startswith("(200, {'admitted': True, 'text': 'escalated: ")
    assert end.stop is StopReason.ESCALATED
    assert outing.snapshot()["app.py"][0] == program(9)
    assert "jumar escalate TEST" in outing.prompt()


@pytest.mark.slow
def test_an_external_agent_that_nobody_metered_cannot_escalate_around_its_bill(tmp_path: Path) -> None:
    script = f"""
        write("app.py", {program(9)!r})
        post(os.environ["JUMAR_HOST"] + "/escalate", {{"test_id": {IDS[16]!r}, "reason": "x"}})
    """
    with wire.Server() as server:
        end = Outing(tmp_path, script, server, Terms()).run()

    assert end.stop is StopReason.INFRA
    assert "without a call through the proxy" in end.why


@pytest.mark.slow
def test_behind_the_hooks_an_agent_escalates_in_its_shell(tmp_path: Path) -> None:
    host = quick(Host(repository(tmp_path / "repo")))

    def said(test: str, reason: str) -> ClaimOutcome:
        return anyio.run(escalate_in_session, host.root, test, reason, host.environ)

    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    assert host.edit("calc.py", "a - b", "a + b") == ""
    assert "there is no test" in said("test_calc.py::test_no", "it is wrong").text
    done = said("test_calc.py::test_mul", "the person asked for a division")
    assert (done.admitted, "a person decides" in done.text) == (True, True)
    assert (host.root / "calc.py").read_text() == RIGHT, "the edit that turned its test green stays"
    (result,) = (host.root / ".jumar" / "hook" / "runs").glob("*/result.json")
    assert json.loads(result.read_text())["stop"] == "escalated"

    assert "the run ended (escalated)" in host.edit("calc.py", "a + b", "b + a")
    assert host.asks("Bash", command="ls").blocked == "", "reading goes on, by a shell too"
    assert "calc.py went back" in host.shell("echo >> calc.py").blocked
    assert (host.root / "calc.py").read_text() == RIGHT
    assert "git push" in host.shell("git push --force").blocked
    assert host.claim(RED, "calc.py")[1].startswith("refused: the run ended (escalated): edits are blocked until")
    assert said(RED, "again") == ClaimOutcome(admitted=False, text=host.claim(RED, "calc.py")[1].rstrip())
    stopped = host.stop()
    assert stopped.blocked == ""
    assert "escalated test_calc.py::test_mul: the person asked for a division" in str(stopped.said["systemMessage"])
    assert "none red" in host.prompt().context, "a prompt begins a new run"


@pytest.mark.slow
def test_an_mcp_host_escalates(tmp_path: Path) -> None:
    async def story(guest: Guest, house: House) -> None:
        await guest.done("open_task", path=".")
        assert "missing required field `reason`" in await guest.refused("escalate", test_id="t.py::a")
        done = await guest.done("escalate", test_id="t.py::a", reason="it contradicts t.py::b")
        assert (done["stop"], done["tests"]["red"]) == ("escalated", ["t.py::a"])
        assert house.runs[0].calls[-1].name == "escalate"
        assert house.runs[0].calls[-1].arguments == {"test_id": "t.py::a", "reason": "it contradicts t.py::b"}

    visiting(tmp_path, story)
