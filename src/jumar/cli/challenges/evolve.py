"""`jumar evolve`: several agents on one challenge, ranked by tests, principles and scars."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jumar.cli.campaign_session import read_deadline
from jumar.cli.challenges.session import ChallengeSession
from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options, add_verdict_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import TRUST
from jumar.core.state.stop import EXIT_CODES, StopReason
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

if TYPE_CHECKING:
    from jumar.challenges.order import ChallengeOrigin
    from jumar.challenges.scores_file import ChallengeScores

PLANNED = frozenset({"challenge", "agents", "rollouts", "campaign", "campaign_usd", "generations"})
"""Parameters that a campaign is planned with."""


@click.command(epilog="Example: jumar evolve challenge.toml --agents agents.toml --rollouts 3 --budget-usd 10")
@click.argument("challenge", required=False, type=click.Path(path_type=Path))
@click.option("--agents", type=click.Path(path_type=Path), help="TOML file with an [[agent]] table for each agent.")
@click.option("--rollouts", type=click.IntRange(1, 9999), help="Runs of each agent on each task (default: the file's).")
@click.option("--campaign", type=click.Path(path_type=Path), help="Folder of the campaign; default: a new one.")
@click.option("--resume", "resumed", metavar="CAMPAIGN", help="Go on with it: its folder, its name, or last.")
@click.option("--rescore", metavar="CAMPAIGN", help="Score and rank its stored runs again; no agent runs.")
@click.option(
    "--generations",
    type=click.IntRange(0, 100),
    default=0,
    help="Vary the winner's prompts; keep what is better.",
)
@click.option("--judge-again", is_flag=True, help="Ask the judge anew, where its answers are recorded.")
@click.option("--budget-usd", "campaign_usd", type=float, help="Cap on the money of agents, judge and proposer.")
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
    from jumar.campaigns.create import find_campaign, name_campaign  # noqa: PLC0415  it is slow to import
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  as above
    from jumar.challenges.scores_file import SCORES  # noqa: PLC0415  as above

    voice, environ = Console(json=chosen["as_json"], quiet=chosen["quiet"]), read_environment()
    deadline = read_deadline(chosen["deadline"], time.time()) if chosen["deadline"] else None
    stored, rescoring = resumed or chosen["rescore"], chosen["rescore"] is not None
    trust = Trust(environ, chosen["trust"] or stored is None)  # a new campaign is made by this process
    session = ChallengeSession(voice, trust, {**chosen, "deadline": deadline})
    if stored is None:
        folder = (chosen["campaign"] or name_campaign()).absolute()
        session.begin(folder, _read_origin(session, challenge, agents, chosen))
    else:
        _refuse_changes(click.get_current_context(), both=bool(resumed and rescoring))
        folder = find_campaign(stored).absolute()
        session.check_linters(folder)
    load_plan(folder, trust)
    voice.say(f"campaign {folder}")
    if not rescoring and (stopped := session.run(folder)):
        return _say_stopped(voice, folder, stopped)
    # Without scores a session of the judge did not come to its end, and its recording is a part of one.
    scores = session.score(folder, again=chosen["judge_again"] or not (folder / SCORES).is_file())
    if scores is None:
        return voice.report_interrupt()
    if not rescoring and not _run_generations(session, folder, scores):
        return _say_stopped(voice, folder, "it goes on with its generations")
    return _show(voice, scores, folder)


def _refuse_changes(context: click.Context, *, both: bool) -> None:
    """Refuse options that would change the stored challenge.

    Raises:
        BadInput: naming an argument that was typed and has no say there.
    """
    if both:
        raise BadInput("--resume goes on with a campaign and --rescore scores one again; leave one out")
    for parameter in context.command.params:
        typed = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        if typed and parameter.name in PLANNED:
            what = parameter.opts[0] if isinstance(parameter, click.Option) else "CHALLENGE"
            raise BadInput(f"a stored campaign stays what it was planned to be, so it takes no {what}; leave it out")


def _say_stopped(voice: Console, folder: Path, why: str) -> int:
    voice.say(f"stopped: {why}; go on with jumar evolve --resume {folder}")
    voice.print_result({"campaign": str(folder), "stopped": why})
    return EXIT_CODES[StopReason.INTERRUPTED]


def _run_generations(session: ChallengeSession, folder: Path, scores: ChallengeScores) -> bool:
    """Run the generations of the campaign in *folder*; return False if something stopped them."""
    from jumar.campaigns.plan import load_plan  # noqa: PLC0415  it is slow to import
    from jumar.challenges.challenge_file import load_challenge  # noqa: PLC0415  as above
    from jumar.challenges.order import load_origin  # noqa: PLC0415  as above
    from jumar.cli.challenges.generations import run_generations  # noqa: PLC0415  as above

    origin = load_origin(load_plan(folder, session.trust), folder)
    if origin.generations:
        try:
            run_generations(session, folder, load_challenge(Path(origin.challenge)), origin, scores)
        except KeyboardInterrupt:
            return False
    return True


def _read_origin(
    session: ChallengeSession, challenge: Path | None, agents: Path | None, chosen: dict[str, Any]
) -> ChallengeOrigin:
    """Return the origin of a new campaign.

    Raises:
        BadInput: if a file cannot be read, or the runs are too few for the generations that are asked for.
    """
    from jumar.challenges.agents_file import load_agents  # noqa: PLC0415  it is slow to import
    from jumar.challenges.challenge_file import load_challenge  # noqa: PLC0415  as above
    from jumar.challenges.order import ChallengeOrigin  # noqa: PLC0415  as above
    from jumar.cli.challenges.generations import build_rules  # noqa: PLC0415  as above

    if challenge is None or agents is None:
        lacking = "a challenge" if challenge is None else f"the agents for {challenge} by --agents"
        raise BadInput(f"name {lacking}: jumar evolve challenge.toml --agents agents.toml")
    read = load_agents(agents)
    origin = ChallengeOrigin(
        challenge=str(challenge.absolute()),
        agents=read.agents,
        judge=read.judge,
        proposer=read.proposer,
        generations=chosen["generations"],
        rollouts=chosen["rollouts"],
        usd=chosen["campaign_usd"],
        options=session.read_values(),
    )
    if origin.generations:
        build_rules(load_challenge(challenge), origin)
    return origin


def _show(voice: Console, scores: ChallengeScores, folder: Path) -> int:
    """Print the winner, and write the page."""
    from jumar.challenges.generations.lineage import load_lineage  # noqa: PLC0415  it is slow to import
    from jumar.challenges.ranking.table import format_ranking  # noqa: PLC0415  as above
    from jumar.challenges.scores_file import build_ranking  # noqa: PLC0415  as above
    from jumar.report.ranking_page import render_ranking  # noqa: PLC0415  as above

    for line in format_ranking(scores.rank()):
        voice.say(line)
    lineage = load_lineage(folder)
    ranking = build_ranking(scores, folder, lineage)
    with explain_disk_faults(f"cannot write {ranking.page}"):
        replace_file(Path(ranking.page), render_ranking(scores, lineage).encode())
    voice.say(f"ranking  {ranking.page}")
    voice.print_result(ranking)
    return 0
