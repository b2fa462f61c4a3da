"""Scores a whole challenge from the journals of its campaign: tests, scars, and with a judge principles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jumar.campaigns.plan import load_plan
from jumar.challenges.challenge_file import load_challenge
from jumar.challenges.judging import Judge, judge_runs, open_judge
from jumar.challenges.linters import Linters
from jumar.challenges.order import list_names, load_origin, merge_options
from jumar.challenges.ranking.run_score import JudgeStanding
from jumar.challenges.score_runs import ScoringOrder, score_runs
from jumar.challenges.scores_file import ChallengeScores, JudgeReport, save_scores
from jumar.errors import find_cause
from jumar.runs.rescoring import RescoreRules
from jumar.runs.setup.marks import Trust
from jumar.task.option_values import OptionValues


class ScoringChoices(NamedTuple):
    """Choices of the person whose challenge is scored."""

    options: OptionValues
    """Options by which trees are judged; what is not chosen is as when the campaign began."""
    cores: int
    again: bool
    """True: the judge is asked anew where its answers are recorded."""
    say: Callable[[str], None]


async def score_challenge(folder: Path, chosen: ScoringChoices, trust: Trust) -> ChallengeScores:
    """Return the scores of all runs of the campaign in *folder*, and keep them there. No agent runs.

    Raises:
        BadInput: if it is the campaign of no challenge, the challenge cannot be read, or its judge cannot be asked.
        Infra: if a linter writes no SARIF: the runs are stored, and can be scored again.
    """
    try:
        scores = await _score(folder, chosen, trust)
    except BaseExceptionGroup as group:  # a person reads one sentence, not the groups that it came through
        raise find_cause(group) from group
    save_scores(folder, scores)
    return scores


async def _score(folder: Path, chosen: ScoringChoices, trust: Trust) -> ChallengeScores:
    plan = load_plan(folder, trust)
    origin = load_origin(plan, folder)
    challenge = load_challenge(Path(origin.challenge))
    options = merge_options(_keep_verdict(plan.options), chosen.options)
    rules = RescoreRules(options, python=options.python)
    linters = Linters(challenge.tables.linter, trust.environ, options.python, folder)
    most = challenge.tables.points.scars
    order = ScoringOrder(plan, folder, rules, challenge.scars, linters, most, trust, chosen.cores, chosen.say)
    runs = await score_runs(order)
    standing, report = JudgeStanding(gate=challenge.tables.judge.gate, absent=True), JudgeReport()
    if challenge.tables.principle and origin.judge.model:
        model = open_judge(origin, challenge.tables.judge.tier, folder, trust, again=chosen.again)
        runs, standing, report = await judge_runs(challenge, folder, runs, Judge(model, origin.judge.usd))
    return ChallengeScores(
        challenge=challenge.name,
        agents=list_names(plan),
        points=challenge.tables.points,
        judge=standing,
        judged=report,
        runs=runs,
    )


def _keep_verdict(options: OptionValues) -> OptionValues:
    """Return the *options* of the campaign that decide how trees are judged."""
    return OptionValues(
        timeout_seconds=options.timeout_seconds,
        test_timeout_seconds=options.test_timeout_seconds,
        confirm=options.confirm,
        sandbox=options.sandbox,
        include=options.include,
        python=options.python,
    )
