"""A search keeps what is better on fresh runs, and nothing that luck made look better."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from jumar.challenges.agents_file import AgentEntry, ChallengeAgent
from jumar.challenges.generations.search import CONFIRM, GenerationRules, Trial, check_pairs, search
from jumar.challenges.generations.variants import MutatedVariants
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.challenges.scores_file import ChallengeScores
from jumar.errors import BadInput
from jumar.scorers.axes import AxisPoints, Label

FIRST = ChallengeAgent(entry=AgentEntry(name="first", model="openai:m"), folder="", genome="Mend the code.")
LINES = ("Read the tests first.", "Think about the edge cases.", "Be brief.", "Write types.")
TASKS, ROLLOUTS, TOTAL = 4, 3, 20
Skill = Callable[[ChallengeAgent], float]


class Arena:
    """Measures agents by runs whose tests pass with the chance that *skill* gives."""

    def __init__(self, skill: Skill, seed: int, label: str = "") -> None:
        self._skill, self._chance, self._label = skill, random.Random(seed), label
        self.measured: list[str] = []

    def measure(self, name: str, agents: Sequence[ChallengeAgent]) -> ChallengeScores:
        self.measured.append(name)
        runs = [self._run(agent, f"t{task}", n) for n in range(ROLLOUTS) for task in range(TASKS) for agent in agents]
        names = tuple(agent.name for agent in agents)
        points, judge = AxisPoints(), JudgeStanding(absent=True)
        return ChallengeScores(challenge="c", agents=names, points=points, judge=judge, runs=tuple(runs))

    def _run(self, agent: ChallengeAgent, task: str, rollout: int) -> RunScore:
        passes = [self._chance.random() < self._skill(agent) for _ in range(TOTAL)]
        red = tuple(f"test_{n}" for n, passed in enumerate(passes) if not passed)
        label = self._label if agent.name != FIRST.name else ""
        return RunScore(
            agent=agent.name, task=task, rollout=rollout, run="r", stop="final", passed=sum(passes), total=TOTAL,
            red=red, label=label,
        )  # fmt: skip


def run_search(skill: Skill, seed: int) -> tuple[ChallengeAgent, tuple[Trial, ...]]:
    rules = GenerationRules(generations=4, pairs=TASKS * ROLLOUTS)
    return search(FIRST, rules, MutatedVariants(LINES, 3, seed).propose, Arena(skill, seed).measure)


def count_changed(seeds: int) -> int:
    """In how many searches among variants that are no better one was kept."""
    return sum(run_search(lambda _: 0.6, seed)[0] is not FIRST for seed in range(seeds))


def know_edge_cases(agent: ChallengeAgent) -> float:
    return 0.9 if "edge cases" in agent.genome else 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_word_that_makes_the_agent_better_is_found(seed: int) -> None:
    left, trials = run_search(know_edge_cases, seed)

    assert "edge cases" in left.genome
    kept = [trial for trial in trials if trial.kept]
    assert kept[-1].variant == left.name
    assert all(trial.difference is not None and trial.difference > 0 for trial in kept)


@pytest.mark.slow
def test_of_equals_the_original_is_kept_in_a_sample() -> None:
    assert count_changed(20) <= 1


@pytest.mark.proof
def test_of_equals_the_original_is_kept(figure: Callable[[str, str], None]) -> None:
    changed = count_changed(200)

    assert changed <= 10, "5 %"
    figure("generations_noise", f"{200 - changed} of 200 searches among equals keep the original")


@pytest.mark.parametrize("seed", range(6))
def test_a_worse_genome_is_never_kept(seed: int) -> None:
    left, _ = run_search(lambda agent: 0.7 if agent is FIRST else 0.6, seed)

    assert left is FIRST


def test_a_variant_that_cheats_is_not_even_confirmed() -> None:
    arena = Arena(lambda agent: 0.5 if agent is FIRST else 0.9, 1, Label.CHEATED)
    rules = GenerationRules(generations=2, pairs=TASKS * ROLLOUTS)
    left, trials = search(FIRST, rules, MutatedVariants(LINES, 3).propose, arena.measure)

    assert left is FIRST
    assert not any(CONFIRM in name for name in arena.measured)
    assert not any(trial.kept for trial in trials)


def test_a_search_whose_money_is_used_up_leaves_what_was_kept() -> None:
    arena = Arena(know_edge_cases, 0)
    rules = GenerationRules(generations=4, pairs=TASKS * ROLLOUTS)

    def measure(name: str, agents: Sequence[ChallengeAgent]) -> ChallengeScores | None:
        return None if len(arena.measured) == 2 else arena.measure(name, agents)

    left, trials = search(FIRST, rules, MutatedVariants(LINES, 3, 0).propose, measure)

    assert len(arena.measured) == 2
    assert (left is not FIRST) == any(trial.kept for trial in trials)


@pytest.mark.parametrize(("generations", "pairs", "least"), [(1, 4, 5), (4, 6, 7), (10, 7, 8)])
def test_too_few_pairs_are_refused_before_anything_is_spent(generations: int, pairs: int, least: int) -> None:
    with pytest.raises(BadInput, match=f"must be {least} or more"):
        check_pairs(GenerationRules(generations=generations, pairs=pairs))
    check_pairs(GenerationRules(generations=generations, pairs=least))


def test_variants_differ_from_what_was_tried() -> None:
    variants = MutatedVariants(LINES, 5)
    first = variants.propose(FIRST, 1, ())
    again = variants.propose(FIRST, 1, ())
    keys = {(each.genome, each.entry.temperature) for each in first}

    assert [each.genome for each in first] == [each.genome for each in again]
    assert len(keys) == len(first) == 5
    assert (FIRST.genome, None) not in keys
    assert len({each.name for each in first}) == 5
    assert all(each.how for each in first)
