"""Judges the runs of a challenge by its principles; the judge is recorded, and replayed for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from jumar.challenges.challenge_file import Challenge
from jumar.challenges.changed_files import read_changed_files
from jumar.challenges.choose_model import choose_model
from jumar.challenges.order import ChallengeOrigin
from jumar.challenges.ranking.run_score import JudgeStanding, RunScore
from jumar.challenges.scores_file import JudgeReport
from jumar.languages.syntax import find_language
from jumar.models.replay import parse_cassette, read_cassette
from jumar.ports import Model
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import read_state
from jumar.scorers.axes import is_worth_judging
from jumar.scorers.principles.mark import PrincipleMark
from jumar.scorers.principles.session import Case, JudgeRules, JudgeSession

RECORDING = "judge.jsonl"
"""Name of the judge's recording in the campaign's folder."""

CODE_CHARACTERS = 150_000
"""Characters of the changed files of one run that are judged. More is void, not cut: what is cut would go unseen."""


class Judge(NamedTuple):
    """A model that judges, and the cap on the cost of one session of it."""

    model: Model
    usd: float


async def judge_runs(
    challenge: Challenge, folder: Path, runs: Sequence[RunScore], judge: Judge
) -> tuple[tuple[RunScore, ...], JudgeStanding, JudgeReport]:
    """Return *runs* of the campaign in *folder* with the marks of *judge*, its standing, and its cost.

    Runs of one tree are judged once, and those that pass too few tests, or changed no source file, are not.
    """
    table = challenge.tables.judge
    cases = {run.run: case for run in runs if (case := _build_case(folder, run, table.gate)) is not None}
    large = {name: case for name, case in cases.items() if _count_characters(case) > CODE_CHARACTERS}
    cases = {name: case for name, case in cases.items() if name not in large}
    rules = JudgeRules(
        challenge.tables.principle, table.tier, table.repeat, table.calibration, table.agreement, judge.usd
    )
    done = await JudgeSession(judge.model, rules).judge(tuple({case.key: case for case in cases.values()}.values()))
    marks = {name: done.marks[case.key] for name, case in cases.items()}
    marks |= dict.fromkeys(large, _build_void_marks(challenge))
    marked = tuple(replace(run, marks=marks.get(run.run, ())) for run in runs)
    report = JudgeReport(
        model=judge.model.name,
        calls=done.calls,
        usd=done.usd,
        prompt_tokens=done.prompt_tokens,
        cached_tokens=done.cached_tokens,
        calibration=done.calibration,
        agreement=done.agreement,
    )
    return marked, JudgeStanding(gate=table.gate, withheld=done.withheld), report


def open_judge(origin: ChallengeOrigin, tier: str, folder: Path, trust: Trust, *, again: bool) -> Model:
    """Return the model that judges the campaign in *folder*: its recording if there is one, else it is recorded.

    With *again* a recording that is there is replaced.

    Raises:
        BadInput: if the model cannot be asked, or the recording cannot be read.
    """
    path = folder / RECORDING
    if path.is_file() and not again:
        return parse_cassette(read_cassette(path), str(path)).get_model(tier)
    return choose_model(origin.judge, tier, trust.environ).record(path, tier)


def _count_characters(case: Case) -> int:
    return sum(map(len, case.files.values()))


def _build_void_marks(challenge: Challenge) -> tuple[PrincipleMark, ...]:
    why = f"the changed files have more than {CODE_CHARACTERS:,} characters, which is more than is judged"
    return tuple(PrincipleMark(principle.name, None, why=why) for principle in challenge.tables.principle)


def _build_case(folder: Path, run: RunScore, gate: float) -> Case | None:
    """Return the case of *run*: the source files that it changed, without its name, task or messages."""
    if not run.run or not run.counts or not is_worth_judging(run.passed, run.total, gate) or run.share <= gate:
        return None
    place = folder / run.run
    state = read_state(place)
    changed = read_changed_files(place, state).after
    files = {path: data.decode("utf-8", "replace") for path, data in changed.items() if find_language(path)}
    return Case(f"{run.task} {state.run.tree} {state.tree}", dict(sorted(files.items()))) if files else None
