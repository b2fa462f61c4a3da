"""What a call costs: a person's price, nothing on this machine, the table's price, or a refusal; never too little."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.core.state.settings import Price, Route
from jumar.errors import BadInput
from jumar.models.wire.prices import PriceList, find_tariff
from jumar.models.wire.providers import PROVIDERS

TOKENS = st.integers(0, 2_000_000)
SHIPPED = [f"{p.name}:{name}" for p in PROVIDERS for name in dict.fromkeys(p.models.values())]
TABLED = [name for name in SHIPPED if not name.startswith("ollama:")]


def priced(model: str, price: Price | None = None, base_url: str = "") -> PriceList:
    return find_tariff(Route(model=model, max_output_tokens=1, price=price, base_url=base_url))


def million(of: PriceList) -> tuple[float, float]:
    """Usd for ten million tokens in, and out, in portions too small for a dearer tier."""
    return 1000 * of.cost(10_000, 0, 0), 1000 * of.cost(0, 0, 10_000)


@pytest.mark.parametrize("model", SHIPPED)
def test_the_shipped_models_have_a_price(model: str) -> None:
    in_, out = million(priced(model))
    assert (in_ > 0 and out > in_) or model.startswith("ollama:")


@pytest.mark.parametrize(
    ("model", "in_", "cached", "out"),
    [
        ("anthropic:claude-opus-4-5", 5.0, 0.5, 25.0),
        ("anthropic:claude-haiku-4-5", 1.0, 0.1, 5.0),
        ("openai:gpt-4o", 2.5, 1.25, 10.0),
        ("openai:gpt-4o-mini-2024-07-18", 0.15, 0.075, 0.6),
        ("google:gemini-2.5-flash", 0.3, 0.03, 2.5),
    ],
)
def test_the_table_is_read_right(model: str, in_: float, cached: float, out: float) -> None:
    table = priced(model)
    assert table.cost(1000, 0, 0) == pytest.approx(in_ / 1000)
    assert table.cost(1000, 1000, 0) == pytest.approx(cached / 1000)
    assert table.cost(0, 0, 1000) == pytest.approx(out / 1000)
    assert table.cost(1000, 400, 100) == pytest.approx((600 * in_ + 400 * cached + 100 * out) / 1e6)


def test_a_longer_prompt_may_be_dearer_by_the_token() -> None:
    table = priced("google:gemini-2.5-pro")
    assert table.cost(100_000, 0, 0) == pytest.approx(0.125)
    assert table.cost(300_000, 0, 0) == pytest.approx(0.75)


def test_what_is_written_to_a_cache_is_dearer() -> None:
    table = priced("anthropic:claude-haiku-4-5")
    assert table.cost(1000, 0, 0, 1000) == pytest.approx(1.25 * table.cost(1000, 0, 0))
    assert table.worst(1000, 0) == pytest.approx(1.25 * table.cost(1000, 0, 0))


def test_what_has_no_price_when_cached_costs_the_full_one() -> None:
    table = priced("openai:o1-pro")
    assert table.cost(1000, 1000, 0) == table.cost(1000, 0, 0) > 0
    own = priced("openai:o1-pro", Price(input=1.0, output=2.0))
    assert own.cost(1000, 1000, 0) == own.cost(1000, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["anthropic:claude-sonnet-4-5", "google:gemini-2.5-pro", "deepseek:deepseek-chat", "openai:gpt-4o"]
)
@given(total=TOKENS, cached=TOKENS, written=TOKENS, out=TOKENS)
def test_no_call_costs_more_than_its_worst_case(model: str, total: int, cached: int, written: int, out: int) -> None:
    table = priced(model)
    assert 0 <= table.cost(total, cached, out, written) <= table.worst(total, out) + 1e-9


@pytest.mark.slow
@given(total=TOKENS, cached=TOKENS, written=TOKENS, out=TOKENS, price=st.tuples(*[st.floats(0, 1000)] * 3))
def test_nor_with_a_price_of_one_s_own(
    total: int, cached: int, written: int, out: int, price: tuple[float, float, float]
) -> None:
    for model in ("openai:x", "anthropic:x"):
        own = priced(model, Price(input=price[0], output=price[1], cached=price[2]))
        assert 0 <= own.cost(total, cached, out, written) <= own.worst(total, out) * (1 + 1e-9) + 1e-9


@pytest.mark.slow
@given(fewer=TOKENS, more=TOKENS)
def test_a_bound_on_the_tokens_bounds_the_price(fewer: int, more: int) -> None:
    table = priced("google:gemini-2.5-pro")
    low, high = sorted((fewer, more))
    assert table.worst(low, low) <= table.worst(high, high)


def test_a_price_of_one_s_own_wins() -> None:
    own = priced("openai:gpt-4o", Price(input=7.0, output=8.0, cached=1.0))
    assert own.cost(1_000_000, 500_000, 1_000_000) == pytest.approx(3.5 + 0.5 + 8.0)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(bad: float) -> None:
    for field in ("input", "output", "cached"):
        with pytest.raises(BadInput, match="usd per million"):
            priced("openai:x", msgspec.structs.replace(Price(input=1.0, output=1.0), **{field: bad}))


def test_a_model_on_this_machine_is_free() -> None:
    for model, base_url in (
        ("openai:mine", "http://127.0.0.1:8080/v1"),
        ("ollama:qwen3", ""),
        ("ollama:x", "http://10.0.0.1/v1"),
    ):
        free = priced(model, base_url=base_url)
        assert (free.cost(10, 0, 10), free.worst(10**6, 10**6)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai:nobody-knows-this", ""),
        ("openai:whisper-1", ""),
        ("google:gemma-3", ""),
        ("openai:gpt-4o", "https://gateway.example/v1"),
        ("openai:gpt-4o", "http://10.0.0.1/v1"),
    ],
)
def test_an_unknown_price_is_refused_with_the_way_out(model: str, base_url: str) -> None:
    with pytest.raises(BadInput) as refusal:
        priced(model, base_url=base_url)
    assert "--price INPUT,OUTPUT" in str(refusal.value)
    assert f'[prices."{model}"]' in str(refusal.value)


def test_another_seller_s_address_has_its_own_prices() -> None:
    assert million(priced("openai:gpt-4o", base_url="https://api.openai.com/v1")) == million(priced("openai:gpt-4o"))
    assert priced("openai:anthropic/claude-sonnet-4.5", base_url="https://openrouter.ai/api/v1").cost(1000, 0, 0) > 0
