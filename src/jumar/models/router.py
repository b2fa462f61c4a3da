"""Models by tier. The core decides which tier is asked at which stage: `frontier` for the plan alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jumar.core.state.settings import Route, Settings
from jumar.errors import BadInput
from jumar.models.llm import LlmModel
from jumar.models.wire.prices import PriceList, find_tariff
from jumar.models.wire.providers import check_base_url, check_temperature, find_key, find_provider
from jumar.ports import Model

ByTier = Callable[[str], Model]
"""Tier -> the model that answers its calls. A recorder wraps one, a recording is one."""


def build_routes(settings: Settings, environ: Mapping[str, str]) -> ByTier:
    """Return the models of *settings*, with the keys in *environ*; each is built once, when first used.

    Returns:
        A function from tier to model. It raises BadInput on a tier that has no route, and where the provider, the key
        or the price is not known.
    """
    built: dict[str, Model] = {}

    def by_tier(tier: str) -> Model:
        if tier not in settings.routes:
            known = ", ".join(settings.routes) or "none"
            raise BadInput(f"there is no route for the tier {tier!r}; known are {known}")
        if tier not in built:
            route = settings.routes[tier]
            price = check_route(route)
            key = find_key(find_provider(route.model), environ, route.base_url)
            built[tier] = LlmModel(route, key, price, collect_keys(settings, environ))
        return built[tier]

    return by_tier


def check_route(route: Route) -> PriceList:
    """Return the prices of calls to *route*, if the route can be used.

    Raises:
        BadInput: on an unknown provider or price, a base URL or temperature that is none, or room for no output.
    """
    if route.base_url:
        check_base_url(route.base_url)
    if route.max_output_tokens < 1:
        raise BadInput(f"max_output_tokens of {route.model} is {route.max_output_tokens}; give at least 1")
    if route.temperature is not None:
        check_temperature(route.temperature, f"temperature of {route.model}")
    return find_tariff(route)


def collect_keys(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return all keys that calls of the run may send: one provider may quote the key of another."""
    variables = {v for route in settings.routes.values() for v in find_provider(route.model).keys}
    return tuple(sorted(environ[v].strip() for v in variables if environ.get(v, "").strip()))
