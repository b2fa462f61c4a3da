"""`jumar log`: reads a journal, and never writes one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import msgspec

from jumar.cli.archive.rows import drop_repeats, filter_types
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.run_argument import RunPath
from jumar.core.quoting import escape_line_ends, make_one_line
from jumar.core.state import events as ev
from jumar.corpus.export import refuse_inside_runs
from jumar.interop.audit_bundle import audit_bundle
from jumar.interop.bundle import write_bundle
from jumar.journal.audit import verify
from jumar.journal.writer import read_journal
from jumar.runs.setup.result import read_head, read_state, replay_state

REASONS = ("void", "why", "what")
"""Fields of events that say why."""

RUN = click.argument("run_dir", metavar="RUN", type=RunPath())


@click.group("log", epilog="Example: jumar log show last")
def log() -> None:
    """Read the journal of a run."""


@log.command("show", epilog="Example: jumar log show .jumar/runs/20261121-101500-gcd-1a2b3c")
@RUN
@click.option(
    "--type", "types", multiple=True, help="Only events of this type, such as best or revert; may be repeated."
)
@click.option(
    "--all", "everything", is_flag=True, help="Also the test_run rows that are as in the verification before."
)
@add_output_options
def show(run_dir: Path, *, types: tuple[str, ...], everything: bool, as_json: bool, quiet: bool) -> int:
    """The events of RUN, one line each. RUN is its directory, its name, a beginning of that, or `last`.

    Rows of tests that came out as in the verification before are left out, and counted; not so in --json.
    """
    voice = Console(json=as_json, quiet=quiet)
    journal = read_journal(run_dir)
    entries, started = filter_types(journal, types), journal[0].ts if journal else 0.0
    for row in entries if everything else drop_repeats(entries):
        said = f"{row} test_run as before (--all shows them)" if isinstance(row, int) else _format_event(row.event)
        when = " " * 18 if isinstance(row, int) else f"{row.seq:>6}  {row.ts - started:>8.2f} s"
        voice.say(f"{when}  {said}")
    voice.print_result({"events": [_convert_entry(e) for e in entries]} if as_json else None)
    return 0


@log.command("verify", epilog="Example: jumar log verify .jumar/runs/20261121-101500-gcd-1a2b3c")
@RUN
@add_output_options
def verify_(run_dir: Path, *, as_json: bool, quiet: bool) -> int:
    """Check the hash chain of RUN: names every line that was changed, deleted, inserted or moved."""
    voice = Console(json=as_json, quiet=quiet)
    findings = verify(run_dir)
    if not findings and (head := read_head(run_dir)) is not None:
        findings = verify(run_dir, head)
    if not findings:
        read_state(run_dir)  # a chain may be whole and yet tell what cannot have happened
    for finding in findings:
        voice.say(f"line {finding.line}: {finding.what}")
    if not findings:
        voice.say(f"{len(read_journal(run_dir))} events, the chain is whole")
    voice.print_result({"ok": not findings, "findings": [msgspec.to_builtins(f) for f in findings]})
    return int(bool(findings))


@log.command("bundle", epilog="Example: jumar log bundle last -o run.bundle.tar")
@RUN
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@add_output_options
def bundle(run_dir: Path, out: Path, *, as_json: bool, quiet: bool) -> int:
    """Write RUN as one file: journal, objects, result, environment. The same run gives the same bytes.

    Sign the hash that is printed; `jumar log audit FILE` checks the file offline.
    """
    voice = Console(json=as_json, quiet=quiet)
    refuse_inside_runs([run_dir], out)
    written = write_bundle(run_dir, out)
    voice.say(f"{written.events} events and {written.objects} objects, {written.bytes} bytes, in {out}")
    voice.say(f"sha256 {written.sha256}")
    voice.print_result(written)
    return 0


@log.command("audit", epilog="Example: jumar log audit run.bundle.tar")
@click.argument("file", type=click.Path(path_type=Path))
@add_output_options
def audit(file: Path, *, as_json: bool, quiet: bool) -> int:
    """Check a FILE of `jumar log bundle` with nothing but the file: every change is named, exit 1.

    A file that is no bundle any more (a changed header, something behind its end) cannot be checked: exit 2.
    Bytes, hash chain, the objects of every tree, and the result, which must follow from the journal.
    """
    voice = Console(json=as_json, quiet=quiet)
    found = audit_bundle(file)
    for finding in found.findings:
        voice.say(finding)
    if found.ok:
        voice.say(
            f"{found.run} ({found.task}): {found.stop}, {found.events} events, {found.objects} objects, all whole"
        )
    voice.say(f"sha256 {found.sha256}")
    voice.print_result(found)
    return int(not found.ok)


@log.command("stats", epilog="Example: jumar log stats .jumar/runs/20261121-101500-gcd-1a2b3c")
@RUN
@add_output_options
def stats(run_dir: Path, *, as_json: bool, quiet: bool) -> int:
    """Show what RUN used: events, verifications, seconds, tokens, money."""
    voice = Console(json=as_json, quiet=quiet)
    counted = _compute_stats(read_journal(run_dir))
    for name, value in counted.items():
        voice.say(f"{name:<22}{_format_value(value)}")
    voice.print_result(counted)
    return 0


def _compute_stats(entries: tuple[ev.Entry, ...]) -> dict[str, Any]:
    state = replay_state(entries)
    kinds = Counter(type(e.event).__struct_config__.tag for e in entries)
    tests = [e.event for e in entries if isinstance(e.event, ev.Tests)]
    calls = [e.event for e in entries if isinstance(e.event, ev.ModelCall)]
    # What a provider never counted (a call that was cut off, say) was not cached either way: it is left out.
    counted = [c for c in calls if not c.assumed]
    prompt, cached = sum(c.input_tokens for c in counted), sum(c.cached_tokens for c in counted)
    return {
        "phase": state.phase.value,
        "agent": state.start.agent if state.start else None,
        "gate": state.start.gate.value if state.start else None,
        "events": dict(sorted(kinds.items(), key=lambda item: str(item[0]))),
        "attempts": state.spend.attempts,
        "test_runs": state.spend.test_runs,
        "baseline_runs": state.baseline_runs,
        "executions": state.executions,
        "selected_runs": sum(t.selected > 0 for t in tests),
        "starts": dict(sum((Counter(t.starts) for t in tests), Counter())),
        "void": sum(t.void is not None for t in tests),
        "seconds": round(state.spend.seconds, 3),
        "verification_seconds": round(sum(t.duration_ms for t in tests) / 1000, 3),
        "model_seconds": round(sum(c.ms for c in calls) / 1000, 3),
        "turns": state.spend.turns,
        "calls": len(calls),
        "failed_calls": sum(bool(c.error) for c in calls),
        "stages": dict(Counter(c.stage for c in calls)),
        "input_tokens": sum(c.input_tokens for c in calls),
        "cached_tokens": cached,
        "cached_share": round(cached / prompt, 4) if prompt else None,
        "output_tokens": sum(c.output_tokens for c in calls),
        "usd": state.spend.usd,
    }


def _format_value(value: Any) -> str:
    return "  ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _convert_entry(entry: ev.Entry) -> dict[str, Any]:
    return {"seq": entry.seq, "ts": entry.ts, **msgspec.to_builtins(entry.event)}


def _format_event(event: ev.Event) -> str:
    """Return one event for people; long texts are cut, except the reason of a refusal."""
    fields = {k: v for k, v in msgspec.to_builtins(event).items() if k != "type" and v not in ("", None, [], (), {})}
    if isinstance(event, ev.Tests) and event.void is not None:
        fields["void"] = f"{event.void.cause}: {event.void.reason}"
    text = "  ".join(f"{k}={make_one_line(str(v)) if k in REASONS else _shorten(v)}" for k, v in fields.items())
    return f"{type(event).__struct_config__.tag:<14}{text}"


def _shorten(value: Any, limit: int = 72) -> str:
    text = escape_line_ends(str(value))
    return text if len(text) <= limit else text[: limit - 3] + "..."
