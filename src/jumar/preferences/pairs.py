"""Chooses pairs of rollouts: one prompt, two outcomes. Pure; the same rollouts give the same pairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import msgspec

from jumar.preferences.rollouts import Reason, Rollout


class PairRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which rollouts are paired."""

    by_score: bool = False
    """True if a higher share of passed tests is preferred, too; False: pass against fail only."""
    margin: float = 0.0
    """Least difference of the shares."""
    max_pairs: int = 4
    """Of one task."""


class Pair(msgspec.Struct, frozen=True):
    """A preferred rollout and another one for the same prompt."""

    chosen: Rollout
    rejected: Rollout

    @property
    def folders(self) -> tuple[str, str]:
        """The run directories of both."""
        return self.chosen.folder, self.rejected.folder

    @property
    def contrast(self) -> float:
        """Difference of the shares of passed tests."""
        return self.chosen.score - self.rejected.score

    @property
    def stretch(self) -> float:
        """Length of the longer completion over that of the shorter one: length alone could show the label."""
        lengths = sorted((self.chosen.completion.length, self.rejected.completion.length))
        return lengths[1] / max(1, lengths[0])


class Paired(msgspec.Struct, frozen=True):
    """Pairs, and the rollouts that are in no pair."""

    pairs: tuple[Pair, ...]
    left: Mapping[str, Reason]
    """Run directory -> the reason."""


def drop_duplicates(rollouts: Iterable[Rollout]) -> tuple[list[Rollout], dict[str, Reason]]:
    """Return *rollouts* with each completion for a prompt once, and the others with the reason.

    One that passed here and failed there says that the tests are flaky: both are left out.
    """
    groups: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in sorted(rollouts, key=lambda r: r.folder):
        groups[rollout.example].append(rollout)  # of two campaigns with other caps, too: a trainer sees no caps
    kept, left = [], dict[str, Reason]()
    for same in groups.values():
        if len({r.passed for r in same}) > 1:
            left |= {r.folder: Reason.FLAKY for r in same}
            continue
        kept.append(same[0])
        left |= {r.folder: Reason.DUPLICATE for r in same[1:]}
    return kept, left


def choose_pairs(rollouts: Iterable[Rollout], rules: PairRules) -> Paired:
    """Return pairs of *rollouts*, at most `max_pairs` of each task, and why the others are in none.

    Rollouts that are in few pairs come first, then great contrast, then completions of similar length.
    """
    kept, left = drop_duplicates(rollouts)
    groups: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in kept:
        groups[rollout.group].append(rollout)
    possible: dict[str, list[Pair]] = defaultdict(list)
    for same in groups.values():
        found = [Pair(a, b) for a, b in product(same, same) if _is_preferred(a, b, rules)]
        possible[same[0].task] += found
    pairs = [pair for task in sorted(possible) for pair in _pick(possible[task], rules.max_pairs)]
    used = {rollout.folder for pair in pairs for rollout in (pair.chosen, pair.rejected)}
    able = {r.folder for found in possible.values() for pair in found for r in (pair.chosen, pair.rejected)}
    left |= {r.folder: Reason.SURPLUS if r.folder in able else Reason.UNPAIRED for r in kept if r.folder not in used}
    return Paired(tuple(pairs), left)


def _is_preferred(a: Rollout, b: Rollout, rules: PairRules) -> bool:
    if a.passed and not b.passed:
        return a.score - b.score >= rules.margin
    return rules.by_score and a.passed == b.passed and a.score > b.score and a.score - b.score >= rules.margin


def _pick(possible: Sequence[Pair], most: int) -> list[Pair]:
    picked, uses = list[Pair](), Counter[str]()
    waiting = list(possible)
    while waiting and len(picked) < most:
        best = min(waiting, key=lambda p: (sum(uses[name] for name in p.folders), -p.contrast, p.stretch, p.folders))
        waiting.remove(best)
        picked.append(best)
        uses.update(best.folders)
    return picked
