"""Caps of a run: the typed one, else the lower of the person's and the task's, else the agent's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from jumar.core.prompts.suggestion import build_suggestion
from jumar.core.run.strategy import DRIVER, REPAIR
from jumar.core.state.budget import PROFILES, Budget
from jumar.core.state.run_state import HOST
from jumar.errors import BadInput
from jumar.task.settings.precedence import Authority, SettingValue, format_value, settle
from jumar.task.settings.run_settings import CAPS, SETTINGS

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues
    from jumar.task.task import Task

BOUNDS = {
    HOST: Budget(attempts=None),
    REPAIR: Budget(attempts=20, seconds=120.0),
    DRIVER: Budget(attempts=None, turns=40),
}
"""Default caps by agent. Proposals of `repair` are screened, so a right one comes early; a driver takes small steps."""

USUAL_PROFILE = "workday"

UNCAPPED = "workday, as the model costs money and you set no cap; --budget-usd sets one"
"""Source of the caps of that profile, if nobody chose it."""


UNMETERED = "workday, as only time stops what --allow-unmetered lets through; --seconds sets another cap"


def read_ledger_caps(options: OptionValues) -> Budget | None:
    """Return the caps of a new ledger: the profile's, with another sum if one was given."""
    if options.ledger_usd is not None and not options.ledger:
        raise BadInput("--ledger-usd is the cap of a ledger; name its file with --ledger")
    if not options.ledger or (options.profile is None and options.ledger_usd is None):
        return None
    if options.ledger_usd is not None and not 0 < options.ledger_usd < float("inf"):
        raise BadInput(f"--ledger-usd must be more than 0, not {options.ledger_usd:g}")
    caps = read_profile(options) or Budget(attempts=None)
    return caps if options.ledger_usd is None else replace(caps, usd=options.ledger_usd)


def read_profile(options: OptionValues) -> Budget | None:
    """Return the caps of the chosen profile, or None.

    Raises:
        BadInput: on an unknown one.
    """
    if options.profile is not None and options.profile not in PROFILES:
        raise BadInput(f"unknown profile {options.profile!r}; {build_suggestion(options.profile, PROFILES)}")
    return PROFILES[options.profile] if options.profile else None


def resolve_caps(
    task: Task, options: OptionValues, agent: str, *, paid: bool, from_environment: bool = False
) -> dict[str, SettingValue]:
    """Return the caps of a run, by name.

    What was typed, else the lower of the task's and the person's, else the agent's own.

    Where the model may cost money (*paid*) and nobody named a sum, the whole profile `workday` applies.
    """
    rows = {
        name: settle(
            SETTINGS[name], getattr(options, name), task.files, _get_variable(name, from_environment=from_environment)
        )
        for name in CAPS
    }
    usual = BOUNDS.get(agent, Budget())
    profile = None if options.ledger else read_profile(options)
    for name in ("usd", "seconds") if profile else ():
        source = f"{'JUMAR_RUN_PROFILE=' if from_environment else '--profile '}{options.profile}"
        rows[name] = _lower(rows[name], getattr(profile, name), source)
    if paid and not profile and not options.ledger:
        rows |= _apply_workday(rows)
    if options.allow_unmetered and rows["seconds"].value is None:
        rows["seconds"] = SettingValue("seconds", PROFILES[USUAL_PROFILE].seconds, UNMETERED)
    for name in CAPS:
        if rows[name].value is None:
            cap = getattr(usual, name)
            rows[name] = SettingValue(
                name, cap, "default" if cap is None or agent not in BOUNDS else f"default of {agent}"
            )
    return rows


def _get_variable(name: str, *, from_environment: bool) -> str:
    return SETTINGS[name].variable if from_environment else ""


def _lower(row: SettingValue, cap: float, source: str) -> SettingValue:
    """Return *row*, or *cap* if that is lower and the value was not typed."""
    if row.authority is Authority.TYPED or (row.value is not None and float(row.value) <= cap):
        return row
    lost = (f"{format_value(row.value)} of {row.source}",) if row.value is not None else ()
    return SettingValue(row.name, cap, source, Authority.TYPED, (*row.overridden, *lost))


def _apply_workday(rows: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the caps of the profile `workday` if the model costs money: all, or none if a sum was given.

    A sum that only the task names may be lower than the profile's, not higher: it is not the person's own.
    """
    workday, usd, seconds = PROFILES[USUAL_PROFILE], rows["usd"], rows["seconds"]
    if usd.value is not None:
        foreign = usd.authority is Authority.TASK
        return {"usd": _lower(usd, workday.usd or 0.0, UNCAPPED)} if foreign else {}
    found = {"usd": replace(usd, value=workday.usd, source=UNCAPPED)}
    if seconds.authority <= Authority.TASK:
        found["seconds"] = _lower(seconds, workday.seconds or 0.0, UNCAPPED)
    return found


def format_flag(name: str) -> str:
    """Return the flag of the option *name*, or of the cap of that name."""
    return f"--budget-{name}" if name in ("usd", "tokens") else f"--{name.replace('_', '-')}"
