"""Estimates pass@k and its confidence interval from rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from statistics import fmean, variance

import msgspec

Z95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""


class Tally(msgspec.Struct, frozen=True):
    """Rollouts of one task that count, and those of them that are green."""

    rollouts: int
    green: int


class Estimate(msgspec.Struct, frozen=True):
    """Estimate of a share, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    tasks: int
    """Number of tasks that it is a mean over."""


def estimate_pass_at_k(tally: Tally, k: int) -> float:
    """Return the unbiased estimate of the chance that one of *k* rollouts of a task is green.

    1 - C(n - c, k) / C(n, k), for c greens in n rollouts: Chen et al., "Evaluating Large Language Models Trained on
    Code" (2021), section 2.1.

    Raises:
        ValueError: if there are fewer than *k* rollouts.
    """
    if not 1 <= k <= tally.rollouts:
        raise ValueError(f"pass@{k} needs {k} rollouts or more, not {tally.rollouts}")
    return 1 - comb(tally.rollouts - tally.green, k) / comb(tally.rollouts, k)


def average_pass_at_k(tallies: Sequence[Tally], k: int) -> Estimate | None:
    """Return pass@k over the tasks that have *k* rollouts or more; None: there is none.

    The interval is Wilson's, for what tasks like these would give. Its sample size is the effective one of Korn and
    Graubard (1998): rollouts of one task are no independent draws, so it lies between the number of tasks and the
    number of rollouts.
    """
    counted = [tally for tally in tallies if tally.rollouts >= k]
    if not counted:
        return None
    shares = [estimate_pass_at_k(tally, k) for tally in counted]
    value = fmean(shares)
    size = _count_effectively(shares, sum(tally.rollouts // k for tally in counted))
    return Estimate(value, *compute_wilson_interval(value, size), len(counted))


def _count_effectively(shares: Sequence[float], most: int) -> float:
    """Return the number of independent draws with the variance of *shares*; *most* is an upper bound."""
    tasks, value = len(shares), fmean(shares)
    if tasks == 1:
        return most
    if value in (0, 1):
        return tasks  # they may all be the same, or alike: nothing tells, so each task is one draw
    spread = variance(shares) / tasks
    return min(most, max(tasks, value * (1 - value) / spread)) if spread else most


def compute_wilson_interval(share: float, size: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of a *share* that was seen in *size* draws (Wilson 1927)."""
    square = Z95**2
    middle = (share + square / (2 * size)) / (1 + square / size)
    half = Z95 / (1 + square / size) * sqrt(share * (1 - share) / size + square / (4 * size**2))
    return (0.0 if share == 0 else max(0.0, middle - half), 1.0 if share == 1 else min(1.0, middle + half))


def choose_ks(tallies: Sequence[Tally]) -> tuple[int, ...]:
    """Return the k to report: the powers of two, and the number of rollouts that every task with any has.

    For a larger k the tasks with most faults would be left out of the mean, and it could not be compared with others.
    """
    most = min((tally.rollouts for tally in tallies if tally.rollouts), default=0)
    powers = [1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most]
    return tuple(sorted({*powers, *([most] if most else [])}))
