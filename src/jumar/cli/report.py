"""`jumar report`: the results of runs and campaigns, as lines of text and as one page."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import MANY_RUNS
from jumar.corpus.export import refuse_inside_runs
from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import replace_file


@click.command(epilog="Example: jumar report last -o report.html")
@MANY_RUNS
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write one self-contained page to this .html file.")
@add_output_options
def report(runs: tuple[Path, ...], out: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Show what RUNS came to: campaigns, runs, or folders that hold some; `last` is the campaign begun last.

    Solved tasks, pass@k with intervals, money, what ended the runs, what a person should look at; the page has the
    curve, the failing tests and the change of each run too.
    """
    from jumar.report.build_report import build_report  # noqa: PLC0415  it is slow to import
    from jumar.report.render import render_page  # noqa: PLC0415  as above
    from jumar.report.summary import format_summary  # noqa: PLC0415  as above

    voice = Console(json=as_json, quiet=quiet)
    if out is not None and out.suffix != ".html":
        raise BadInput(f"-o {out} has no suffix .html; name an .html file")
    found = build_report(runs)
    if out is not None:
        refuse_inside_runs([Path(run.folder) for task in found.tasks for run in task.runs], out)
        with explain_output_faults(out):
            replace_file(out, render_page(found).encode())
    for line in format_summary(found):
        voice.say(line)
    if out is not None:
        voice.say(f"page     {out}")
    voice.print_result({**msgspec.to_builtins(found), "file": str(out) if out else None} if as_json else None)
    return 0
