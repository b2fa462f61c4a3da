"""`jumar run` and `resume`: parse the options, start the run, show the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from jumar.cli.console.coloured import shorten_patch
from jumar.cli.console.output import Console, fail
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import (
    add_output_options,
    add_run_options,
    read_options,
)
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import NOTHING_TO_WRITE, TRUST, RunPath, format_run, get_apply_exit
from jumar.core.gate.excused_tests import list_notes
from jumar.core.gate.grades import describe_below, format_grades
from jumar.core.state.budget import Budget
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.runs.archive.find import RUNS
from jumar.runs.setup.marks import Trust, TrustedRun, is_own
from jumar.runs.setup.result import Result
from jumar.runs.tree.missing_files import build_advice as lacks
from jumar.task.budget_options import format_flag
from jumar.task.resolve import apply_options
from jumar.task.task import load_task
from jumar.task.untested import format_untested_line

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

UNGATED = "gate off: edits needed no red test; the ratchet alone decided what was kept"
"""Said of every run that worked without the gate, where a test judged it."""

UNJUDGED = "gate off, and no test judged: what the agent wrote last is what was kept"
"""Said of the others, as under test policy never."""

UNWRITTEN = "gate off, no test judged, and nothing was written"
"""Said where the agent wrote nothing: a cap was used up before it could."""

REFACTORED = "gate refactor: edits needed no red test; every outcome had to stay as it was, or become green"
"""Said of a run that began in refactor mode."""

UNCHANGED = "nothing was changed: all tests passed as they were"
"""Said of a green whose best tree is the first one."""


@click.command(epilog="Example: jumar run . --model repair")
@click.argument("task", type=click.Path(path_type=Path), default=".")
@add_run_options
@click.option("--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs are kept.")
@click.option("--apply", is_flag=True, help="Write the best tree onto the original when the run has ended.")
@add_output_options
def run(task: Path, runs: Path, **chosen: Any) -> int:
    """Work on TASK (a task.toml, or any folder with tests) until its tests pass or a cap is reached."""
    voice = Console(json=chosen.pop("as_json"), quiet=chosen.pop("quiet"))
    loaded, options = load_task(task, chosen.pop("config")), read_options(chosen)
    settled = apply_options(loaded, options, read_environment())
    with ProgressDisplay(voice) as live:
        attendant = SignalWatcher(live.print_line, quiet=voice.quiet)
        from jumar.runs import lifecycle as harness  # noqa: PLC0415  it is slow to import
        from jumar.runs.setup.shared_ledger import refuse_ledger_place  # noqa: PLC0415  as above
        from jumar.runs.tree import task_tree as entering  # noqa: PLC0415  as above

        entering.refuse_unmatched(settled.root, options.include)
        refuse_ledger_place(settled.ledger, settled.caps)
        settled = entering.settle_tree(settled, read_environment())
        if large := entering.announce_size(settled.weight, runs):
            live.print_line(large)
        result = attendant.run(
            lambda: harness.start(
                settled, runs, python=chosen["python"], environ=read_environment(), begun=_Following(live, attendant)
            )
        )
    return _report_end(voice, result, apply=chosen["apply"])


@click.command(epilog="Example: jumar resume .jumar/runs/20261121-101500-gcd-1a2b3c --attempts 40")
@click.argument("run_dir", metavar="RUN", type=RunPath())
@click.option("--attempts", type=int, help="Raise the cap on verified candidates.")
@click.option("--turns", type=int, help="Raise the cap on replies of the model.")
@click.option("--test-runs", type=int, help="Raise the cap on verifications.")
@click.option("--seconds", type=float, help="Raise the cap on the time of the whole run.")
@click.option("--budget-usd", "usd", type=float, help="Raise the cap on money.")
@click.option("--budget-tokens", "tokens", type=int, help="Raise the cap on tokens.")
@click.option("--apply", is_flag=True, help="Write the best tree onto the original when the run has ended.")
@TRUST
@add_output_options
def resume(run_dir: Path, *, apply: bool, trust: bool, as_json: bool, quiet: bool, **limits: float | None) -> int:
    """Go on with RUN (its directory, its name, a beginning of that, or `last`) after a crash, an interrupt or a cap."""
    voice = Console(json=as_json, quiet=quiet)
    trusted = Trust(read_environment(), trust).run(run_dir)
    raised = {name: cap for name, cap in limits.items() if cap is not None}
    with ProgressDisplay(voice) as live:
        attendant = SignalWatcher(live.print_line, quiet=voice.quiet)
        from jumar.runs import lifecycle as harness  # noqa: PLC0415  as above

        result = attendant.run(
            lambda: harness.resume(
                trusted, limits=raised, environ=read_environment(), begun=_Following(live, attendant)
            )
        )
    return _report_end(voice, result, apply=apply)


def _format_caps(budget: Budget) -> str:
    """Return the caps of a run, for people: if a key or a file chose the model, they see what it may use."""
    caps = {name: cap for name, cap in msgspec.structs.asdict(budget).items() if cap is not None}
    return "at most " + ", ".join(f"{cap:g} {name}" for name, cap in caps.items()) if caps else "no cap is set"


class _Following:
    """Follows a run: shows it, and lets a signal halt it."""

    def __init__(self, live: ProgressDisplay, attendant: SignalWatcher) -> None:
        self._live, self._attendant = live, attendant
        self.tell = live.tell

    def __call__(self, kernel: Any) -> None:
        """Follow the run from its beginning."""
        live = self._live
        kernel.watch = live.watch
        run = kernel.state.run
        if run.settings.routes:
            purse = f"; ledger {run.settings.ledger}" if run.settings.ledger else ""
            live.print_line(f"{run.agent} asks {run.model}; {_format_caps(run.budget)}{purse}")
        for note in run.settings.notes:
            live.print_line(f"note: {note}")
        if not run.expected:
            live.print_line(format_untested_line(run.settings.verify, run.gate))
        for test_id in run.settings.flaky:
            live.print_line(
                f"flaky: {test_id} comes out differently on the untouched files; it judges nothing in this run"
            )
        if run.settings.needed:
            live.print_line(lacks(run.settings.needed))
        for sentence in kernel.journal.recovered:
            live.print_line(sentence)
        self._attendant.watch(kernel)


def _report_end(voice: Console, result: Result | None, *, apply: bool) -> int:
    """Print how the run ended; with *apply*, write its best tree onto the original."""
    if result is None:
        return voice.report_interrupt()
    folder = Path(result.events).parent
    cost = f"  ${result.usd:.4f}" if result.usd else ""
    voice.say(f"{result.stop}  {result.standing}  {result.seconds:.1f} s{cost}")
    if result.grade:
        voice.say(f"{format_grades(result.grade, result.grades, result.asked)}, sandbox {result.sandbox}")
    changed = (folder / "best.patch").is_file() and (folder / "best.patch").stat().st_size > 0
    for line in filter(None, (_format_gate_line(result, changed=changed), result.taken_back)):
        voice.say(line)
    voice.list_ids("below", tuple(result.below), describe_below(result.below, result.weaker))
    voice.list_ids("red", [i for i in result.reasons if i not in result.flaky], result.reasons)
    voice.list_ids("flaky", result.flaky)
    notes = [f"note: {note}" for note in list_notes(result.excused, result.total)]
    for line in (*notes, *(f"warning: {warning}" for warning in result.warnings)):
        voice.say_line(line)
    if result.probed:
        voice.say(f"probe    {result.probed.summary}")
    if result.why:
        words = result.why.strip().replace("\n", "\n  ")  # so that each line is seen to be the agent's
        voice.say(f"the agent's last words: {words}" if result.said else result.why)
    voice.say(f"journal  {result.events}")
    for line in () if changed else _format_unchanged_line(result):
        voice.say(line)
    if changed:
        _print_change(voice, folder, applied=apply, whole=result.stop is StopReason.GREEN)
    for line in _format_way_on(result, folder):
        voice.say(line)
    refused, written = _apply_best(voice, folder) if apply else (None, None)
    voice.print_result(result if written is None else {**msgspec.to_builtins(result), "written": written})
    return _tell_refusal(refused, folder) if refused else result.exit


def _format_way_on(result: Result, folder: Path) -> tuple[str, ...]:
    """Return the line that tells how to go on with the run in *folder*; none where it would end as before."""
    skipped = result.stop is StopReason.UNTESTED and bool(result.excused)
    if result.stop is StopReason.GREEN or skipped or "of the ledger" in result.why:  # whose caps cannot be raised
        return ()
    raised = "".join(f" {format_flag(name)} {cap:.15g}" for name, cap in result.raises.items())
    return (f"go on    jumar resume {format_run(folder)}{raised}{_get_trust_flag(folder)}",)


def _format_gate_line(result: Result, *, changed: bool) -> str:
    """Return the line on a gate other than the strict one; else empty."""
    if result.gate == Gate.OFF:
        unjudged = UNJUDGED if changed else UNWRITTEN
        return UNGATED if result.best is not None or result.test_runs else unjudged
    return REFACTORED if result.gate == Gate.REFACTOR else ""


def _format_unchanged_line(result: Result) -> tuple[str, ...]:
    """Return the line on a green that changed nothing, with how to ask for more; else none."""
    if result.stop is not StopReason.GREEN:
        return ()
    hint = "; --gate refactor opens edits that no red test asks for" if result.gate == Gate.STRICT else ""
    return (f"{UNCHANGED}{hint}",)


def _print_change(voice: Console, folder: Path, *, applied: bool, whole: bool) -> None:
    """Print how to see and apply the changes of the run in *folder*; with *whole* print them."""
    from jumar.runs.archive.changes import strip_binary  # noqa: PLC0415  as above

    patch = folder / "best.patch"
    voice.say(f"patch    {patch}")
    show = f"jumar diff {format_run(folder)}"
    if whole and not voice.json:
        voice.say(shorten_patch(strip_binary(patch.read_bytes()).decode("utf-8", "backslashreplace"), show))
    elif not whole:
        voice.say(f"changes  {show}")
    if not (folder / "workspace").is_dir():
        voice.say(f"tree     jumar apply {format_run(folder)} --to DIR  (it is large, so the workspace was not kept)")
    if not applied:
        voice.say(f"apply    jumar apply {format_run(folder)}{_get_trust_flag(folder)}")


def _get_trust_flag(folder: Path) -> str:
    """Return the flag that a printed command needs if the run in *folder* has no mark, as in a read-only home."""
    return "" if is_own(folder, read_environment()) else " --trust"


def _tell_refusal(refused: BadInput, folder: Path) -> int:
    """Print why the best tree of the run in *folder* was not applied, and the way out; return the exit code."""
    hint = f"`jumar apply {format_run(folder)} --to DIR` lays the best tree out elsewhere"
    return fail(f"{refused} ({hint})", get_apply_exit(refused), as_json=False)


def _apply_best(voice: Console, folder: Path) -> tuple[BadInput | None, Sequence[str]]:
    """Write the best tree of the run in *folder* onto the original; return the refusal, or the files it wrote."""
    from jumar.runs.archive.changes import apply_best  # noqa: PLC0415  as above

    try:
        written = apply_best(TrustedRun(folder))  # this process worked on it
    except BadInput as error:
        return error, ()
    voice.say("\n".join(f"wrote    {path}" for path in written) or NOTHING_TO_WRITE)
    return None, written
