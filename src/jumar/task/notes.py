"""Notes on the settings of a run, one line each: options without effect, and caps that are not set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jumar.core.run.strategy import FRONTIER
from jumar.core.state.settings import Route
from jumar.core.state.test_policy import Gate
from jumar.task.budget_options import UNCAPPED
from jumar.task.model_routes import describe_replaced_routes, list_tiers
from jumar.task.settings.precedence import SettingValue

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues
    from jumar.task.task import Task


def list_notes(
    task: Task, options: OptionValues, rows: Mapping[str, SettingValue], routes: Mapping[str, Route]
) -> Iterator[str]:
    """Yield the notes on *rows*, the settings in force of *task*, and on *routes*."""
    yield from (row.note for row in rows.values() if row.note)
    usd, seconds, model = rows["usd"], rows["seconds"], rows["model"]
    if usd.source == UNCAPPED and not usd.overridden:
        own = seconds.source != UNCAPPED or seconds.value is None
        hours = "" if own else f" and {float(str(seconds.value)) / 3600:g} hours"
        spends = "the agent may spend beside the proxy" if options.allow_unmetered else f"{model.value} costs money"
        yield (
            f"{spends} and nobody set a cap on it: the profile workday caps this run at "
            f"{usd.value:g} usd{hours}; --budget-usd sets another cap"
        )
    if options.allow_unmetered:
        yield "--allow-unmetered: what the agent spends beside the proxy is not known; only the cap on time stops it"
    if routes and model.authority:
        yield from describe_replaced_routes(task, options, str(model.value), f"{model.source}")
    agent, gate = str(rows["agent"].value), Gate(str(rows["gate"].value))
    if task.routes.frontier.model and FRONTIER not in list_tiers(agent, gate, routes):
        yield "[routes.frontier] is not asked: it makes the plan of --agent driver under a gate, and this run has none"
