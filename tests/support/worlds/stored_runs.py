"""Finished runs of the driver as `rollout_world` makes them, each with a prompt of its own and tokens to its calls."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from jumar.core.run.effects import Halt
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptedUsage, ScriptLine
from support.worlds import rollout_world
from support.worlds.rollout_world import CRASH
from support.worlds.run_world import Terms, program

__all__ = ["CRASH", "USUAL", "work", "write"]

USUAL = Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None))


def write(passing: int, note: str = "") -> ScriptLine:
    call = ToolCall("write_file", {"path": "app.py", "text": program(passing, note)}, "call-a")
    usage = ScriptedUsage(input_tokens=100, cached_tokens=60, output_tokens=20)
    return ScriptLine(tool_calls=(call,), usage=usage, usd=0.01)


def work(folder: Path, *lines: ScriptLine, terms: Terms = USUAL, halt: Halt | None = None) -> Path:
    """A run of the driver that answers *lines*, at its end. Its instruction names *folder*, so no two are the same."""
    return rollout_world.work(folder, lines, replace(terms, instruction=f"Repair {folder.name}."), halt)
