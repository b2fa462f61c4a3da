"""Finished runs of the driver in a folder, made in milliseconds: no process, no model."""

from __future__ import annotations

from pathlib import Path

import anyio
from msgspec.structs import replace

from jumar.agents.driver import Driver
from jumar.core.run.effects import Halt
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Switches
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptedUsage, ScriptLine, ScriptModel
from support.worlds.run_world import Terms, program, world

USUAL = Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None))
CRASH = ScriptLine(error="server")


def write(passing: int, note: str = "") -> ScriptLine:
    call = ToolCall("write_file", {"path": "app.py", "text": program(passing, note)}, "call-a")
    usage = ScriptedUsage(input_tokens=100, cached_tokens=60, output_tokens=20)
    return ScriptLine(tool_calls=(call,), usage=usage, usd=0.01)


def work(folder: Path, *lines: ScriptLine, terms: Terms = USUAL, halt: Halt | None = None) -> Path:
    """A run of the driver that answers *lines*, at its end. Its instruction names *folder*, so no two are the same."""
    agent = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
    varied = replace(terms, model=ScriptModel(lines), agent=agent, instruction=f"Repair {folder.name}.")
    made = world(folder, (), varied)
    if halt:
        made.kernel.halt(halt)
    with made.journal:
        anyio.run(made.kernel.run)
    return folder
