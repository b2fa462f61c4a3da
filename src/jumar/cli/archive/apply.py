"""`jumar apply`: writes the best tree of a run onto the folder that its task came from."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from jumar.cli.console.output import Console, fail
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import IN_RUNS, NOTHING_TO_WRITE, RUN, TRUST, format_run
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.errors import BadInput
from jumar.runs.archive.find import find_run
from jumar.runs.setup.marks import Trust
from jumar.workspace.files.disk_faults import Unwritable


@click.command(epilog="Example: jumar apply last, or jumar apply 20261121-101500-gcd-1a2b3c --to /tmp/best")
@RUN
@click.option("--to", type=click.Path(path_type=Path), help="Lay the whole tree out in this new folder instead.")
@TRUST
@IN_RUNS
@add_output_options
def apply(run_name: str, to: Path | None, runs: Path, *, trust: bool, **speech: bool) -> int:
    """Write what RUN changed onto the folder that its task came from.

    Files that were changed there since the run began are merged; where both sides changed the same lines, each such
    file is named and nothing is written. RUN is the directory of a run, its name, a beginning of it, or `last`.
    """
    from jumar.runs.archive.changes import apply_best, find_origin, lay_out  # noqa: PLC0415  libcst is slow to import
    from jumar.workspace.write_back import Conflicts  # noqa: PLC0415  as below

    voice, folder = Console(json=speech["as_json"], quiet=speech["quiet"]), find_run(run_name, runs)
    if to is not None:
        lay_out(folder, to)
        voice.say(f"laid out the best tree of {format_run(folder)} in {to}")
        voice.print_result({"run": folder.name, "to": str(to)})
        return 0
    run = Trust(read_environment(), trust).run(folder)
    origin = find_origin(run)
    if not Path.cwd().is_relative_to(origin.resolve()):
        voice.say(f"to       {origin}")
    try:
        written = apply_best(run)
    except Conflicts as refused:
        conflicts = msgspec.to_builtins(refused.conflicts)
        voice.print_result(
            {"run": folder.name, "written": [], "conflicts": conflicts, "exit": EXIT_CODES[StopReason.FINAL]}
        )
        for conflict in refused.conflicts:
            voice.say(f"conflict {conflict.why}")
        count = f"{len(conflicts)} conflict{'s' * (len(conflicts) != 1)}"
        spoken = format_run(folder)
        mend = f"`jumar diff {spoken}` shows the run's side, `jumar apply {spoken} --to DIR` lays it out"
        return fail(f"nothing was applied: {count}; {mend}", EXIT_CODES[StopReason.FINAL], as_json=False)
    except Unwritable as refused:
        raise BadInput(f"{refused}; `jumar apply {format_run(folder)} --to DIR` lays the tree out elsewhere") from None
    for path in written:
        voice.say(f"wrote    {path}")
    if not written:
        voice.say(NOTHING_TO_WRITE)
    voice.print_result({"run": folder.name, "written": written, "conflicts": [], "exit": 0})
    return 0
