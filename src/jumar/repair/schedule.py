"""Chooses the next trial from the sightings so far alone, so the same sightings give the same search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from jumar.repair.candidates import Candidate, generate_candidates, generate_pairs
from jumar.repair.screening_client import ScreeningTrial, Sighting
from jumar.repair.suspicion import SuspectTree

LIMITS = (0.03, 0.25, 2.0, 12.0)
"""Processor seconds a test of a candidate may take at first, and again, later, if it took them all."""

ROOM = 6.0
"""A test may take so many times longer under a candidate than it takes to fail on the tree as it is."""

QUICK = 0.02
"""Processor seconds a candidate takes that does not hang: what retries are weighed against."""

RETRY_SHARE = 0.2
"""The retries of each limit may cost as much of what the fresh candidates cost."""

CREDIT_SECONDS = 6.0
"""Candidates that turned a test green before they hung are retried at once, up to so much more than fresh ones cost."""

HOPEFUL = -1
"""The purse that such retries are paid from; the others are named by their level."""

PAIRS_AFTER = 4000
"""From so many single changes on, every third trial is a pair."""

SEEDS = 24
"""First halves of pairs: those that got furthest."""

PATIENCE = 5000
"""Trials after the first partial candidate before it has to do, and as many again as before it."""

BREAKAGE = ("NameError", "UnboundLocalError", "TypeError", "AttributeError", "SyntaxError", "ImportError")
"""A failure that changes into one of these is no progress."""


@dataclass(order=True, slots=True)
class _Retry:
    level: int
    turned: int
    index: int
    candidate: Candidate = field(compare=False)


@dataclass(order=True, slots=True)
class _Half:
    order: tuple[int, int]
    pairs: Iterator[Candidate] = field(compare=False)


class TrialSchedule:
    """Chooses trials for one tree. Sightings must be recorded in the order of the trials."""

    def __init__(self, tree: SuspectTree, red: tuple[str, ...], seed: int = 0) -> None:
        """Schedule trials for *tree*; *red* are the tests that must turn green."""
        self._tree, self._red, self._seed = tree, frozenset(red), seed
        self._singles = generate_candidates(tree, seed)
        self._signs: tuple[str, ...] | None = None
        self._hopeful: list[_Retry] = []
        self._retries: dict[int, list[_Retry]] = {level: [] for level in range(1, len(LIMITS))}
        self._halves: list[_Half] = []
        self._levels: dict[int, tuple[int, int]] = {}
        self._spent: dict[int, float] = dict.fromkeys([HOPEFUL, *range(len(LIMITS))], 0.0)
        self._scale = 1.0
        self._fresh = 0
        self._pair_turn = 0
        self._issued = 0
        self.partials: list[tuple[int, int, Candidate]] = []
        """Candidates that turn some red tests green and lose none: minus the number, index, candidate."""

    def find_trial(self, index: int) -> ScreeningTrial | None:
        """Return trial number *index*; None when nothing is left to try until more is noted."""
        if index == 0:
            return ScreeningTrial(0, None, LIMITS[2])
        if trial := self._find_retry(index):
            return trial
        candidate = self._find_pair() if self._fresh > PAIRS_AFTER and self._fresh % 3 == 0 else None
        candidate = candidate or next(self._singles, None) or self._find_pair()
        if candidate is not None:
            self._fresh += 1
            return self._build_trial(index, candidate, 0, 0)
        return self._find_retry(index, share=inf)

    def record(self, trial: ScreeningTrial, sighting: Sighting) -> None:
        """Record the result of *trial* for the order of the next ones."""
        if trial.candidate is None:
            self._signs = sighting.signs
            self._scale = max(1.0, ROOM * sighting.seconds / LIMITS[0])
            return
        level, purse = self._levels.pop(trial.index)
        self._spent[purse] += 0.0 if sighting.hung else QUICK - trial.seconds
        if sighting.hung and level + 1 < len(LIMITS):
            retry = _Retry(level + 1, -len(sighting.turned), trial.index, trial.candidate)
            heappush(self._hopeful if sighting.turned else self._retries[level + 1], retry)
        elif self.is_partial(sighting):
            heappush(self.partials, (-len(sighting.turned), trial.index, trial.candidate))
        if self._is_promising(trial.candidate, sighting):
            pairs = generate_pairs(self._tree, trial.candidate, self._seed)
            self._halves.append(_Half((-len(sighting.turned), trial.index), pairs))
            self._halves.sort()
            del self._halves[SEEDS:]

    def is_full(self, sighting: Sighting) -> bool:
        """Return whether the candidate is worth proposing at once."""
        return sighting.kept and sighting.turned == self._red

    def is_partial(self, sighting: Sighting) -> bool:
        """Return whether the candidate is progress without loss."""
        return sighting.kept and bool(sighting.turned)

    @property
    def patient(self) -> bool:
        """Return whether to continue to search for more than the best partial candidate."""
        first = min((index for _, index, _ in self.partials), default=None)
        return first is None or self._issued < 2 * first + PATIENCE

    @property
    def _floor(self) -> int:
        return -self.partials[0][0] if self.partials else 0

    def _find_retry(self, index: int, share: float = RETRY_SHARE) -> ScreeningTrial | None:
        """Return a candidate that hung, under a longer limit, if its turn has come."""
        if self._hopeful and self._spent[HOPEFUL] <= self._spent[0] + CREDIT_SECONDS:
            retry = heappop(self._hopeful)
            return self._build_trial(index, retry.candidate, retry.level, HOPEFUL)
        for level, retries in self._retries.items():
            if retries and self._spent[level] + LIMITS[level] * self._scale <= share * self._spent[0]:
                return self._build_trial(index, heappop(retries).candidate, level, level)
        if share == inf and self._hopeful:
            retry = heappop(self._hopeful)
            return self._build_trial(index, retry.candidate, retry.level, HOPEFUL)
        return None

    def _build_trial(self, index: int, candidate: Candidate, level: int, purse: int) -> ScreeningTrial:
        """Build a trial of *candidate*; its worst case is reserved from *purse* until its result is recorded."""
        seconds = LIMITS[level] * self._scale
        self._levels[index] = (level, purse)
        self._spent[purse] += seconds
        self._issued += 1
        return ScreeningTrial(index, candidate, seconds, self._floor)

    def _find_pair(self) -> Candidate | None:
        """Return the next pair, taking turns among the first halves."""
        while self._halves:
            self._pair_turn = (self._pair_turn + 1) % len(self._halves)
            candidate = next(self._halves[self._pair_turn].pairs, None)
            if candidate is not None:
                return candidate
            del self._halves[self._pair_turn]
        return None

    def _is_promising(self, candidate: Candidate, sighting: Sighting) -> bool:
        """Return whether *candidate* may be half of a pair: the red tests got further, or failed differently."""
        if candidate.first or sighting.hung or self.is_full(sighting):
            return False
        if sighting.turned:
            return True
        first = sighting.signs[0] if sighting.signs else ""
        return bool(first) and sighting.signs != self._signs and not first.startswith(BREAKAGE)
