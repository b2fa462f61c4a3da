"""The planning turn: the first of a gated driver, which the frontier tier makes where it has a route."""

from __future__ import annotations

from jumar.core.agent import DRIVER, FRONTIER
from jumar.core.events import RunStart
from jumar.core.policy import Gate
from jumar.core.run import RunState

PLAN = "plan"
"""The stage of that turn."""


def has_planner(run: RunStart) -> bool:
    """Whether the frontier tier makes the plan of *run*."""
    return FRONTIER in run.settings.routes and run.agent == DRIVER and run.gate is not Gate.OFF


def plans_now(state: RunState) -> bool:
    """Whether the next turn is the planning turn: nothing was answered yet, and the call was not forgone."""
    return has_planner(state.run) and not state.spend.turns and not state.actions_done
