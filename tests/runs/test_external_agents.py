"""Real agents from the package index, and the command line that starts them: `jumar run --agent external`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.core.state import events as ev
from jumar.errors import BadInput
from jumar.journal.writer import read_journal
from jumar.task.resolve import Options, apply_options
from jumar.task.task import load_task
from support.processes import fake_provider as wire
from support.processes.external_run import PRELUDE

Json = dict[str, Any]

KEY = "sk-the-key-of-the-person"
MINI = Path(sys.prefix) / "mini" / "bin" / "mini"
"""Where `make` installs mini-swe-agent, apart from everything of ours."""

TASK = {
    "gcd.py": "def gcd(a, b):\n    if b == 0:\n        return a\n    return gcd(a, b)\n",
    "test_gcd.py": "from gcd import gcd\n\n\ndef test_gcd():\n    assert gcd(12, 8) == 4\n\n\n"
    "def test_zero():\n    assert gcd(7, 0) == 7\n",
}
MEND = "sed -i 's/gcd(a, b)$/gcd(b, a % b)/' gcd.py"
CHEAT = "sed -i 's/gcd(12, 8) == 4/True/' test_gcd.py"
CLAIM = "jumar claim test_gcd.py::test_gcd gcd.py"


def jumar(folder: Path, server: wire.Server, *words: str, **environ: str) -> tuple[int, Json, str]:
    """`jumar run` on the task in *folder*: exit status, what `--json` says, and standard error."""
    where = ("--model", "openai:gpt-run", "--base-url", server.url, "--price", "1,2", "--runs", str(folder / "runs"))
    done = subprocess.run(
        [sys.executable, "-m", "jumar.cli.main", "run", str(folder / "task"), *where, *words, "--json"],
        env={**os.environ, "OPENAI_API_KEY": KEY, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else {}, done.stderr


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A folder with the task in `task/`."""
    for name, text in TASK.items():
        (tmp_path / "task").mkdir(exist_ok=True)
        (tmp_path / "task" / name).write_text(text)
    return tmp_path


def bash(*commands: str) -> list[wire.Step]:
    """A model that has these commands run, one a turn, and then says that it is done."""
    return [wire.reply("next", ("bash", {"command": c})) for c in (*commands, DONE)]


DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def results(server: wire.Server) -> list[str]:
    """What each command printed, as the agent told its model."""
    last = server.requests[-1].body["messages"]
    return [message["content"] for message in last if message["role"] == "tool"]


def mini(*extra: str) -> Sequence[str]:
    """The options that start mini-swe-agent."""
    if not MINI.exists():
        pytest.skip(f"mini-swe-agent is not installed in {MINI.parent.parent.name}: make .venv/mini/.ready")
    quiet = "MSWEA_CONFIGURED=true MSWEA_SILENT_STARTUP=1 MSWEA_COST_TRACKING=ignore_errors"
    offline = "LITELLM_LOCAL_MODEL_COST_MAP=True"
    command = f"env {quiet} {offline} {MINI} -m openai/{{model}} -t {{prompt}} -y --exit-immediately"
    return ("--agent", "external", "--agent-command", command, "--budget-usd", "1", *extra)


class TestMini:
    """mini-swe-agent, from the package index, as it is."""

    @pytest.mark.proof
    def test_completes_a_task_under_the_ratchet_and_its_cheating_edit_of_the_tests_is_undone(self, task: Path) -> None:
        with wire.Server(bash(f"{CHEAT} && cat test_gcd.py", "cat test_gcd.py", MEND)) as server:
            code, told, stderr = jumar(task, server, *mini())
        assert (code, told["stop"], told["passed"], told["total"]) == (0, "green", 2, 2), stderr
        shown = results(server)
        assert "assert True" in shown[0], "it did cheat"
        assert "assert gcd(12, 8) == 4" in shown[1], "and found it undone"

    @pytest.mark.proof
    def test_under_the_strict_gate_edits_for_a_red_test_or_not_at_all(self, task: Path) -> None:
        commands = bash(f"{CHEAT}; {MEND}; cat *.py", "cat *.py", f"{CLAIM} && {MEND}", "cat gcd.py")
        with wire.Server(commands) as server:
            code, told, stderr = jumar(task, server, *mini("--gate", "strict"))
        assert (code, told["stop"], told["passed"], told["total"]) == (0, "green", 2, 2), stderr
        shown = results(server)
        assert "assert True" in shown[0], "it did cheat"
        assert "gcd(b, a % b)" in shown[0], "and edit without a claim"
        assert "assert gcd(12, 8) == 4" in shown[1], "and found both undone"
        assert "return gcd(a, b)" in shown[1]
        assert "claimed: gcd.py" in shown[2]
        assert "return gcd(b, a % b)" in shown[3]
        folder = Path(told["events"]).parent
        claimed = [e.event.claimed for e in read_journal(folder) if isinstance(e.event, ev.Write)]
        assert claimed == [("test_gcd.py::test_gcd",)]
        assert (folder / "workspace" / "test_gcd.py").read_text() == TASK["test_gcd.py"]
        assert all(r.headers["authorization"] == f"Bearer {KEY}" for r in server.requests)
        assert all(r.body["model"] == "gpt-run" for r in server.requests)
        assert told["usd"] == pytest.approx(len(server.requests) * (100 * 1 + 20 * 2) / 1e6)
        assert KEY not in (folder / "events.jsonl").read_text()


