"""Which model each tier asks. What a person chose wins over the tables, the tables over what ships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jumar.core.settings import Price, Route
from jumar.errors import BadInput
from jumar.models.providers import DEFAULT_MAX_OUTPUT, PROVIDERS, check_base_url, provider_of

if TYPE_CHECKING:
    from jumar.config import Route as Row
    from jumar.options import Options
    from jumar.task import Task

LOOP_TIERS = ("cheap", "mid")
"""Those that a run's loop asks; `frontier` is for what happens once."""


def keyed_model(environ: Mapping[str, str]) -> str:
    """The usual model of the first provider whose key is set; empty if there is none."""
    for provider in PROVIDERS:
        if provider.needs_key and any(environ.get(variable, "").strip() for variable in provider.keys):
            return f"{provider.name}:{provider.models['mid']}"
    return ""


def routes_of(task: Task, options: Options, model: str) -> dict[str, Route]:
    """Tier -> route for a run whose `mid` model is *model*. `--model` sets `cheap` and `mid` alike.

    Raises:
        BadInput: if a provider is unknown, or a price or a base URL cannot be read.
    """
    if options.base_url is not None:
        check_base_url(options.base_url)
    chosen_price = parse_price(options.price) if options.price is not None else None
    rows: dict[str, Row] = {"cheap": task.routes.cheap, "mid": task.routes.mid, "frontier": task.routes.frontier}
    chosen = bool(options.model or task.model)
    found = {}
    for tier, row in rows.items():
        name = model if tier == "mid" or (chosen and tier in LOOP_TIERS) else row.model or _usual(model, tier, task)
        if not name:
            continue
        provider_of(name)
        own = chosen_price or task.own_prices.get(name)
        found[tier] = Route(
            model=name,
            max_output_tokens=row.max_output_tokens or DEFAULT_MAX_OUTPUT[tier],
            price=own or task.prices.get(name),
            foreign_price=own is None and name in task.prices,
            base_url=options.base_url or "",
        )
    return found


def _usual(model: str, tier: str, task: Task) -> str:
    """The tier's model where nobody chose one: what ships, beside what ships; else the same for all of the loop."""
    provider = provider_of(model)
    if tier in LOOP_TIERS and not task.routes.mid.model and model == f"{provider.name}:{provider.models['mid']}":
        return f"{provider.name}:{provider.models[tier]}"
    return model if tier in LOOP_TIERS else ""


def parse_price(text: str) -> Price:
    """`INPUT,OUTPUT[,CACHED]` in usd per million tokens, or `free`.

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
