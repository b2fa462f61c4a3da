"""`jumar corpus`: exports the edits that turned red tests green, and replays them."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import click

from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import MANY_RUNS, TRUST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.corpus.export import Corpus, build_corpus, keep_bases, refuse_inside_runs
from jumar.corpus.replay import (
    Replayed,
    ReplayResources,
    ReplayStatus,
    build_source_lookup,
    refuse_missing,
    replay_record,
)
from jumar.corpus.schema import Record, encode_record, parse_records
from jumar.errors import BadInput
from jumar.models.wire.jsonl import read_once
from jumar.runs.setup import choose_sandbox
from jumar.runs.setup.marks import Trust
from jumar.sandbox.request import AUTO
from jumar.task.task import Task, find_interpreter
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.files.safe_paths import replace_file

STANDARD = "-"
"""Standard input or output, where a file is named."""


class DefaultExportGroup(click.Group):
    """Command group with `export` as its default: arguments without a command are the runs of `export`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `export` first if *args* begin with no command."""
        named = not args or args[0] in (*self.commands, "--help", "-h")
        return super().parse_args(ctx, args if named else ["export", *args])


@click.group("corpus", cls=DefaultExportGroup, epilog="Example: jumar corpus .jumar/runs -o corpus.jsonl")
def corpus() -> None:
    """Red, edit, green: a record for each edit that was kept under the gate.

    `jumar corpus RUNS... -o FILE` writes them, `jumar corpus replay FILE --runs RUNS` executes them again.
    """


@corpus.command("export", epilog="Example: jumar corpus .jumar/runs -o corpus.jsonl --objects objects")
@MANY_RUNS
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path, allow_dash=True), help="FILE, or -.")
@click.option("--objects", type=click.Path(path_type=Path), help="Also keep here what a replay without RUNS needs.")
@add_output_options
def export(runs: tuple[Path, ...], out: Path, objects: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Write one record for each accepted edit of RUNS: directories of runs, or folders that hold some."""
    voice = Console(json=as_json, quiet=quiet)
    if as_json and str(out) == STANDARD:
        raise BadInput("-o - writes the records to standard output, where --json would add a line: name a file")
    found = build_corpus(runs)
    refuse_inside_runs(
        found.folders.values(), *([] if str(out) == STANDARD else [out]), *([objects] if objects else [])
    )
    data = b"".join(map(encode_record, found.records))
    if objects is not None:
        keep_bases(found, objects)
    _write(out, data)
    for sentence in found.left:
        voice.note(f"left out: {sentence}")
    said = f"{len(found.records)} records of {found.runs} runs"
    if not (found.records or found.left):
        said += ": a record is an edit that was kept under --gate strict, and there was none"
    (voice.note if str(out) == STANDARD else voice.say)(said)
    voice.print_result(_build_summary(found, out, data))
    return 0 if found.records else 1


def _build_summary(found: Corpus, out: Path, data: bytes) -> dict[str, object]:
    return {
        "file": str(out),
        "records": len(found.records),
        "runs": found.runs,
        "left": list(found.left),
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
    }


def _write(out: Path, data: bytes) -> None:
    """Write *data* to *out* wholly or not at all."""
    if str(out) == STANDARD:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if out.is_dir():
        raise BadInput(f"{out} is a folder; name a file")
    if out.exists() and not out.is_file():  # a pipe or a device
        out.write_bytes(data)
        return
    with explain_output_faults(out):
        replace_file(out, data)


@corpus.command("replay", epilog="Example: jumar corpus replay corpus.jsonl --runs .jumar/runs")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--runs", multiple=True, type=click.Path(path_type=Path), help="Where the runs lie; may be repeated.")
@click.option("--objects", type=click.Path(path_type=Path), help="What `--objects` kept, in place of the runs.")
@click.option("--python", help="The interpreter that runs the tests; default: that of the run, else ours.")
@click.option(
    "--confirm", type=click.IntRange(1, 100), default=1, show_default=True, help="Verifications of each tree."
)
@click.option("--sandbox", default=AUTO, show_default=True, help="auto: S3 or not at all; else the tier you accept.")
@TRUST
@add_output_options
def replay(  # noqa: PLR0913  one parameter per option
    file: Path,
    runs: tuple[Path, ...],
    objects: Path | None,
    python: str | None,
    confirm: int,
    *,
    sandbox: str,
    trust: bool,
    **speech: bool,
) -> int:
    """Execute each record of FILE again: red without the edit, green with it, red once it is taken back."""
    voice = Console(json=speech["as_json"], quiet=speech["quiet"])
    if not runs and objects is None:
        raise BadInput("a replay needs the trees of the records: name their runs with --runs, or --objects DIR")
    name = "standard input" if str(file) == STANDARD else str(file)
    data = sys.stdin.buffer.read() if str(file) == STANDARD else read_once(file, "corpus")
    todo = parse_records(data, name)
    chosen = str(find_interpreter(Task(root=Path(), name=name), python)) if python else ""

    async def work() -> list[Replayed]:
        with tempfile.TemporaryDirectory(prefix="jumar-replay-") as room:
            # Edits of others, many of them, and nobody looks: they are unattended.
            place = choose_sandbox.SandboxSurroundings(Path(room), read_environment())
            means = ReplayResources(
                sources=build_source_lookup(runs, objects, Trust(read_environment(), trust)),
                python=chosen,
                environ=read_environment(),
                confirm=confirm,
                room=Path(room),
                sandbox=await choose_sandbox.choose_sandbox(sandbox, place, unattended=True),
            )
            return await _replay_all(voice, todo, means)

    done = SignalWatcher().run(work)
    return voice.report_interrupt() if done is None else _print_replayed(voice, done, confirm)


async def _replay_all(voice: Console, todo: Sequence[Record], means: ReplayResources) -> list[Replayed]:
    refuse_missing(todo, means)
    done: list[Replayed] = []
    for number, record in enumerate(todo, 1):
        done.append(await replay_record(record, means))
        _print_row(voice, done[-1], number, len(todo))
    return done


def _print_row(voice: Console, one: Replayed, number: int, total: int) -> None:
    """Print one row of the table, as soon as it is known."""
    rows = [f"{number:>{len(str(total))}}/{total}  {one.status:<10}  {one.id}", *(f"    {d}" for d in one.differs)]
    voice.note("\n".join(rows))


def _print_replayed(voice: Console, done: list[Replayed], confirm: int) -> int:
    counts = Counter(one.status for one in done)
    voice.say(f"{len(done)} records: " + ", ".join(f"{counts[status]} {status}" for status in ReplayStatus))
    if grades := sorted({one.grade for one in done if one.grade}):
        voice.say(
            f"grade {', '.join(grades)}, sandbox {', '.join(sorted({one.sandbox for one in done if one.sandbox}))}"
        )
    voice.print_result({
        "records": len(done),
        **{status.value: counts[status] for status in ReplayStatus},
        "confirm": confirm,
        "verifications": sum(one.verifications for one in done),
        "executions": sum(one.executions for one in done),
        "results": done,
    })  # fmt: skip
    return EXIT_CODES[StopReason.INFRA] if counts[ReplayStatus.VOID] else int(bool(counts[ReplayStatus.UNSTABLE]))
