"""Keeps the scores of a challenge beside its campaign, and builds the ranking that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from jumar.challenges.ranking.rank_agents import RankedAgent, rank_agents
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.errors import BadInput
from jumar.scorers.axes import AxisPoints, Label
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import replace_file

SCORES, PAGE = "scores.json", "ranking.html"
"""Names in the campaign's folder."""


class JudgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Account of one session of the judge."""

    model: str = ""
    calls: int = 0
    usd: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the provider served from its cache."""
    calibration: float | None = None
    """Share of the calibration examples that were marked as their author did; None: none was scored."""
    agreement: float | None = None
    """Share of its marks in which the judge agreed with itself; None: nothing was judged twice."""


class ChallengeScores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of all runs of a challenge, and the standing of its judge."""

    version: int = 1
    challenge: str
    agents: tuple[str, ...]
    points: AxisPoints
    judge: JudgeStanding
    judged: JudgeReport = JudgeReport()
    runs: tuple[RunScore, ...]

    def rank(self) -> tuple[RankedAgent, ...]:
        """Return the agents, the best first."""
        return rank_agents(self.agents, self.runs, self.points, self.judge)


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The object of `jumar evolve --json`."""

    challenge: str
    campaign: str
    ranking: tuple[dict[str, object], ...]
    judge: JudgeStanding
    judged: JudgeReport
    usd: float
    """Of all agents and the judge."""
    page: str
    lineage: tuple[object, ...] = ()
    """Trials of its generations."""


def build_ranking(scores: ChallengeScores, folder: Path, lineage: Sequence[object] = ()) -> Ranking:
    """Return the ranking of *scores*, whose campaign lies in *folder*, with the trials of its generations."""
    ranked = scores.rank()
    return Ranking(
        challenge=scores.challenge,
        campaign=str(folder),
        ranking=tuple(_describe(agent) for agent in ranked),
        judge=scores.judge,
        judged=scores.judged,
        usd=round(sum(agent.usd for agent in ranked) + scores.judged.usd, 6),
        page=str(folder / PAGE),
        lineage=tuple(lineage),
    )


def save_scores(folder: Path, scores: ChallengeScores) -> None:
    """Write *scores* into the campaign's *folder*.

    Raises:
        BadInput: if it cannot be written.
    """
    with explain_disk_faults(f"cannot write to {folder}"):
        replace_file(folder / SCORES, msgspec.json.format(msgspec.json.encode(scores)) + b"\n")


def load_scores(folder: Path) -> ChallengeScores:
    """Return the scores in the campaign's *folder*.

    Raises:
        BadInput: if there are none that this jumar can read.
    """
    try:
        return msgspec.json.decode((folder / SCORES).read_bytes(), type=ChallengeScores)
    except OSError:
        raise BadInput(
            f"{folder} has no scores of a challenge; `jumar evolve CHALLENGE --agents FILE` makes them"
        ) from None
    except msgspec.MsgspecError as error:
        raise BadInput(f"{folder / SCORES} cannot be read by this jumar: {error}") from None


def _describe(agent: RankedAgent) -> dict[str, object]:
    """Return *agent* with the points of each axis beside its composite; None: the axis is absent or withheld."""
    told: dict[str, object] = msgspec.to_builtins(agent)
    axes = {name: score.points for name, score in agent.axes.items() if score.label != Label.WITHHELD}
    return {**told, **{axis: axes.get(axis) for axis in ("tests", "principles", "scars")}}
