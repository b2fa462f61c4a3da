"""`jumar clean`: removes runs by age, size and reason to stop, and the objects that nothing needs any more."""

from __future__ import annotations

import re
from pathlib import Path

import click

from jumar.cli.archive.list_runs import format_size, refuse_missing
from jumar.cli.archive.stops import ENDED, check_stops
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import IN_RUNS
from jumar.errors import BadInput
from jumar.runs.archive import cleaning
from jumar.runs.archive.cleaning import CleaningRule, remove_leftovers
from jumar.runs.archive.find import refuse_links

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@click.command(epilog="Example: jumar clean --older-than 7d --stop attempts --dry-run")
@click.argument("folder", metavar="[RUNS]", type=click.Path(path_type=Path), required=False)
@click.option("--older-than", help="Those that began longer ago: 90m, 12h, 7d, 2w.")
@click.option("--max-size", help="The oldest, until runs and shared objects take at most this: 500MB, 10GB, 2GiB.")
@click.option("--stop", "stops", multiple=True, help=f"Those that stopped so: {', '.join(ENDED)}; may be repeated.")
@click.option("--interrupted", is_flag=True, help="Also those that `jumar resume` would go on with.")
@click.option("--all", "everything", is_flag=True, help="Every run that has ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@IN_RUNS
@add_output_options
def clean(folder: Path | None, runs: Path, *, as_json: bool, quiet: bool, dry_run: bool, **chosen: object) -> int:
    """Remove runs in RUNS (default .jumar/runs), and shared objects that no other run needs.

    A run that is open stays. One that was interrupted, has no end or is damaged stays unless you ask for it
    (--interrupted, --stop). Conditions that are given together must all hold.
    """
    voice, runs = Console(json=as_json, quiet=quiet), folder or runs
    wanted = CleaningRule(
        older_than=_parse_seconds(chosen["older_than"]),
        keep_bytes=_parse_bytes(chosen["max_size"]),
        stops=check_stops(chosen["stops"], ENDED),
        interrupted=bool(chosen["interrupted"]),
    )
    if wanted == CleaningRule(interrupted=wanted.interrupted) and not chosen["everything"]:
        raise BadInput(
            "say which runs: --older-than 7d, --max-size 10GB, --stop attempts, or --all; --dry-run tries it"
        )
    refuse_missing(folder, runs)
    refuse_links(runs)
    for name in () if dry_run else remove_leftovers(runs):
        voice.say(f"kept     {name}  it has no event yet: it begins just now, or was killed; --all removes it later")
    done = cleaning.clean(runs, wanted, dry=dry_run)
    word = "would remove" if dry_run else "removed"
    for row in done.removed:
        voice.say(f"{word}  {row.run}  {row.stop}  {format_size(row.bytes)}")
    for name in done.busy:
        voice.say(f"kept     {name}  another process has it open")
    for row in done.damaged:
        voice.say_line(f"kept     {row.run}  damaged: {row.why}; --stop damaged removes it")
    objects = f"{done.objects} shared objects ({format_size(done.objects_bytes)})"
    freed = "would free" if dry_run else "freed"
    voice.say(
        f"{freed} {format_size(done.bytes)}: {len(done.removed)} of {len(done.removed) + done.kept} runs, {objects}"
    )
    voice.print_result({
        "removed": [row.run for row in done.removed], "kept": done.kept, "busy": done.busy,
        "damaged": [row.run for row in done.damaged], "bytes": done.bytes,
        "objects": done.objects, "objects_bytes": done.objects_bytes, "dry_run": dry_run,
    })  # fmt: skip
    return 0


def _parse_seconds(text: object) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", str(text).strip().lower())
    if match is None:
        raise BadInput(f"--older-than {text} is no time; give one such as 90m, 12h, 7d or 2w")
    return float(match[1]) * SECONDS[match[2]]


def _parse_bytes(text: object) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", str(text).strip().lower())
    if match is None or match[2] not in BYTES:
        raise BadInput(f"--max-size {text} is no size; give one such as 500MB, 10GB or 2GiB")
    return int(float(match[1]) * BYTES[match[2]])
