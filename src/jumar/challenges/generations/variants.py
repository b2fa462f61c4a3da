"""Varies a genome without a model: lines come, go and change places, and the temperature moves."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from jumar.challenges.agents_file import ChallengeAgent
from jumar.challenges.generations.search import Trial

STEP, HIGHEST = 0.2, 2.0
"""Of the temperature."""

VARIANT = re.compile(r"-g\d+-\d+$")
"""End of the name of a variant."""

TRIES = 50
"""Draws for one variant that differs from all others."""


class MutatedVariants:
    """Draws *count* variants a generation; *lines* are sentences that may be added to a genome."""

    def __init__(self, lines: Sequence[str], count: int, seed: int = 0) -> None:
        self._lines, self._count, self._seed = tuple(lines), count, seed
        self.spent = 0.0
        """Money that variants cost: none, as no model is asked."""

    def propose(self, parent: ChallengeAgent, generation: int, trials: Sequence[Trial]) -> list[ChallengeAgent]:
        """Return variants of *parent* that were not tried before: fewer, if there are no more."""
        chance = random.Random(f"{self._seed} {generation}")  # noqa: S311  a search, no secret
        tried = {(trial.genome, trial.temperature) for trial in trials}
        tried.add((parent.genome, parent.entry.temperature))
        found: list[ChallengeAgent] = []
        for _ in range(TRIES * self._count):
            if len(found) == self._count:
                break
            variant = self._mutate(parent, chance)
            if variant is None:
                break
            key = (variant.genome, variant.entry.temperature)
            if key not in tried:
                tried.add(key)
                found.append(name_variant(parent, variant, generation, len(found) + 1))
        return found

    def _mutate(self, parent: ChallengeAgent, chance: random.Random) -> ChallengeAgent | None:
        """Return a variant of *parent*; None: there is nothing to vary."""
        own = parent.genome.splitlines()
        unused = [line for line in self._lines if line not in own]
        ways: list[Callable[[], ChallengeAgent]] = []
        if unused:
            # Twice, as what is wanted is more often missing than in the way.
            ways += [lambda: _add_line(parent, chance.choice(unused))] * 2
        if len(own) > 1:
            ways += [lambda: _drop_line(parent, chance.randrange(len(own))), lambda: _move_line(parent, chance)]
        if parent.sends_temperature:
            ways.append(lambda: _move_temperature(parent, chance))
        return chance.choice(ways)() if ways else None


def name_variant(parent: ChallengeAgent, variant: ChallengeAgent, generation: int, number: int) -> ChallengeAgent:
    """Return *variant* with a name of its own, which begins like that of the first *parent*."""
    root = VARIANT.sub("", parent.name)
    return replace(variant, entry=replace(variant.entry, name=f"{root[:28]}-g{generation}-{number}"))


def _add_line(parent: ChallengeAgent, line: str) -> ChallengeAgent:
    return replace(parent, genome="\n".join([*parent.genome.splitlines(), line]), how=f"adds: {line}")


def _drop_line(parent: ChallengeAgent, number: int) -> ChallengeAgent:
    lines = parent.genome.splitlines()
    return replace(parent, genome="\n".join(lines[:number] + lines[number + 1 :]), how=f"drops: {lines[number]}")


def _move_line(parent: ChallengeAgent, chance: random.Random) -> ChallengeAgent:
    lines = parent.genome.splitlines()
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(0, line)
    return replace(parent, genome="\n".join(lines), how=f"begins with: {line}")


def _move_temperature(parent: ChallengeAgent, chance: random.Random) -> ChallengeAgent:
    now = 1.0 if parent.entry.temperature is None else parent.entry.temperature
    moved = round(min(HIGHEST, max(0.0, now + chance.choice((-STEP, STEP)))), 2)
    return replace(parent, entry=replace(parent.entry, temperature=moved), how=f"temperature {moved:g}")
