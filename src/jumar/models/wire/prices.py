"""Prices of calls: the person's own, zero for a model on this machine, or the table's; any other is refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from jumar.core.state.settings import Price, Route
from jumar.errors import BadInput
from jumar.models.wire.providers import find_provider, is_local

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

MILLION = 1_000_000

WRITE_SURCHARGE = 1.25
"""Price of a token written to Anthropic's five-minute prompt cache, in input tokens."""

QUARTERS_OF_A_DAY = 97
"""Prices may depend on the time of day, in steps of a quarter of an hour at the finest."""


class PriceList(Protocol):
    """Price of tokens, in usd. Cached and written tokens are part of the input."""

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int, written_tokens: int = 0) -> float:
        """Return the cost of a call that was made now."""
        ...

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a call of so many tokens can cost, at any time and however much is cached."""
        ...


class OwnPrices:
    """Price that a person gave. *surcharge* is the price of a token written to the cache, in input tokens."""

    def __init__(self, price: Price, surcharge: float = 1.0) -> None:
        self._price, self._surcharge = price, surcharge

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int, written_tokens: int = 0) -> float:
        """Return the cost of a call that was made now."""
        price, cached = self._price, min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        plain = input_tokens - cached - written
        each = price.input if price.cached is None else price.cached
        billed = (plain + written * self._surcharge) * price.input + cached * each + output_tokens * price.output
        return billed / MILLION

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a call can cost."""
        ways = ((0, input_tokens), (0, 0), (input_tokens, 0))
        return max(self.cost(input_tokens, cached, output_tokens, written) for cached, written in ways)


class TablePrices:
    """Price of *model* in the maintained table: tiers, times of day and dates of change included."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int, written_tokens: int = 0) -> float:
        """Return the cost of a call that was made now."""
        cached = min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        price = self._model.get_prices(datetime.now(UTC))
        return _compute_bill(price, (input_tokens, cached, output_tokens, written))

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the highest of this day's prices, with all of the input plain, or all written to the cache."""
        now = datetime.now(UTC)
        prices = {
            id(p): p for p in (self._model.get_prices(now + _build_quarters(n)) for n in range(QUARTERS_OF_A_DAY))
        }
        ways = ((input_tokens, 0, output_tokens, written) for written in (0, input_tokens))
        return max(_compute_bill(price, way) for way in ways for price in prices.values())


class PriceRise:
    """The higher of two prices, call by call."""

    def __init__(self, *tariffs: PriceList) -> None:
        self._tariffs = tariffs

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int, written_tokens: int = 0) -> float:
        """Return the cost of a call that was made now."""
        return max(t.cost(input_tokens, cached_tokens, output_tokens, written_tokens) for t in self._tariffs)

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a call can cost."""
        return max(t.worst(input_tokens, output_tokens) for t in self._tariffs)


def find_tariff(route: Route) -> PriceList:
    """Return the price of calls of *route*: its own price, else nothing on this machine, else the table's price.

    A price that came with the task must not disarm a person's cap: it counts where it is not lower than the table's.

    Raises:
        BadInput: if the provider is unknown, or nobody knows the price of the model there.
    """
    provider = find_provider(route.model)
    if route.price is not None:
        _check(route.price, route.model)
        own = OwnPrices(route.price, WRITE_SURCHARGE if provider.wire == "anthropic" else 1.0)
        known = None if is_local(route.base_url) or not route.foreign_price else _find_entry_for(route)
        return own if known is None else PriceRise(own, TablePrices(known))
    if provider.name == "ollama" or is_local(route.base_url):
        return OwnPrices(Price(input=0.0, output=0.0, cached=0.0))
    found = _find_entry_for(route)
    if found is None:
        where = f" at {route.base_url}" if route.base_url else ""
        raise BadInput(
            f"nobody knows what {route.model}{where} costs: "
            f'pass --price INPUT,OUTPUT (usd per million tokens) or set [prices."{route.model}"]'
        )
    return TablePrices(found)


def can_cost_money(route: Route) -> bool:
    """Return whether calls of *route* may cost money: they are free by price, by place or by the table."""
    try:
        return find_tariff(route).worst(MILLION, MILLION) > 0
    except BadInput:  # it is refused with this sentence before it is asked
        return True


def _find_entry_for(route: Route) -> ModelInfo | None:
    provider, _, name = route.model.partition(":")
    return _find_entry(name, provider, route.base_url)


def _find_entry(name: str, provider: str, base_url: str) -> ModelInfo | None:
    """Return the table's entry, if it has prices for input and output tokens."""
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  loads all prices of the world: 0.3 s
    except ImportError:
        raise BadInput("prices of models need the extra llm: pip install 'jumar[llm]'") from None
    snapshot = get_snapshot()
    try:
        # Another host under the same name has prices of its own: it is looked up by its address.
        seller: Provider = snapshot.find_provider(None, None if base_url else provider, base_url or None)
        _, found = snapshot.find_provider_model(name, seller, None, None)
    except LookupError:
        return None
    price = found.get_prices(datetime.now(UTC))
    return found if price.input_mtok is not None and price.output_mtok is not None else None


def _compute_bill(price: ModelPrice, tokens: tuple[int, int, int, int]) -> float:
    """Return usd for (input, cached, output, written) tokens; cached or written ones default to the input price."""
    from genai_prices import Usage  # noqa: PLC0415  loaded before, with the table

    total, cached, output, written = tokens
    usage = Usage(
        input_tokens=total,
        cache_read_tokens=0 if price.cache_read_mtok is None else cached,
        cache_write_tokens=0 if price.cache_write_mtok is None else written,
        output_tokens=output,
    )
    return float(price.calc_price(usage)["total_price"])


def _build_quarters(count: int) -> timedelta:
    return timedelta(minutes=15 * count)


def _check(price: Price, model: str) -> None:
    for part in (price.input, price.output, price.cached or 0.0):
        if not (math.isfinite(part) and part >= 0):
            raise BadInput(f"the price {part} of {model} is no amount; give usd per million tokens, zero or more")
