"""The frame of the benches: turns, medians, and what counts as a move."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

BENCH = Path(__file__).parent.parent / "bench"
sys.path.append(str(BENCH))

import run  # noqa: E402  a script beside the package
from frame import Figure, interleave, median_of, patience, ratio_of  # noqa: E402  as above
from run import BASELINE, Machine, Results, format_table, list_benches, list_moves, merge, run_all  # noqa: E402  as above

MACHINE = Machine(cores=2, processor="p", memory_gb=8, kernel="6.1", python="3.11.7", tier="S3", load=0.1)


def results(*figures: Figure, machine: Machine = MACHINE) -> Results:
    return Results(machine, {f"b: {figure.name}": figure for figure in figures}, {}, {"b": 1.0})


def test_ways_take_turns_and_the_first_round_is_not_counted() -> None:
    asked: list[str] = []

    def way(name: str, value: float) -> float:
        asked.append(name)
        return value + len(asked)

    taken = interleave({"a": lambda: way("a", 0.0), "b": lambda: way("b", 10.0)}, rounds=2)
    assert asked == ["a", "b"] * 3
    assert taken == {"a": [3.0, 5.0], "b": [14.0, 16.0]}
    assert ratio_of("r", taken["b"], taken["a"]).value == (14 / 3 + 16 / 5) / 2
    assert median_of("m", [3.0, 1.0, 2.0, 5.0, 4.0], "s") == Figure("m", 3.0, "s", 2.0, 4.0, 5)


def test_what_takes_longer_than_there_is_patience_for_ends_after_three_rounds() -> None:
    ways = {"a": lambda: 1.0}
    assert len(interleave(ways, rounds=9)["a"]) == 9
    usual = dict(patience)
    try:
        patience["seconds"] = 0.0
        assert len(interleave(ways, rounds=9)["a"]) == 3
        assert len(interleave(ways, rounds=2)["a"]) == 2
    finally:
        patience.update(usual)


def test_only_what_lies_outside_both_spreads_moved() -> None:
    was = Figure("m", 10.0, "ms", 9.0, 11.0, 9)
    for now, said in (
        (Figure("m", 12.0, "ms", 10.5, 13.0, 9), []),
        (Figure("m", 10.4, "ms", 11.1, 11.2, 9), []),
        (Figure("m", 14.0, "ms", 13.0, 15.0, 9), ["b: m: 10 -> 14 ms WORSE"]),
        (Figure("m", 5.0, "ms", 4.0, 6.0, 9), ["b: m: 10 -> 5 ms better"]),
        (Figure("n", 5.0, "ms", 4.0, 6.0, 9), ["b: n: new, 5 ms", "b: m: not measured any more"]),
    ):
        assert list_moves(results(was), results(now)) == said


def test_times_of_another_machine_are_not_compared_and_ratios_are() -> None:
    was, now = (
        (Figure("t", value, "ms", value, value, 9), Figure("r", value, "x", value, value, 9, "more"))
        for value in (2.0, 1.0)
    )
    other = msgspec.structs.replace(MACHINE, cores=64)
    assert list_moves(results(*was), results(*now, machine=other)) == [
        "another machine: only ratios and counts are compared",
        "b: r: 2 -> 1 x WORSE",
    ]
    assert list_moves(results(*was), results(*was, machine=msgspec.structs.replace(MACHINE, load=1.0))) == []
    busy = results(*was, machine=msgspec.structs.replace(MACHINE, load=9.0))
    assert list_moves(results(*now), busy)[0] == "a busy machine: only ratios and counts are compared"


def test_a_baseline_keeps_what_was_not_measured_again_on_this_machine() -> None:
    old = Results(MACHINE, {"a: x": Figure("x", 1.0, "s", 1.0, 1.0, 1), "b: m": Figure("m", 1.0, "s", 1.0, 1.0, 1)})
    new = results(Figure("n", 2.0, "s", 2.0, 2.0, 1))
    assert list(merge(old, new).figures) == ["a: x", "b: n"]
    assert merge(msgspec.structs.replace(old, machine=msgspec.structs.replace(MACHINE, cores=64)), new) == new


@pytest.mark.slow
def test_a_bench_that_breaks_is_named_and_fails_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    run.measure_one("no_such_bench", 1)
    assert '"skipped"' in capfd.readouterr().out
    found = msgspec.structs.replace(results(), skipped={"b": "no browser"})
    assert "skipped: no browser" in format_table(found)
    assert run_all([], 1, 1.0).figures == {}


def test_the_baseline_names_figures_that_are_measured_still() -> None:
    baseline = msgspec.json.decode(BASELINE.read_bytes(), type=Results)
    assert baseline.figures
    assert {name.partition(":")[0] for name in baseline.figures} <= set(list_benches())
    assert "/" not in msgspec.json.encode(baseline.machine).decode().replace("\\/", "")
