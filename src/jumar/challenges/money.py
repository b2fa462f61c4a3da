"""Divides the cap of a challenge: the cost of the judge and the proposer is held back from the agents."""

from __future__ import annotations

from pathlib import Path

from jumar.challenges.order import ChallengeOrigin
from jumar.challenges.scores_file import SCORES, load_scores
from jumar.errors import BadInput


class NothingLeft(BadInput):
    """The cap of a challenge leaves nothing for another campaign."""


def compute_agents_usd(
    origin: ChallengeOrigin, *, judges: bool, spent: float = 0.0, proposed: float = 0.0
) -> float | None:
    """Return the cap on all agents of the next campaign together; None: there is no cap.

    Args:
        origin: Of the challenge, with its cap.
        judges: True if a session of the judge follows the campaign.
        spent: Money for agents and judge so far.
        proposed: Money for variants so far.

    Raises:
        NothingLeft: if nothing is left for them.
    """
    if origin.usd is None:
        return None
    judge = origin.judge.usd if judges else 0.0
    proposer = max(origin.proposer.usd, proposed) if origin.generations and origin.proposer.model else 0.0
    left = origin.usd - spent - judge - proposer
    if left <= 0:
        raise NothingLeft(
            f"the cap of ${origin.usd:g} leaves nothing for the agents: ${spent:.4f} are spent, ${judge:g} are held "
            f"for the judge and ${proposer:g} for the proposer; raise --budget-usd, or lower usd in [judge], [proposer]"
        )
    return left


def add_up_spent(folders: list[Path]) -> float:
    """Return the cost of the campaigns in *folders*, judges included; one without scores counts as 0."""
    known = [load_scores(folder) for folder in folders if (folder / SCORES).is_file()]
    return sum(scores.judged.usd + sum(run.usd for run in scores.runs) for scores in known)
