"""Routes: the model that each tier asks. `--model` sets the tiers that no route of the files names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jumar.core.run.strategy import DRIVER, FRONTIER, PIPELINE
from jumar.core.state.settings import Price, Route
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.models.wire.providers import DEFAULT_MAX_OUTPUT, PROVIDERS, check_base_url, find_provider

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues
    from jumar.task.settings.task_file import RouteTable as Row
    from jumar.task.task import Task

LOOP_TIERS = ("cheap", "mid")
"""Tiers that a run's loop asks; `frontier` is for the plan, which is made once."""


def list_tiers(agent: str, gate: Gate, routes: Mapping[str, Route], *, review: bool = True) -> tuple[str, ...]:
    """Return the tiers that *agent* asks under *gate*, if *routes* has them."""
    if agent == PIPELINE and review:
        return ("mid", "cheap")
    plans = agent == DRIVER and gate is not Gate.OFF and FRONTIER in routes
    return ("mid", FRONTIER) if plans else ("mid",)


def find_keyed_model(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the usual model of the first provider whose key is set, and the variable that holds it; both empty.

    None is.
    """
    for provider in PROVIDERS:
        for variable in provider.keys if provider.needs_key else ():
            if environ.get(variable, "").strip():
                return f"{provider.name}:{provider.models['mid']}", variable
    return "", ""


def resolve_routes(task: Task, options: OptionValues, model: str, *, named: bool) -> dict[str, Route]:
    """Return the routes of a run whose `mid` model is *model*, by tier.

    Where somebody *named* it, it is also asked by each tier of the loop that no route names; else those ask what ships
    beside it.

    Raises:
        BadInput: if a provider is unknown, or a price or a base URL cannot be read.
    """
    if options.base_url is not None:
        check_base_url(options.base_url)
    chosen_price = parse_price(options.price) if options.price is not None else None
    found = {}
    for tier, row in _list_rows(task).items():
        name = _choose_model(tier, task, options, (model, named))
        if not name:
            continue
        # A price is that of the model it was given with; on a server of one's own it holds for all that is there.
        own = (chosen_price if name == model or options.base_url else None) or task.own_prices.get(name)
        found[tier] = Route(
            model=name,
            max_output_tokens=row.max_output_tokens or DEFAULT_MAX_OUTPUT[tier],
            price=own or task.prices.get(name),
            foreign_price=own is None and name in task.prices,
            base_url=options.base_url or "",
            temperature=row.temperature if options.temperature is None else options.temperature,
        )
    return found


def describe_replaced_routes(task: Task, options: OptionValues, model: str, source: str) -> Iterator[str]:
    """Yield a line for each route of the files whose model is replaced by another one.

    *source* is what named *model*.
    """
    for tier, row in _list_rows(task).items():
        name = _choose_model(tier, task, options, (model, True))
        if row.model and name != row.model:
            asked = f"the tier {tier} asks {name}" if name else f"the tier {tier} asks nobody"
            why = "--base-url" if tier != "mid" else source
            yield f"{asked} ({why}), not {row.model} of [routes.{tier}]"


def _list_rows(task: Task) -> dict[str, Row]:
    return {"cheap": task.routes.cheap, "mid": task.routes.mid, "frontier": task.routes.frontier}


def _choose_model(tier: str, task: Task, options: OptionValues, mid: tuple[str, bool]) -> str:
    """Return the model that *tier* asks; empty: it has no route."""
    model, named = mid
    row = _list_rows(task)[tier]
    # A server of one's own speaks one wire: a route of another provider would send the code elsewhere.
    elsewhere = bool(row.model and options.base_url) and find_provider(row.model) != find_provider(model)
    if tier == "mid" or (elsewhere and tier in LOOP_TIERS):
        name = model
    elif elsewhere:
        name = ""
    else:
        name = row.model or (model if named and tier in LOOP_TIERS else _get_usual(model, tier, task))
    if name:
        find_provider(name)
    return name


def _get_usual(model: str, tier: str, task: Task) -> str:
    """Return the default model of the tier.

    Else the same for all of the loop.
    """
    provider = find_provider(model)
    if tier in LOOP_TIERS and not task.routes.mid.model and model == f"{provider.name}:{provider.models['mid']}":
        return f"{provider.name}:{provider.models[tier]}"
    return model if tier in LOOP_TIERS else ""


def parse_price(text: str) -> Price:
    """Parse `INPUT,OUTPUT[,CACHED]` in usd per million tokens, or `free`.

    Raises:
        BadInput: if *text* is neither.
    """
    if text == "free":
        return Price(input=0.0, output=0.0)
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(0 <= n < float("inf") for n in numbers):
        raise BadInput(
            f"--price {text!r} is no price: give INPUT,OUTPUT or INPUT,OUTPUT,CACHED (usd per million tokens), or free"
        )
    return Price(input=numbers[0], output=numbers[1], cached=numbers[2] if len(numbers) == 3 else None)  # noqa: PLR2004  said above
