"""`jumar evolve`: several agents on one challenge, ranked by tests, principles and scars."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from jumar.cli.campaign_session import read_deadline, run_session
from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import add_output_options, add_verdict_options, read_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import TRUST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust
from jumar.task.option_values import OptionValues
from jumar.workspace.files.safe_paths import explain_disk_faults, replace_file

if TYPE_CHECKING:
    from jumar.challenges.scores_file import ChallengeScores


@click.command(epilog="Example: jumar evolve challenge.toml --agents agents.toml --rollouts 3 --budget-usd 10")
@click.argument("challenge", required=False, type=click.Path(path_type=Path))
@click.option("--agents", type=click.Path(path_type=Path), help="TOML file with an [[agent]] table for each agent.")
@click.option("--rollouts", type=click.IntRange(1, 9999), help="Runs of each agent on each task (default: the file's).")
@click.option("--campaign", type=click.Path(path_type=Path), help="Folder of the campaign; default: a new one.")
@click.option("--resume", "resumed", metavar="CAMPAIGN", help="Go on with it: its folder, its name, or last.")
@click.option("--rescore", metavar="CAMPAIGN", help="Score and rank its stored runs again; no agent runs.")
@click.option("--judge-again", is_flag=True, help="With --rescore: ask the judge anew instead of its recording.")
@click.option("--budget-usd", "campaign_usd", type=float, help="Cap on the money of all agents together.")
@click.option("--deadline", help="When to halt: 8h, 90m, or a time of day such as 07:30.")
@click.option("--concurrency", type=click.IntRange(1, 65_536), default=8, help="Runs at once (default 8).")
@click.option("--cores", type=click.IntRange(1), help="Runs judged at once (default: the cores of this machine).")
@click.option("--python", help="The interpreter that runs the tests; default: the task's .venv, else ours.")
@add_verdict_options
@TRUST
@add_output_options
def evolve(challenge: Path | None, agents: Path | None, resumed: str | None, **chosen: Any) -> int:
    """Run the agents in --agents on CHALLENGE, a challenge.toml, and rank them.

    Each agent works on each task; its best trees are judged anew by the trusted verifier. Exit code 0: there is a
    ranking.
    """
    from jumar.campaigns.campaign import lock_campaign  # noqa: PLC0415  it is slow to import
    from jumar.campaigns.create import find_campaign  # noqa: PLC0415  as above
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  as above
    from jumar.challenges.score_challenge import ScoringChoices, score_challenge  # noqa: PLC0415  as above
    from jumar.executors.choose import Executor, ExecutorChoice  # noqa: PLC0415  as above

    voice, environ = Console(json=chosen["as_json"], quiet=chosen["quiet"]), read_environment()
    trust = Trust(environ, chosen["trust"])
    stored = resumed or chosen["rescore"]
    if stored is None:
        folder = _begin(voice, challenge, agents, chosen)
        trust = Trust(environ, anyone=True)  # this process made it, a moment ago
    else:
        if challenge or agents or (resumed and chosen["rescore"]):
            raise BadInput(
                "--resume and --rescore name a campaign, which knows its challenge and agents: give just one"
            )
        folder = find_campaign(stored).absolute()
    load_plan(folder, trust)
    voice.say(f"campaign {folder}")
    stopped = ""
    if chosen["rescore"] is None:
        deadline = read_deadline(chosen["deadline"], time.time()) if chosen["deadline"] else None
        where = ExecutorChoice(Executor.LOCAL, None, "")
        with lock_campaign(folder, voice.note) as lock:
            limits = {**chosen, "deadline": deadline, "where": where, "processes": None}
            stopped = run_session(voice, folder, trust, lock, limits).stopped
        if stopped:
            voice.say(f"stopped: {stopped}; go on with jumar evolve --resume {folder}")
            return EXIT_CODES[StopReason.INTERRUPTED]
    again = chosen["judge_again"] or chosen["rescore"] is None
    order = ScoringChoices(_read_values(chosen), _count_cores(chosen), again=again, say=voice.note)
    scores = SignalWatcher(voice.note, quiet=chosen["quiet"]).run(lambda: score_challenge(folder, order, trust))
    return voice.interrupted() if scores is None else _show(voice, scores, folder)


def _begin(voice: Console, challenge: Path | None, agents: Path | None, chosen: dict[str, Any]) -> Path:
    """Return the folder of a new campaign, in which nothing was begun."""
    from jumar.campaigns.create import (  # noqa: PLC0415  it is slow to import
        create_campaign,
        make_campaign_folder,
        name_campaign,
        try_sandboxes,
    )
    from jumar.challenges.agents_file import load_agents  # noqa: PLC0415  as above
    from jumar.challenges.challenge_file import load_challenge  # noqa: PLC0415  as above
    from jumar.challenges.judging import check_judge  # noqa: PLC0415  as above
    from jumar.challenges.order import EvolveOptions, order_campaign, save_origin  # noqa: PLC0415  as above

    if challenge is None or agents is None:
        raise BadInput("name a challenge and its agents: jumar evolve challenge.toml --agents agents.toml")
    environ = read_environment()
    read, entries = load_challenge(challenge), load_agents(agents)
    check_judge(read, environ)
    wanted = EvolveOptions(rollouts=chosen["rollouts"], options=_read_values(chosen), usd=chosen["campaign_usd"])
    folder: Path = (chosen["campaign"] or name_campaign()).absolute()
    with make_campaign_folder(folder):
        plan = create_campaign(folder, order_campaign(read, entries, folder, wanted), environ)
        save_origin(folder, challenge, agents)
        anyio.run(try_sandboxes, folder, plan, environ, voice.note)
    return folder


def _count_cores(chosen: dict[str, Any]) -> int:
    return chosen["cores"] or len(os.sched_getaffinity(0))


def _read_values(chosen: dict[str, Any]) -> OptionValues:
    """Return the options that all agents share: how trees are judged."""
    names = ("timeout", "test_timeout", "confirm", "sandbox", "include", "python")
    options = read_options({name: chosen[name] for name in names})
    return OptionValues(**{name: getattr(options, name) for name in OptionValues.__struct_fields__})


def _show(voice: Console, scores: ChallengeScores, folder: Path) -> int:
    """Say who won, and write the page."""
    from jumar.challenges.scores_file import build_ranking  # noqa: PLC0415  it is slow to import
    from jumar.challenges.table import format_ranking  # noqa: PLC0415  as above
    from jumar.report.ranking_page import render_ranking  # noqa: PLC0415  as above

    for line in format_ranking(scores.rank()):
        voice.say(line)
    ranking = build_ranking(scores, folder)
    with explain_disk_faults(f"cannot write {ranking.page}"):
        replace_file(Path(ranking.page), render_ranking(scores).encode())
    voice.say(f"ranking  {ranking.page}")
    voice.result(ranking)
    return 0
