"""Finds the sides of a comparison: two agents of a challenge, of two challenges, or two ended campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jumar.campaigns.create import find_campaign
from jumar.campaigns.plan import PLAN, Rollout, get_run_folder, list_rollouts, load_plan
from jumar.campaigns.schedule import is_out_of_budget
from jumar.campaigns.standing import Progress, read_standing
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore, select_runs
from jumar.challenges.score_runs import compute_suite
from jumar.challenges.scores_file import SCORES, load_scores
from jumar.core.state.stop import StopReason
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import read_state
from jumar.scorers.axes import AxisPoints, Label


class Contestant(NamedTuple):
    """One side of a comparison."""

    name: str
    runs: tuple[RunScore, ...]
    points: AxisPoints
    judge: JudgeStanding


def find_contestant(word: str, campaign: str, trust: Trust) -> Contestant:
    """Return the side that *word* names: an agent of *campaign*, `CAMPAIGN:AGENT`, or a campaign of one agent.

    Raises:
        BadInput: if it names none, naming the agents that there are.
    """
    place, colon, agent = word.rpartition(":")
    if not colon and _is_campaign(find_campaign(word)):
        return _read_campaign(find_campaign(word), word, trust)
    folder = find_campaign(place or campaign)
    scores = load_scores(folder)
    if agent not in scores.agents:
        raise BadInput(f"{folder} has no agent {agent!r}; its agents are {', '.join(scores.agents)}")
    return Contestant(word, select_runs(scores.runs, agent), scores.points, scores.judge)


def _is_campaign(folder: Path) -> bool:
    return (folder / PLAN).is_file()


def _read_campaign(folder: Path, name: str, trust: Trust) -> Contestant:
    """Return the campaign in *folder* as one side: of a challenge its only agent, else the tests of its runs."""
    if (folder / SCORES).is_file():
        scores = load_scores(folder)
        if len(scores.agents) > 1:
            raise BadInput(f"{folder} has {len(scores.agents)} agents; name one: {name}:{scores.agents[0]}")
        return Contestant(name, scores.runs, scores.points, scores.judge)
    plan = load_plan(folder, trust)
    runs = [_read_end(get_run_folder(folder, plan, rollout), rollout, name) for rollout in list_rollouts(plan)]
    # Whole percents of tests: nobody looked for scars, or judged.
    points = AxisPoints(tests=100, principles=0, scars=0)
    return Contestant(name, tuple(run for run in runs if run is not None), points, JudgeStanding(absent=True))


def _read_end(folder: Path, rollout: Rollout, name: str) -> RunScore | None:
    """Return the end of the run in *folder*, by its journal; None: it did not end."""
    standing = read_standing(folder)
    result = standing.result
    if standing.progress is not Progress.ENDED or result is None:
        return None
    state = read_state(folder)
    green = state.best.green_ids if state.best is not None else frozenset()
    passed = None if result.stop is StopReason.UNTESTED else result.passed
    return RunScore(
        agent=name,
        task=rollout.task.own_name,
        rollout=rollout.number,
        run=folder.name,
        stop=str(result.stop),
        passed=passed,
        total=result.total,
        red=tuple(test for test in state.expected if test not in green),
        suite=compute_suite(state),
        label="" if passed is not None else Label.NEVER_EVALUATED,
        usd=result.usd,
        out_of_budget=is_out_of_budget(result),
    )
