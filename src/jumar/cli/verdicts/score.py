"""`jumar score`: parse the options, judge the tree, show the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.console.output import Console
from jumar.cli.console.progress import ProgressDisplay
from jumar.cli.parameters.command_options import (
    PROBE,
    TEST_COMMAND,
    add_output_options,
    add_verdict_options,
    read_options,
)
from jumar.cli.parameters.environment import read_environment
from jumar.core.gate.excused_tests import format_passed, list_notes
from jumar.core.gate.grades import describe_below, format_grades
from jumar.core.state.run_state import HOST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.core.state.test_policy import Gate
from jumar.runs.judging.ahead import begin_ahead
from jumar.task.resolve import apply_options
from jumar.task.task import load_task

if TYPE_CHECKING:
    from jumar.runs.scoring import Scored


@click.command(epilog="Example: jumar score tasks/gcd ~/src/gcd")
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("tree", type=click.Path(path_type=Path))
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@TEST_COMMAND
@add_verdict_options
@PROBE
@add_output_options
def score(task: Path, tree: Path, python: str | None, *, as_json: bool, quiet: bool, **chosen: Any) -> int:
    """A verdict on TREE (a folder, or the directory of a run) by TASK's own tests, and nothing else."""
    voice = Console(json=as_json, quiet=quiet)
    settled = apply_options(load_task(task), read_options({"agent": HOST, "model": HOST, "gate": Gate.OFF, **chosen}))
    with ProgressDisplay(voice) as live:
        begin_ahead(settled, python, read_environment())
        # Slow to import, and some processes get ready meanwhile.
        from jumar.cli.console.signals import SignalWatcher  # noqa: PLC0415  as said
        from jumar.runs.candidate import is_reference  # noqa: PLC0415  as said
        from jumar.runs.scoring import score_tree  # noqa: PLC0415  as said

        for row in settled.in_force:
            if row.note and row.name in ("confirm", "sandbox"):  # the others do not judge
                live.print_line(f"note: {row.note}")
        if is_reference(settled, tree):
            live.print_line(f"note: {tree} is the task's reference: its files are laid over those of the task")
        attendant = SignalWatcher(live.print_line, quiet=voice.quiet)
        scored = attendant.run(
            lambda: score_tree(settled, tree, python=python, environ=read_environment(), tell=live.tell)
        )
    if scored is None:
        return voice.report_interrupt()
    for warning in scored.warnings:
        voice.say_line(f"warning: {warning}")
    voice.say(f"void: {scored.void}" if scored.void else _format_counts(scored))
    for line in filter(None, (scored.unproved, scored.untested, *list_notes(scored.excused, scored.total))):
        voice.say(line)
    if scored.grade:
        voice.say(f"{format_grades(scored.grade, scored.grades, scored.asked)}, sandbox {scored.sandbox}")
    voice.list_ids("below", tuple(scored.below), describe_below(scored.below, scored.weaker))
    voice.list_ids("red", scored.red, scored.reasons)
    voice.list_ids("flaky", scored.flaky)
    if scored.probed:
        voice.say(f"probe    {scored.probed.summary}")
    voice.print_result(scored)
    return EXIT_CODES[StopReason.INFRA] if scored.void else int(not scored.ok)


def _format_counts(scored: Scored) -> str:
    """Return the verdict in a word, and how many tests came out how."""
    passed = format_passed(scored.passed or 0, scored.total, scored.excused)
    word = "green" if scored.ok else "unproved" if scored.unproved else "untested" if scored.untested else "red"
    return f"{word}  {passed}, {scored.failed} failed, {scored.errors} errors"
