"""What a run may use: what was chosen, else the lower of a profile's and the task's, else what its agent takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from jumar.core.agent import DRIVER, REPAIR
from jumar.core.budget import PROFILES, Budget
from jumar.core.run import HOST
from jumar.errors import BadInput

if TYPE_CHECKING:
    from jumar.options import Options
    from jumar.task import Task

BOUNDS = {
    HOST: Budget(attempts=None),
    REPAIR: Budget(attempts=20, seconds=120.0),
    DRIVER: Budget(attempts=None, turns=40),
}
"""What an agent may use where nobody chose: proposals of `repair` are screened, so a right one comes early; a driver
reads and edits in small steps."""


def ledger_caps(options: Options) -> Budget | None:
    """The caps of a new ledger: the profile's, with another sum where one was given."""
    if options.ledger_usd is not None and not options.ledger:
        raise BadInput("--ledger-usd is the cap of a ledger; name its file with --ledger")
    if not options.ledger or (options.profile is None and options.ledger_usd is None):
        return None
    if options.ledger_usd is not None and not 0 < options.ledger_usd < float("inf"):
        raise BadInput(f"--ledger-usd must be more than 0, not {options.ledger_usd:g}")
    caps = _profile(options) or Budget(attempts=None)
    return caps if options.ledger_usd is None else replace(caps, usd=options.ledger_usd)


def _profile(options: Options) -> Budget | None:
    if options.profile is not None and options.profile not in PROFILES:
        raise BadInput(f"unknown profile {options.profile!r}; known are {', '.join(PROFILES)}")
    return PROFILES[options.profile] if options.profile else None


def budget_of(task: Task, options: Options, agent: str) -> Budget:
    """What was chosen, else the lower of the profile's and the task's, else the agent's own.

    A profile is the person's choice: a file that comes with a task may ask for less, never for more.
    """
    budget, taken = task.budget, set(task.budget_set)
    profile = None if options.ledger else _profile(options)
    for name in ("usd", "seconds") if profile else ():
        low, own = getattr(profile, name), getattr(budget, name)
        budget = replace(budget, **{name: low if own is None else min(low, own)})
        taken.add(name)
    if usual := BOUNDS.get(agent):
        for name in {"attempts", "turns", "seconds"} - taken:
            if name == "attempts" or getattr(usual, name) is not None:
                budget = replace(budget, **{name: getattr(usual, name)})
    for name, least in _LEAST.items():
        value = getattr(options, name)
        if value is None:
            continue
        if not least <= value < float("inf"):
            raise BadInput(f"{flag(name)} must be {least} or more, not {value}")
        budget = replace(budget, **{name: value})
    return budget


_LEAST = {"attempts": 1, "turns": 1, "test_runs": 1, "usd": 0, "seconds": 0, "tokens": 0}


def flag(name: str) -> str:
    """How the option *name*, or the cap of that name, is written on the command line."""
    return f"--budget-{name}" if name in ("usd", "tokens") else f"--{name.replace('_', '-')}"
