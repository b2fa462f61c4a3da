"""`jumar batch`: many tasks, several rollouts of each, in one campaign that can be interrupted and go on."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
from click.core import ParameterSource
from msgspec.structs import replace

from jumar.campaigns.create import (
    CampaignBudget,
    CampaignOrder,
    create_campaign,
    find_campaign,
    make_campaign_folder,
    name_campaign,
    try_machine,
)
from jumar.campaigns.find_tasks import find_tasks
from jumar.cli.campaign_session import read_deadline, run_session
from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.harbor_tasks import replace_harbor_tasks
from jumar.cli.parameters.command_options import add_output_options, add_shaping_options, read_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import TRUST
from jumar.errors import BadInput
from jumar.models.wire.providers import check_temperature
from jumar.runs.setup.marks import Trust
from jumar.task.option_values import OptionValues
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

if TYPE_CHECKING:
    from jumar.campaigns.summary import CampaignSummary

CONCURRENCY = 8
"""Rollouts at work at once, unless chosen: most wait for a model most of the time."""

PAGE = "report.html"
"""Name of the report in a campaign's folder."""

CHANGEABLE = (
    "concurrency", "cores", "processes", "deadline", "executor", "ray_address", "collect", "resumed", "trust",
    "as_json", "quiet",
)  # fmt: skip
"""Parameters that may be typed beside --resume."""


@click.command(epilog="Example: jumar batch 'tasks/*' --rollouts 8 --model anthropic:claude-sonnet-5-5 --budget-usd 20")
@click.argument("tasks", nargs=-1)
@click.option("--rollouts", type=click.IntRange(1, 9999), default=1, help="Runs of each task (default 1).")
@click.option("--campaign", type=click.Path(path_type=Path), help="Folder of the campaign; default: a new one.")
@click.option("--resume", "resumed", metavar="CAMPAIGN", help="Go on with a campaign: its folder, its name, or last.")
@click.option("--concurrency", type=click.IntRange(1, 65_536), default=CONCURRENCY, help="Runs at once (default 8).")
@click.option("--cores", type=click.IntRange(1), help="Runs judged at once (default: the cores of this machine).")
@click.option("--executor", type=click.Choice(["local", "ray"]), default="local", help="Where runs run: local or ray.")
@click.option("--ray-address", help="Ray cluster: auto, local, HOST:PORT or ray://HOST:PORT (default: as ray.init).")
@click.option(
    "--collect", metavar="URL", default="", help="With ray: where the archive of each run is stored, too (fsspec)."
)
@click.option("--processes", type=click.IntRange(1, 256), help="Worker processes (default: one for each core).")
@click.option("--deadline", help="When to halt: 8h, 90m, or a time of day such as 07:30.")
@click.option("--temperatures", help="Temperatures of the rollouts of a task, in turn, such as 0.2,0.6,1.0.")
@click.option("--patience", type=click.IntRange(1), help="Begin no more of a task after N without a better result.")
@click.option("--retries", type=click.IntRange(0, 100), default=2, help="Retries of a run after a fault (default 2).")
@click.option("--no-verdict-cache", is_flag=True, help="Judge each run by itself: no verdict serves another run.")
@click.option("--budget-usd", "campaign_usd", type=float, help="Cap on the money of the whole campaign.")
@click.option("--budget-tokens", "campaign_tokens", type=int, help="Cap on the tokens of the whole campaign.")
@click.option("--task-usd", type=float, help="Cap on the money of one task; its rollouts share it equally.")
@click.option("--run-usd", type=float, help="Cap on the money of one run.")
@click.option("--run-tokens", type=int, help="Cap on the tokens of one run.")
@add_shaping_options
@TRUST
@add_output_options
def batch(tasks: tuple[str, ...], resumed: str | None, **chosen: Any) -> int:
    """Work on TASKS: folders, task.toml files, globs, .jsonl lists of {"path": ...}, or folders of Harbor tasks.

    Several rollouts of a task are judged once, at their end, and no gate holds them, unless --test-policy and --gate
    say otherwise.
    """
    from jumar.campaigns.campaign import lock_campaign  # noqa: PLC0415  it is slow to import
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  as above
    from jumar.executors.choose import ExecutorChoice  # noqa: PLC0415  as above

    voice, environ = Console(json=chosen["as_json"], quiet=chosen["quiet"]), read_environment()
    where = ExecutorChoice(*(chosen[name] for name in ExecutorChoice._fields))
    where.check()
    deadline = read_deadline(chosen["deadline"], time.time()) if chosen["deadline"] else None
    trust = Trust(environ, chosen["trust"])
    if resumed is None:
        folder = (chosen["campaign"] or name_campaign()).absolute()
        order = _read_order(tasks, chosen)
        with make_campaign_folder(folder):
            ready = SignalWatcher().run(lambda: replace_harbor_tasks(order.tasks, folder / "tasks", voice))
            if ready is None:
                raise KeyboardInterrupt
            plan = create_campaign(folder, replace(order, tasks=ready), environ)
            if where.executor == "local":
                anyio.run(try_machine, folder, plan, environ, voice.note)
        trust = Trust(environ, anyone=True)  # this process made it, a moment ago
    else:
        _refuse_changes(click.get_current_context())
        folder = find_campaign(resumed).absolute()
    load_plan(folder, trust)  # before anything is made there
    voice.say(f"campaign {folder}")
    with lock_campaign(folder, voice.note) as lock:
        summary = run_session(voice, folder, trust, lock, {**chosen, "deadline": deadline, "where": where})
        page = _write_page(folder)
    return _show(voice, summary, page, trust)


