"""`jumar rescore`: judges stored runs again and shows what changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import add_output_options, add_verdict_options, read_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import MANY_RUNS, TRUST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.corpus.export import find_run_directories
from jumar.errors import BadInput
from jumar.runs.rescoring import Rescored, RescoreRules, load_judging_task, rescore_run
from jumar.runs.setup.marks import Trust
from jumar.task.option_values import OptionValues


@click.command(epilog="Example: jumar rescore .jumar/campaigns/20261123-101500-1a2b --hidden ~/hidden/gcd")
@MANY_RUNS
@click.option(
    "--task", type=click.Path(path_type=Path), help="Judge by this task, not by those that the runs came from."
)
@click.option("--hidden", type=click.Path(path_type=Path), help="Held-out tests in the place of the task's own.")
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@add_verdict_options
@TRUST
@add_output_options
def rescore(runs: tuple[Path, ...], *, as_json: bool, quiet: bool, **chosen: Any) -> int:
    """Judge the best trees of RUNS again: folders of runs or campaigns; `last` is the campaign begun last.

    No agent runs and no journal changes; `score.json` beside each journal has the new score.
    """
    voice = Console(json=as_json, quiet=quiet)
    if chosen["hidden"] is not None and not chosen["hidden"].is_dir():
        raise BadInput(f"there is no folder {chosen['hidden']}; name the folder of the held-out tests")
    options = read_options({name: value for name, value in chosen.items() if name not in ("task", "hidden")})
    values = OptionValues(**{name: getattr(options, name) for name in OptionValues.__struct_fields__})
    rules = RescoreRules(values, hidden=chosen["hidden"], python=chosen["python"])
    trust = Trust(read_environment(), chosen["trust"])
    if chosen["task"] is not None:
        rules = rules._replace(task=load_judging_task(chosen["task"], rules, trust.environ))
    folders = find_run_directories(runs)
    found = SignalWatcher(voice.note, quiet=quiet).run(lambda: _rescore_all(voice, folders, rules, trust))
    if found is None:
        return voice.report_interrupt()
    changed = sum(each.changed for each in found)
    void = sum(not each.after for each in found)
    voice.say(f"{changed} of {len(found)} runs changed" + (f", {void} could not be judged" if void else ""))
    voice.print_result({"runs": found, "changed": changed, "void": void})
    return EXIT_CODES[StopReason.INFRA] if void else 0


async def _rescore_all(voice: Console, folders: Sequence[Path], rules: RescoreRules, trust: Trust) -> list[Rescored]:
    found = []
    for folder in folders:
        each = await rescore_run(folder.absolute(), rules, trust)
        mark = "CHANGED" if each.changed else "same   " if each.after else "VOID   "
        why = f"  ({each.why})" if each.why else ""
        grade = f"  grade {each.score.grade}" if each.score and each.after else ""
        voice.say(f"{mark}  {each.run}  {each.before} -> {each.after or 'not judged'}{grade}{why}")
        found.append(each)
    return found
