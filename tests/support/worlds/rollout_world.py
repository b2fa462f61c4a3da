"""Rollouts of the driver on the small world of `run_world`: journals of whole runs, in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
from msgspec.structs import replace

from jumar.agents.driver import Driver
from jumar.campaigns.create import CampaignOrder, create_campaign, make_campaign_folder
from jumar.campaigns.plan import CampaignPlan
from jumar.core.run.effects import Halt
from jumar.core.state.budget import Budget
from jumar.core.state.reply import ToolCall
from jumar.core.state.settings import Switches
from jumar.core.state.test_policy import TestPolicy
from jumar.models.script import ScriptLine, ScriptModel
from support.worlds.run_world import Terms, program, world


def write_passing(passing: int, note: str = "") -> ScriptLine:
    call = ToolCall("write_file", {"path": "app.py", "text": program(passing, note)})
    return ScriptLine(tool_calls=(call,), usd=0.01)


CRASH = ScriptLine(error="server")

DONE = ScriptLine(tool_calls=(ToolCall("final", {"message": "that is all"}),))
"""The model's own end: where a script is used up, jumar ends the run."""


def work(folder: Path, lines: tuple[ScriptLine, ...], terms: Terms | None = None, halt: Halt | None = None) -> Path:
    """A rollout of the driver that answers *lines*, at its end; a model in *terms* has its own."""
    usual = Terms(policy=TestPolicy.ON_FINAL, budget=Budget(attempts=None))
    agent = Driver(("app.py", "test_app.py"), ("test_app.py",), Switches())
    terms = terms or usual
    made = world(folder, (), replace(terms, model=terms.model or ScriptModel(lines), agent=agent))
    if halt:
        made.kernel.halt(halt)
    with made.journal:
        anyio.run(made.kernel.run)
    return folder


def begin_campaign(folder: Path, order: CampaignOrder, environ: Mapping[str, str]) -> CampaignPlan:
    """The plan of a new campaign in *folder*; nothing is left of it if it is refused."""
    with make_campaign_folder(folder):
        return create_campaign(folder, order, environ)
