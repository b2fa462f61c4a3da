"""`jumar runs`: the table of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jumar.cli.archive.stops import STATES, check_stops
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import IN_RUNS
from jumar.errors import BadInput
from jumar.runs.archive.find import RUNS
from jumar.runs.archive.listing import RunRow, count_shared_bytes, list_runs

TITLES = ("RUN", "TASK", "STOP", "PASSED", "COST", "TIME", "SIZE")
THOUSAND = 1000


@click.command(epilog="Example: jumar runs --stop attempts")
@click.argument("folder", metavar="[RUNS]", type=click.Path(path_type=Path), required=False)
@click.option("--stop", "stops", multiple=True, help="Only those that stopped so (or open, unfinished, damaged).")
@IN_RUNS
@add_output_options
def runs(folder: Path | None, runs: Path, *, stops: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """List the runs in RUNS (default .jumar/runs), the newest first."""
    voice = Console(json=as_json, quiet=quiet)
    check_stops(stops, STATES)
    refuse_missing(folder, runs)
    runs = folder or runs
    rows = [row for row in list_runs(runs) if not stops or row.stop in stops]
    shared = count_shared_bytes(runs)
    if not rows:
        inner = runs / "runs"  # of a campaign
        voice.say(f"no run in {runs}" + (f"; name {inner}" if inner.is_dir() else ""))
    else:
        for line in _format_table([TITLES, *map(format_cells, rows)]):
            voice.say(line)
        whole = format_size(shared + sum(row.bytes for row in rows))
        voice.say(
            f"{len(rows)} run{'s' * (len(rows) != 1)}, {whole}, of which {format_size(shared)} are shared objects"
        )
    voice.print_result({"runs": rows, "shared_bytes": shared})
    return 0


def refuse_missing(folder: Path | None, runs: Path) -> None:
    """Refuse a *folder* of runs, or one as `--runs`, that a person named and that is not there.

    Raises:
        BadInput: naming it.
    """
    named = folder or (None if runs == RUNS else runs)  # where nobody made a run yet there is no usual folder
    if named is not None and not named.is_dir():
        raise BadInput(f"there is no folder {named}; name one that holds runs")


def format_cells(row: RunRow) -> tuple[str, ...]:
    """Return the cells of a table row as texts."""
    passed = "-" if row.passed is None else f"{row.passed}/{row.total}"
    cost = f"${row.usd:.4f}" if row.usd else "-"
    return (row.run, row.task, row.stop, passed, cost, f"{row.seconds:.1f} s", format_size(row.bytes))


def _format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def format_size(count: float) -> str:
    """Return *count* bytes for people, in powers of 1,000."""
    for unit in ("B", "kB", "MB"):
        if count < THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"  # noqa: PLR2004  two digits
        count /= THOUSAND
    return f"{count:.1f} GB"
