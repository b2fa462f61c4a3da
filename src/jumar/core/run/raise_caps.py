"""Caps that a resume has to raise for a run to continue after it stopped at one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jumar.core.state.budget import CAPS, MICRO, Cost, find_exhausted_cap
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy

STOPS = (StopReason.ATTEMPTS, StopReason.TURNS, StopReason.BUDGET)

COUNTED = ("tokens", "attempts", "turns", "test_runs")
"""Caps that are whole numbers."""

_COST = r"costs up to (?:\$(?P<usd>\d+(?:\.\d+)?)|(?P<tokens>\d+))"
_PASSED = re.compile(rf"cap on (\w+)(?! of the ledger)\b(?:[^;]*?{_COST})?")


def explain_refusal(cap: str, worst: Cost) -> str:
    """Return why a call that can cost *worst* is not made."""
    most = {"usd": f", as it costs up to ${worst.usd:.6f}", "tokens": f", as it costs up to {worst.tokens} tokens"}
    return f"the next call could pass the cap on {cap}{most.get(cap, '')}"


def find_caps_to_raise(state: RunState) -> Mapping[str, float]:
    """Return each cap that stopped the run in *state*, with a value that leaves it room: the double."""
    end = state.end
    if end is None or end.stop not in STOPS:
        return {}
    budget, spend = state.run.budget, state.spend
    last = state.run.settings.suite.timeout_seconds if state.run.test_policy is TestPolicy.ON_FINAL else 0.0
    told = _PASSED.search(end.why)
    needed: dict[str, float] = {}
    for name in (*CAPS, "usd", "tokens"):
        cap = getattr(budget, name)
        over = name in CAPS and find_exhausted_cap(budget, spend, last, (name,)) is not None
        over = over or (name == "seconds" and bool(state.expired))  # an agent that keeps time for its last verification
        if cap is None or not (over or (told and told[1] == name)):
            continue
        more = float(told[name] or 0) if told and name in ("usd", "tokens") and told[1] == name else 0.0
        wanted = max(2 * cap, 2 * getattr(spend, name), getattr(spend, name) + 2 * more)
        needed[name] = _round_up(name, wanted + (last if name == "seconds" else 0.0))
    return needed


def _round_up(name: str, value: float) -> float:
    """Return *value*, rounded up to a number that a person would type."""
    if name in COUNTED:
        return int(value) + (value > int(value)) or 1
    if name == "seconds":
        return float(max(1, int(value) + (value > int(value))))
    return max(0.01, -(-int(value * MICRO) // 10_000) / 100)
