"""`jumar diff`: shows what a run changed."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jumar.cli.console.coloured import can_show_colours, colour_patch
from jumar.cli.console.output import Console, strip_controls
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import IN_RUNS, RUN, format_run
from jumar.runs.archive.find import find_run
from jumar.workspace.patch import DiffStat


@click.command(epilog="Example: jumar diff last --stat, or jumar diff 20261121-101500-gcd-1a2b3c | git apply")
@RUN
@click.option("--stat", is_flag=True, help="How many lines of each file, instead of the lines.")
@IN_RUNS
@add_output_options
def diff(run_name: str, runs: Path, *, stat: bool, as_json: bool, quiet: bool) -> int:
    """Show what RUN changed: its best tree against the tree that it began with.

    RUN is the directory of a run, its name, a beginning of its name, or `last` (default). In a pipe the patch is whole
    and plain, for `git apply`.
    """
    from jumar.runs.archive.changes import read_changes  # noqa: PLC0415  libcst is slow to import

    voice = Console(json=as_json, quiet=quiet)
    folder = find_run(run_name, runs)
    found = read_changes(folder)
    if as_json:
        patch = found.patch.decode("utf-8", "replace")
        files = [{"path": strip_controls(f.path), "added": f.added, "removed": f.removed} for f in found.files]
        voice.print_result({"run": found.run, "base": found.base, "best": found.best, "files": files, "patch": patch})
    elif not found.files:
        click.echo(f"jumar: the best tree of {format_run(folder)} is the one it began with", err=True)
    elif stat:
        voice.say(_format_stat(found.files))
    elif sys.stdout.isatty():
        text = strip_controls(found.text).rstrip("\n")
        click.echo(colour_patch(text) if can_show_colours(read_environment()) else text)
    else:
        sys.stdout.buffer.write(found.patch)
    return 0


def _format_stat(files: tuple[DiffStat, ...]) -> str:
    width = max(len(strip_controls(f.path)) for f in files)
    rows = [
        f" {strip_controls(f.path):<{width}} | " + ("binary" if f.added is None else f"+{f.added} -{f.removed}")
        for f in files
    ]
    added, removed = (
        sum(n or 0 for n in counts) for counts in zip(*((f.added, f.removed) for f in files), strict=True)
    )
    return "\n".join([*rows, f" {len(files)} file{'s' * (len(files) != 1)}, +{added} -{removed}"])
