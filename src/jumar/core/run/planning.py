"""The planning turn: the first turn of a gated driver, made by the frontier tier where that has a route."""

from __future__ import annotations

from jumar.core.run.strategy import DRIVER, FRONTIER
from jumar.core.state.events import RunStart
from jumar.core.state.run_state import RunState
from jumar.core.state.test_policy import Gate

PLAN = "plan"
"""The stage of that turn."""


def has_planner(run: RunStart) -> bool:
    """Return whether the frontier tier makes the plan of *run*."""
    return FRONTIER in run.settings.routes and run.agent == DRIVER and run.gate is not Gate.OFF


def is_planning_turn(state: RunState) -> bool:
    """Return whether the next turn is the planning turn: nothing was answered yet, and the call was not forgone."""
    return has_planner(state.run) and not state.spend.turns and not state.actions_done
