"""A campaign of a million rollouts, simulated on what one machine measures: time, first bottleneck, money, storage.

Run as `python bench/scale.py --data DIR [--rollouts N] [--tasks N] [--write]`; DIR has real tasks. It runs them twice
with scripted replies and measures test times, sizes of runs, and, where `.venv/ray` is (`make prove` makes it), the
rates of the real actors. Then it simulates each number of nodes with and without the limits of a provider. `--write`
puts the tables into `docs/scale.md`. Times and prices of models are assumptions, named below and on that page.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from scale_measure import Measured, describe, measure
from scale_model import Cluster, Outcome, Provider, Simulation, Work

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- bench/scale.py writes from here -->", "<!-- to here -->"

ROLLOUTS = 1_000_000
NODES = (1, 10, 100, 1000)
TASKS = 23
CORES, SLOTS = 16, 64
"""Of a node: as many rollouts at once as `ROLLOUTS_PER_CORE` of `jumar.executors.ray_session` lets Ray place there."""

LEDGER_CALLS = 3
"""Transactions of the ledger for a rollout, beside two for each call of its model."""

# Assumptions. Nothing here was measured: no provider was asked.
CALLS = 5
ANSWER_MEDIAN_SECONDS, ANSWER_SPREAD = 6.0, 0.6
"""Of one answer, log-normal: a second to the first token, then 300 tokens at 60 a second."""
INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 1200, 4800, 300
"""Of one call: read anew, read from the provider's cache, written."""
USD_PER_MILLION = (3.0, 0.3, 15.0)
LIMITS_PER_MINUTE = (4000.0, 2_000_000.0, 400_000.0)
"""Requests, tokens read anew, tokens written: limits of one large account."""
CORE_HOUR_USD = 0.05


def main() -> None:
    """Measure, simulate, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rollouts", type=int, default=ROLLOUTS)
    parser.add_argument("--sandbox", default="S3")
    parser.add_argument("--tasks", type=int, default=TASKS, help="run every nth task, so that so many are run at most")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    measured = measure(options.data, options.sandbox, options.tasks)
    lines = [*show_measured(measured), "", *simulate(measured, options.rollouts), "", *show_storage(measured)]
    text = "\n".join(lines)
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def show_measured(measured: Measured) -> Iterator[str]:
    """Yield the table of what was measured."""
    services = measured.services or {"ledger_calls": 0.0, "verdict_calls": 0.0, "tasks": 0.0}
    yield f"| measured on {measured.cores} cores, at a load of {measured.load:g} for each | |"
    yield "| --- | --- |"
    count = len(measured.core_seconds)
    tried = f"{measured.tasks} Python tasks, {measured.calls} calls each, sandbox {measured.sandbox}"
    yield f"| rollouts | {count}, of {tried} |"
    yield f"| processor time of a whole rollout, start of jumar included | {describe(measured.core_seconds)} |"
    yield f"| its last verification, by the clock | {describe(measured.test_seconds)} |"
    yield f"| ledger: calls of its actor | {services['ledger_calls']:,.0f} a second |"
    yield f"| store of verdicts: calls of its actor | {services['verdict_calls']:,.0f} a second |"
    yield f"| empty tasks that one driver starts | {services['tasks']:,.0f} a second |"
    yield f"| runs that one driver collects | {measured.collected:,.0f} a second |"
    yield f"| a run on the disk | {measured.run_bytes / 1000:,.0f} kB in {measured.run_files:.1f} files |"
    yield f"| its archive | {measured.archive_bytes / 1000:,.1f} kB |"
    row, verdict = measured.ledger_row_bytes, measured.verdict_bytes
    yield f"| a row of the ledger, a verdict of 30 tests | {row:,.0f} and {verdict:,.0f} bytes |"


def simulate(measured: Measured, rollouts: int) -> Iterator[str]:
    """Yield the table of what was simulated."""
    chance = random.Random(1)  # noqa: S311  no secret
    answers = [ANSWER_MEDIAN_SECONDS * chance.lognormvariate(0, ANSWER_SPREAD) for _ in range(10_000)]
    requests, read, written = LIMITS_PER_MINUTE
    limit = min(requests, read / INPUT_TOKENS, written / OUTPUT_TOKENS) / 60
    services = measured.services or {"ledger_calls": 1000.0, "verdict_calls": 1000.0}
    work = Work(rollouts, CALLS, measured.core_seconds)
    yield f"| nodes | provider | {rollouts:,} rollouts take | first bottleneck | next | machines | models |"
    yield "| --: | --- | --: | --- | --- | --: | --: |"
    rates = (services["ledger_calls"], services["verdict_calls"], measured.collected)
    providers = (Provider(f"{limit:.0f} calls a second", limit, answers), Provider("no limit", 1e9, answers))
    all_of_them = [(Cluster(nodes, CORES, SLOTS, LEDGER_CALLS, *rates), one) for one in providers for nodes in NODES]
    with ProcessPoolExecutor(len(all_of_them)) as processes:
        begun = [processes.submit(run_simulation, work, *one) for one in all_of_them]
        for (cluster, provider), outcome in zip(all_of_them, begun, strict=True):
            yield format_row(cluster, provider, outcome.result(), rollouts)


def run_simulation(work: Work, cluster: Cluster, provider: Provider) -> Outcome:
    """Return the outcome of one simulation, in a process of its own."""
    return Simulation(work, cluster, provider).run()


def format_row(cluster: Cluster, provider: Provider, outcome: Outcome, rollouts: int) -> str:
    """Return one line of the table."""
    first, second = list_busy(outcome.busy)[:2]
    usd = sum(
        count * price
        for count, price in zip((INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS), USD_PER_MILLION, strict=True)
    )
    models = rollouts * CALLS * usd / 1e6
    machines = cluster.nodes * cluster.cores * outcome.seconds / 3600 * CORE_HOUR_USD
    return (
        f"| {cluster.nodes:,} | {provider.name} | {outcome.seconds / 3600:,.1f} h | {first} | {second} "
        f"| ${machines:,.0f} | ${models:,.0f} |"
    )


def list_busy(busy: Mapping[str, float]) -> list[str]:
    """Return the parts, busiest first. All slots are taken wherever something else is short: they count only alone."""
    others = sorted(((share, name) for name, share in busy.items() if name != "slots"), reverse=True)
    full = 0.9
    if others[0][0] < full:
        others.insert(0, (busy["slots"], "slots: answers are waited for"))
    return [f"{name} {share:.0%}" for share, name in others]


def show_storage(measured: Measured) -> Iterator[str]:
    """Yield the table of what a million rollouts leave."""
    yield f"| {ROLLOUTS:,} rollouts leave | |"
    yield "| --- | --- |"
    files = measured.run_files * ROLLOUTS / 1e6
    yield f"| run directories | {measured.run_bytes * ROLLOUTS / 1e9:,.0f} GB in {files:,.0f} million files |"
    archives = measured.archive_bytes * ROLLOUTS / 1e9
    yield f"| or archives under `--collect` | {archives:,.1f} GB in {ROLLOUTS:,} objects |"
    yield f"| `ledger.db` | {measured.ledger_row_bytes * CALLS * ROLLOUTS / 1e9:,.1f} GB |"
    yield f"| `verdicts.db`, if no tree came twice | {measured.verdict_bytes * ROLLOUTS / 1e9:,.1f} GB |"


if __name__ == "__main__":
    main()
