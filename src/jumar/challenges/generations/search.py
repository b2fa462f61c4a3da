"""Searches for a better genome: variants are screened, and the best of them is kept if it wins on fresh paired runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2

import msgspec

from jumar.challenges.agents_file import ChallengeAgent
from jumar.challenges.ranking.comparison import compare
from jumar.challenges.ranking.rank_agents import RankedAgent, is_last
from jumar.challenges.ranking.run_score import select_runs
from jumar.challenges.scores_file import ChallengeScores
from jumar.errors import BadInput

ALPHA = 0.05
"""Chance that a search over all its generations keeps a variant that is no better; each generation has its part."""

SCREEN, CONFIRM = "screen", "confirm"
"""Names of the two campaigns of a generation."""

Propose = Callable[[ChallengeAgent, int, Sequence["Trial"]], Sequence[ChallengeAgent]]
"""Incumbent, number of the generation and trials so far -> variants."""

Measure = Callable[[str, Sequence[ChallengeAgent]], ChallengeScores | None]
"""Name of a campaign and its agents -> the scores of fresh runs; None: no more can be paid."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that was tried."""

    generation: int
    """Counted from 1."""
    parent: str
    variant: str
    """Name of the variant."""
    how: str
    """Sentence on how it differs from its parent."""
    genome: str
    temperature: float | None
    screened: float
    """Its composite in the screening; the next is that of its parent."""
    screened_parent: float
    difference: float | None = None
    """Mean difference of the composites on fresh runs; None: it was not the best of its generation."""
    p: float | None = None
    """One-sided p-value for being no better; the next is the most that it may be."""
    limit: float | None = None
    kept: bool = False


class GenerationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a search."""

    generations: int
    pairs: int
    """Paired runs of a confirmation: tasks times rollouts."""
    alpha: float = ALPHA

    @property
    def limit(self) -> float:
        """Return the p-value that one generation must reach (Bonferroni's correction)."""
        return self.alpha / self.generations


def check_pairs(rules: GenerationRules) -> None:
    """Refuse a search that could keep nothing, whatever it found.

    Raises:
        BadInput: if so few pairs cannot be told from chance, naming how many can.
    """
    least = ceil(log2(1 / rules.limit))
    if rules.pairs < least:
        raise BadInput(
            f"{rules.pairs} paired runs cannot show that a variant is better in {rules.generations} generations: "
            f"tasks times rollouts must be {least} or more; raise --rollouts"
        )


def search(
    incumbent: ChallengeAgent,
    rules: GenerationRules,
    propose: Propose,
    measure: Measure,
    tell: Callable[[Trial], None] = lambda _: None,
) -> tuple[ChallengeAgent, tuple[Trial, ...]]:
    """Return the final agent after all generations: *incumbent*, unless a variant proved better.

    Each trial is also given to *tell*, at the end of its generation.

    Screening chooses, and never keeps: who looks best among many is so by luck in part. What is kept was better in runs
    that had no part in its choice.

    Raises:
        BadInput: as `check_pairs`.
    """
    check_pairs(rules)
    trials: list[Trial] = []
    for generation in range(1, rules.generations + 1):
        if not (variants := propose(incumbent, generation, trials)):
            continue
        if (scores := measure(f"g{generation}-{SCREEN}", (incumbent, *variants))) is None:
            break
        ranked = {agent.agent: agent for agent in scores.rank()}
        told = [_tell(generation, (incumbent, variant), ranked) for variant in variants]
        best = next(agent for name, agent in ranked.items() if name != incumbent.name)
        if best.composite > ranked[incumbent.name].composite and not is_last(best):
            chosen = next(variant for variant in variants if variant.name == best.agent)
            fresh = measure(f"g{generation}-{CONFIRM}", (incumbent, chosen))
            if fresh is None:
                break
            told = [_confirm(trial, fresh, rules) if trial.variant == chosen.name else trial for trial in told]
            if any(trial.kept for trial in told):
                incumbent = chosen
        trials += told
        for trial in told:
            tell(trial)
    return incumbent, tuple(trials)


def _tell(generation: int, pair: tuple[ChallengeAgent, ChallengeAgent], ranked: Mapping[str, RankedAgent]) -> Trial:
    """Return the trial of a *pair* of parent and variant that the screening *ranked*."""
    parent, variant = pair
    return Trial(
        generation=generation,
        parent=parent.name,
        variant=variant.name,
        how=variant.how,
        genome=variant.genome,
        temperature=variant.entry.temperature,
        screened=ranked[variant.name].composite,
        screened_parent=ranked[parent.name].composite,
    )


def _confirm(trial: Trial, fresh: ChallengeScores, rules: GenerationRules) -> Trial:
    """Return *trial* with the outcome of the *fresh* runs of it and its parent."""
    variant, parent = (select_runs(fresh.runs, name) for name in (trial.variant, trial.parent))
    found = compare(variant, parent, fresh.points, fresh.judge)
    dropped = any(is_last(agent) for agent in fresh.rank() if agent.agent == trial.variant)
    kept = found.difference > 0 and found.p_better <= rules.limit and not dropped
    return msgspec.structs.replace(trial, difference=found.difference, p=found.p_better, limit=rules.limit, kept=kept)
