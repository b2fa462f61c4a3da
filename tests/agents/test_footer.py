"""What the gate says in a conversation costs a known number of tokens, counted by a real tokenizer."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from support.processes import local_llm

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "footer.py"))


@pytest.mark.slow
def test_a_footer_and_a_claim_cost_few_tokens() -> None:
    if missing := local_llm.missing():
        pytest.skip(missing)
    with BENCH["small"]() as count:
        assert count("two words") > 1
        costs = BENCH["footers"](count)
        assert [0 < cost.tokens <= BENCH["FOOTER"] for cost in costs] == [True, True]
        assert all(0 < cost.own <= BENCH["CLAIM"] for cost in BENCH["claims"](count))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")  # the tokenizer's own
def test_and_so_they_do_for_larger_models() -> None:
    count = BENCH["large"]()
    if count is None:
        pytest.skip("no tokenizer of larger models: pip install bpe-openai")
    assert all(0 < cost.tokens <= BENCH["FOOTER"] for cost in BENCH["footers"](count))
    assert all(0 < cost.tokens <= BENCH["CLAIM"] for cost in BENCH["claims"](count)[:3]), "with names of usual length"
