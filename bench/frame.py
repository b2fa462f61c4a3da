"""Frame of the benches: named figures, measured in turns, with medians and spread.

A bench is a module here with a function `measure(rounds)` that yields figures; `bench/run.py` finds it, runs it in a
process of its own and puts its figures into the JSON and the table. It raises `Skipped` where something is missing.

    def measure(rounds: int) -> Iterator[Figure]:
        taken = interleave({"cold": run_cold, "warm": run_warm, "plain": command([PYTHON, "-m", "pytest"])}, rounds)
        yield median_of("cold run", taken["cold"], "s")
        yield ratio_of("cold against warm", taken["cold"], taken["warm"], better="more")
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median, quantiles

import msgspec

FEWEST = 3
"""Rounds of a measurement, at least."""

patience = {"seconds": inf}
"""A measurement that has taken longer ends after the fewest rounds."""

Way = Callable[[], object]
"""Something to be measured: by its wall time, or by the float that it returns."""


class Figure(msgspec.Struct, frozen=True):
    """A measured figure: the median of all rounds, and between which values half of them lie."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    rounds: int
    better: str = "less"
    """`less` or `more`; empty: it is neither."""
    note: str = ""


class Skipped(Exception):  # noqa: N818  it is an answer, not an error
    """A bench cannot run here; says what is missing."""


def interleave(ways: Mapping[str, Way], rounds: int, warm: int = 1) -> dict[str, list[float]]:
    """Measure all *ways* in turns, so that a busy machine slows them alike; the first *warm* rounds do not count.

    Name -> seconds of each round, or what the way returned.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in count_rounds(rounds, warm):
        for name, way in ways.items():
            began = time.perf_counter()
            found = way()
            seconds = time.perf_counter() - began
            if turn >= warm:
                taken[name].append(found if isinstance(found, float) else seconds)
    return taken


def count_rounds(rounds: int, warm: int) -> Iterator[int]:
    """Count so many *rounds* after the *warm* ones, or fewer where they take longer than there is patience for."""
    began = time.perf_counter()
    for turn in range(warm + rounds):
        if turn >= warm + FEWEST and time.perf_counter() - began > patience["seconds"]:
            return
        yield turn


def command(argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Way:
    """Return a way that runs *argv* to its end; its output is thrown away."""

    def run() -> None:
        subprocess.run(argv, env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  ours

    return run


def median_of(name: str, samples: Sequence[float], unit: str, better: str = "less", note: str = "") -> Figure:
    """Return the figure *name* of *samples*."""
    low, _, high = quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else (samples[0],) * 3
    return Figure(name, median(samples), unit, low, high, len(samples), better, note)


def ratio_of(name: str, ones: Sequence[float], others: Sequence[float], better: str = "less", note: str = "") -> Figure:
    """Return how many times *others* the *ones* are, round by round."""
    return median_of(name, [one / other for one, other in zip(ones, others, strict=True)], "x", better, note)


def milliseconds(samples: Sequence[float]) -> list[float]:
    """Return *samples*, which are seconds, in milliseconds."""
    return [1000 * sample for sample in samples]
