"""Options of an agent stand above those of all agents, and what is 0 is chosen."""

from __future__ import annotations

import pytest

from jumar.challenges.agents_file import AgentEntry, ChallengeAgent
from jumar.challenges.generations.variants import MutatedVariants
from jumar.challenges.order import merge_options
from jumar.task.option_values import OptionValues


def test_a_zero_is_a_choice() -> None:
    given = OptionValues(confirm=3, temperature=1.0, sandbox="S3")
    merged = merge_options(given, OptionValues(confirm=0, temperature=0.0))

    assert merged == OptionValues(confirm=0, temperature=0.0, sandbox="S3")


@pytest.mark.parametrize(
    ("entry", "moves"),
    [
        (AgentEntry(name="a", model="openai:x"), True),
        (AgentEntry(name="a", model="script:x.jsonl"), False),
        (AgentEntry(name="a", model="openai:x", command="mini"), False),
        (AgentEntry(name="a", model="openai:x", agent="external", command="mini"), False),
    ],
)
def test_only_a_temperature_that_is_sent_is_varied(entry: AgentEntry, *, moves: bool) -> None:
    agent = ChallengeAgent(entry=entry, folder="", genome="One.\nTwo.\nThree.")
    variants = [each for seed in range(20) for each in MutatedVariants((), 3, seed).propose(agent, 1, ())]

    assert any(each.entry.temperature is not None for each in variants) is moves
    assert variants


def test_who_has_nothing_to_vary_has_no_variants() -> None:
    agent = ChallengeAgent(entry=AgentEntry(name="a", model="script:x.jsonl"), folder="", genome="One.")

    assert MutatedVariants((), 3).propose(agent, 1, ()) == []