def _read_order(tasks: tuple[str, ...], chosen: dict[str, Any]) -> CampaignOrder:
    budget = CampaignBudget(
        usd=chosen["campaign_usd"], tokens=chosen["campaign_tokens"], task_usd=chosen["task_usd"],
        run_usd=chosen["run_usd"], run_tokens=chosen["run_tokens"],
    )  # fmt: skip
    options = read_options(chosen)
    if options.temperature is not None and chosen["temperatures"]:
        raise BadInput("--temperature is for all rollouts and --temperatures for one after the other; leave one out")
    return CampaignOrder(
        tasks=find_tasks(tasks),
        options=OptionValues(**{name: getattr(options, name) for name in OptionValues.__struct_fields__}),
        budget=budget,
        rollouts=chosen["rollouts"],
        config=str(chosen["config"].absolute()) if chosen["config"] else "",
        temperatures=read_temperatures(chosen["temperatures"]) if chosen["temperatures"] else (),
        patience=chosen["patience"],
        retries=chosen["retries"],
        shared_verdicts=not chosen["no_verdict_cache"],
    )


def _refuse_changes(context: click.Context) -> None:
    """Refuse options that would change a campaign that is resumed.

    Raises:
        BadInput: naming an argument that was typed and may not change.
    """
    typed = [
        parameter
        for parameter in context.command.params
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        and parameter.name not in CHANGEABLE
    ]
    if typed:
        may = ", ".join(f"--{name}" for name in CHANGEABLE[:4])
        what = typed[0].opts[0] if isinstance(typed[0], click.Option) else "TASKS"
        raise BadInput(
            f"--resume goes on with a campaign as it was planned, so it takes no {what}; only {may} may change"
        )


def read_temperatures(text: str) -> tuple[float, ...]:
    """Return the temperatures in *text*, separated by commas.

    Raises:
        BadInput: if one of them is none.
    """
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--temperatures {text} are none: give numbers and commas, such as 0.2,0.6,1.0") from None
    for temperature in found:
        check_temperature(temperature, "each of --temperatures")
    return found


def _write_page(folder: Path) -> Path:
    """Write the report on the campaign in *folder* into it."""
    from jumar.report.build_report import build_report  # noqa: PLC0415  it is slow to import
    from jumar.report.render import render_page  # noqa: PLC0415  as above

    page = folder / PAGE
    with explain_disk_faults(f"cannot write {page}"):
        replace_file(page, render_page(build_report([folder])).encode())
    return page


def _list_open(summary: CampaignSummary, trust: Trust) -> set[str]:
    """Return the rollouts with which another session would go on; those that were refused would be again."""
    from jumar.campaigns.journals import list_open_rollouts  # noqa: PLC0415  it is slow to import
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  as above

    folder = Path(summary.campaign)
    refused = {end.rollout for end in summary.other if end.stop == "refused"}
    try:
        return set(list_open_rollouts(folder, load_plan(folder, trust))) - refused
    except BadInput:  # a journal is damaged: another session would be refused, and the report names it
        return set()


def _show(voice: Console, summary: CampaignSummary, page: Path, trust: Trust) -> int:
    """Print the result of the campaign."""
    stops = ", ".join(f"{count} {stop}" for stop, count in summary.by_stop.items())
    voice.say(
        f"{summary.solved} of {summary.tasks} tasks solved  {sum(summary.by_stop.values())} rollouts ({stops})  "
        f"${summary.usd:.4f}  {summary.tokens:,} tokens  {summary.test_runs} test runs  "
        f"{summary.verdicts_cached} verdicts known already"
    )
    voice.say(f"report   {page}")
    voice.say(f"runs     jumar runs --runs {summary.campaign}/runs")
    if any(summary.by_stop.get(stop) for stop in ("infra", "interrupted", "not_begun")) and _list_open(summary, trust):
        voice.say(f"go on    jumar batch --resume {shlex.quote(summary.campaign)}")
    voice.print_result(summary)
    return summary.exit