class TestTheCommandLine:
    """What a person chooses for an agent that is not ours, and what cannot work."""

    @pytest.mark.slow
    def test_starts_it_and_a_run_that_ran_out_of_tokens_is_resumed(self, task: Path) -> None:
        script = f"ask(); status = ask('x' * 2000)[0]; print(status); status == 200 and sh({MEND!r})\n"
        (task / "agent.py").write_text(PRELUDE + script)
        words = ("--agent", "external", "--agent-command", f"{sys.executable} {task / 'agent.py'} {{model}}")
        with wire.Server() as server:
            code, told, stderr = jumar(task, server, *words, "--budget-tokens", "9800", "--turn-seconds", "60")
            folder = Path(told["events"]).parent
            assert (code, told["stop"]) == (3, "budget"), stderr
            assert (folder / "output" / "agent-001.txt").read_text() == "402\n"
            resumed = subprocess.run(
                [sys.executable, "-m", "jumar.cli.main", "resume", folder, "--budget-tokens", "90000", "--json"],
                env={**os.environ, "OPENAI_API_KEY": KEY},
                capture_output=True,
                text=True,
                check=False,
            )
        assert resumed.returncode == 0, resumed.stderr
        assert json.loads(resumed.stdout.splitlines()[-1])["stop"] == "green"
        assert (folder / "output" / "agent-002.txt").read_text() == "200\n"

    @pytest.mark.parametrize(
        ("chosen", "why"),
        [
            ({}, "needs a command"),
            ({"agent_command": "no-such-agent {prompt}"}, "no program 'no-such-agent'"),
            ({"agent": "driver", "agent_command": "mini"}, "--agent-command is for --agent external"),
            ({"agent": "driver", "allow_unmetered": True}, "--allow-unmetered is for --agent external"),
            ({"agent": "driver", "turn_seconds": 3.0}, "--turn-seconds is for --agent external"),
            ({"agent_command": "sh", "agent_env": ("OPENAI_API_KEY",)}, "of its own"),
            ({"agent_command": "sh", "agent_env": ("GEMINI_API_KEY",)}, "around the budget"),
            ({"agent_command": "sh", "agent_env": ("NOT_SET_HERE",)}, "it is not set"),
            ({"agent_command": "sh", "turn_seconds": 0.0}, "more than zero"),
            ({"agent_command": "sh", "record": "x"}, "--record"),
            ({"agent_command": "sh", "model": "script:x"}, "a provider's model"),
        ],
    )
    def test_refuses_what_cannot_work(self, task: Path, chosen: Json, why: str) -> None:
        environ = {**os.environ, "GEMINI_API_KEY": "x"}
        fields = {"agent": "external", "model": "openai:x", "confirm": 0, "sandbox": "S0", **chosen}
        with pytest.raises(BadInput, match=why):
            apply_options(load_task(task / "task"), Options(**fields), environ)

    def test_lets_a_key_through_only_where_nobody_counts(self, task: Path) -> None:
        environ = {**os.environ, "GEMINI_API_KEY": "x"}
        options = Options(
            agent="external", model="openai:x", agent_command="sh", agent_env=("GEMINI_API_KEY",), allow_unmetered=True
        )
        outside = apply_options(load_task(task / "task"), options, environ).outside
        assert (outside.metered, outside.variables) == (False, ("GEMINI_API_KEY",))

    def test_reads_no_command_from_a_task_s_files(self, task: Path) -> None:
        (task / "task" / "task.toml").write_text('[task]\nname = "gcd"\n[agent]\ncommand = "touch pwned"\n')
        with pytest.raises(BadInput, match="agent"):
            load_task(task / "task")
