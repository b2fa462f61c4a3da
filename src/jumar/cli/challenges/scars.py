"""`jumar scars`: finds known faults in source files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.core.quoting import make_one_line
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import replace_file

if TYPE_CHECKING:
    from jumar.scorers.scars.search import Finding


@click.command(epilog="Example: jumar scars src tests --sarif scars.sarif")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rules", multiple=True, type=click.Path(path_type=Path), help="A TOML file with more rules.")
@click.option("--no-shipped-rules", is_flag=True, help="Search by the rules of --rules alone.")
@click.option("--sarif", type=click.Path(path_type=Path), help="Also write the findings to this file, as SARIF 2.1.0.")
@add_output_options
def scars(  # noqa: PLR0913  one parameter for each option
    paths: tuple[Path, ...],
    rules: tuple[Path, ...],
    sarif: Path | None,
    *,
    no_shipped_rules: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Search PATHS, source files or folders, for known faults: swallowed exceptions, missing timeouts, keys in code.

    Rules search syntax trees (Python, JavaScript, TypeScript, Go, Rust). Exit code 1: something was found, or a file
    could not be searched.
    """
    from jumar.scorers.scars.rule import load_rules  # noqa: PLC0415  the grammars are slow to import
    from jumar.scorers.scars.sarif import build_sarif  # noqa: PLC0415  as above
    from jumar.scorers.scars.search import ScarSearch, count_points  # noqa: PLC0415  as above
    from jumar.scorers.scars.source_files import read_source_files  # noqa: PLC0415  as above

    voice = Console(json=as_json, quiet=quiet)
    search = ScarSearch(load_rules(rules, shipped=not no_shipped_rules))
    files = read_source_files(paths)
    found, left_out = search.search(files)
    if sarif is not None:
        with explain_output_faults(sarif, "--sarif"):
            replace_file(sarif, msgspec.json.format(msgspec.json.encode(build_sarif(found, search.rules))) + b"\n")
    for each in found:
        voice.say(make_one_line(f"{each.path}:{each.line}: {each.rule} (-{each.points:g}) {each.message}"))
        voice.say(f"    {make_one_line(each.text)}")
    for path in left_out:
        voice.say(
            make_one_line(f"{path}: not searched: it is nested so deep, or so broken, that it would take too long")
        )
    points = count_points(found)
    voice.say(_summarise(found, len(files) - len(left_out), len(search.rules), points))
    counted = {"files": len(files) - len(left_out), "rules": len(search.rules), "not_searched": left_out}
    voice.print_result({"findings": found, "points": points, **counted})
    return 1 if found or left_out else 0


def _summarise(found: Sequence[Finding], files: int, rules: int, points: float) -> str:
    """Return one line on all that was found."""
    searched = f"{files} file{'s' * (files != 1)}"
    if not found:
        return f"nothing was found in {searched} by {rules} rules"
    broken = len({each.rule for each in found})
    count = f"{len(found)} finding{'s' * (len(found) != 1)}"
    return f"{count} in {searched}, by {broken} of {rules} rules: -{points:g} points"
