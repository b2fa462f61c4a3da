"""Runs the generations of a challenge: the best agent's prompts are varied, and a fresh win keeps the variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.challenges.choose_model import choose_model
from jumar.challenges.generations.lineage import (
    GENERATIONS,
    GENOME,
    LINEAGE,
    Proposer,
    RememberedVariants,
    append_trial,
)
from jumar.challenges.generations.proposals import ProposedVariants
from jumar.challenges.generations.search import GenerationRules, Trial, check_pairs, search
from jumar.challenges.generations.variants import MutatedVariants
from jumar.challenges.money import NothingLeft, add_up_spent
from jumar.challenges.ranking.rank_agents import is_last
from jumar.cli.challenges.session import ChallengeSession
from jumar.core.run.strategy import FRONTIER
from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

if TYPE_CHECKING:
    from jumar.challenges.agents_file import ChallengeAgent, ModelTable
    from jumar.challenges.challenge_file import Challenge, GenerationTable
    from jumar.challenges.order import ChallengeOrigin
    from jumar.challenges.ranking.rank_agents import Lost
    from jumar.challenges.scores_file import ChallengeScores

PROPOSALS = "proposals.jsonl"
"""Recording of the model that proposes variants, in the campaign's folder."""


def build_rules(challenge: Challenge, origin: ChallengeOrigin) -> GenerationRules:
    """Return the rules of the search in *challenge*.

    Raises:
        BadInput: if it has too few runs to show anything, or no agent reads prompts.
    """
    if not any(agent.reads_prompts for agent in origin.agents):
        raise BadInput(
            "--generations varies prompts, and no agent reads any; leave it out, or add an agent with a model"
        )
    pairs = len(challenge.tasks) * (origin.rollouts or challenge.tables.rollouts)
    rules = GenerationRules(generations=origin.generations, pairs=pairs)
    check_pairs(rules)
    return rules


def run_generations(
    session: ChallengeSession, folder: Path, challenge: Challenge, origin: ChallengeOrigin, scores: ChallengeScores
) -> None:
    """Search for a better genome than that of the winner of *scores*.

    The campaigns lie in `generations` below *folder*; the lineage and the genome that is left lie in *folder*.

    Raises:
        KeyboardInterrupt: if a signal or the deadline ended it.
    """
    first = choose_first(origin.agents, scores)
    if first is None:
        session.voice.say("no generations: each agent that reads prompts is ranked last with a label")
        return
    (places := folder / GENERATIONS).mkdir(exist_ok=True)
    (folder / LINEAGE).unlink(missing_ok=True)  # the search is told again from its beginning
    latest = scores

    def read_lost(name: str) -> Sequence[Lost]:
        return next((agent.lost for agent in latest.rank() if agent.agent == name), ())

    proposer = _choose_proposer(session, folder, challenge.tables.generations, origin.proposer, read_lost)

    def measure(name: str, agents: Sequence[ChallengeAgent]) -> ChallengeScores | None:
        nonlocal latest
        spent = add_up_spent([folder, *places.glob("g*")])
        try:
            latest = session.measure(places / name, origin, agents, (spent, proposer.spent))
        except NothingLeft as fault:
            session.voice.say(f"the search ends here: {fault}")
            return None
        return latest

    def tell(trial: Trial) -> None:
        append_trial(folder, trial)
        session.voice.say(format_trial(trial))

    propose = RememberedVariants(proposer, places).propose
    left, _ = search(first, build_rules(challenge, origin), propose, measure, tell)
    _keep_genome(session, folder, left)


def _keep_genome(session: ChallengeSession, folder: Path, left: ChallengeAgent) -> None:
    with explain_disk_faults(f"cannot write {folder / GENOME}"):
        replace_file(folder / GENOME, (left.genome + "\n").encode())
    warmth = "" if left.entry.temperature is None else f", temperature {left.entry.temperature:g}"
    session.voice.say(f"genome   {folder / GENOME}  ({left.name}{warmth})")


def choose_first(agents: Sequence[ChallengeAgent], scores: ChallengeScores) -> ChallengeAgent | None:
    """Return the best agent of *scores* that reads prompts and has no label of the last; None: no such agent."""
    by_name = {agent.name: agent for agent in agents}
    honest = (ranked for ranked in scores.rank() if not is_last(ranked))
    return next((by_name[ranked.agent] for ranked in honest if by_name[ranked.agent].reads_prompts), None)


def format_trial(trial: Trial) -> str:
    """Return the result of a variant, in one line."""
    screened = f"{trial.screened:.1f} against {trial.screened_parent:.1f} in the screening"
    if trial.difference is None:
        return f"not kept  {trial.variant}: {trial.how}  ({screened})"
    fresh = f"{trial.difference:+.1f} on fresh runs, p = {trial.p:.3g}, at most {trial.limit:.3g}"
    return f"{'kept    ' if trial.kept else 'not kept'}  {trial.variant}: {trial.how}  ({screened}; {fresh})"


def _choose_proposer(
    session: ChallengeSession,
    folder: Path,
    table: GenerationTable,
    order: ModelTable,
    read_lost: Callable[[str], Sequence[Lost]],
) -> Proposer:
    if not order.model:
        return MutatedVariants(table.lines, table.variants)
    model = choose_model(order, FRONTIER, session.trust.environ).record(folder / PROPOSALS, FRONTIER)
    return ProposedVariants(model, table.variants, order.usd, read_lost, session.voice.note)
