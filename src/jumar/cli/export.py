"""`jumar export`: writes runs as trajectories, predictions, spans or a report of tests, for other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import MANY_RUNS
from jumar.corpus.export import find_run_directories, refuse_inside_runs
from jumar.errors import BadInput
from jumar.interop.atif import build_trajectory
from jumar.interop.junit_report import build_junit_report
from jumar.interop.otlp import build_spans
from jumar.interop.predictions import build_predictions
from jumar.interop.stored_runs import StoredRun, read_stored_runs
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import replace_file


class ExportFormat(StrEnum):
    """Format of another tool."""

    ATIF = "atif"
    PREDICTIONS = "predictions"
    OTEL = "otel"
    JUNIT = "junit"


SUFFIXES = {
    ExportFormat.ATIF: (".json", ".jsonl"),
    ExportFormat.PREDICTIONS: (".jsonl",),
    ExportFormat.OTEL: (".json",),
    ExportFormat.JUNIT: (".xml",),
}


@click.command(epilog="Example: jumar export .jumar/campaigns/20261123-101500-1a2b -o report.xml --format junit")
@MANY_RUNS
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), help="A file: .json, .jsonl or .xml, by the format."
)
@click.option(
    "--format",
    "kind",
    required=True,
    type=click.Choice([*map(str, ExportFormat)]),
    help="atif (.json of one run, .jsonl of several), predictions (.jsonl), otel (.json), junit (.xml).",
)
@add_output_options
def export(runs: tuple[Path, ...], out: Path, kind: str, *, as_json: bool, quiet: bool) -> int:
    """Write RUNS for other tools: folders of runs or campaigns; `last` is the campaign begun last.

    ATIF trajectories, SWE-bench predictions, OpenTelemetry GenAI spans (OTLP/JSON), or a JUnit report for CI.
    """
    voice = Console(json=as_json, quiet=quiet)
    form = ExportFormat(kind)
    if out.suffix not in SUFFIXES[form]:
        raise BadInput(f"-o {out}: {form} is written to a {' or '.join(SUFFIXES[form])} file; name one")
    refuse_inside_runs(find_run_directories(runs), out)
    found = read_stored_runs(runs)
    data, told = _encode(form, found, out)
    with explain_output_faults(out):
        replace_file(out, data)
    for name in told.get("left_out", ()):
        voice.note(f"left out {name}: a prediction of its task is there already")
    voice.say(f"{len(found) - len(told.get('left_out', ()))} of {len(found)} runs as {form} in {out}")
    voice.print_result({"runs": len(found), "format": str(form), "file": str(out), "bytes": len(data), **told})
    return 0


def _encode(form: ExportFormat, runs: Sequence[StoredRun], out: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of the file, and the other fields of `--json`."""
    match form:
        case ExportFormat.ATIF:
            if out.suffix == ".json" and len(runs) > 1:
                raise BadInput(f"{out} would hold {len(runs)} trajectories, and a .json file holds one; name a .jsonl")
            return _encode_lines(map(build_trajectory, runs)), {"trajectories": len(runs)}
        case ExportFormat.PREDICTIONS:
            made = build_predictions(runs)
            return _encode_lines(made.rows), {"predictions": len(made.rows), "left_out": list(made.left)}
        case ExportFormat.OTEL:
            spans = build_spans(runs)
            return _encode_lines([spans]), {"spans": len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"])}
        case ExportFormat.JUNIT:
            return build_junit_report(runs), {"testcases": len(runs)}


def _encode_lines(documents: Any) -> bytes:
    return b"".join(json.dumps(document, ensure_ascii=True).encode() + b"\n" for document in documents)
