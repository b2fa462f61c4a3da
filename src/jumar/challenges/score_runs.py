"""Scores the runs of a challenge: its tests by the trusted verifier on a clean tree, and the scars that it added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
from msgspec.structs import replace

from jumar.campaigns.plan import CampaignPlan, Rollout, get_run_folder, list_rollouts
from jumar.campaigns.schedule import OtherEnd, is_out_of_budget
from jumar.campaigns.standing import Progress, Standing, read_standing
from jumar.challenges.changed_files import read_changed_files
from jumar.challenges.linters import Linters
from jumar.challenges.ranking.run_score import RunScore
from jumar.core.state import events as ev
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.verdict import Cause, Void
from jumar.journal.writer import read_journal
from jumar.runs.rescoring import RescoreRules, rescore_run
from jumar.runs.scoring import Scored
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import Result, replay_state
from jumar.scorers.axes import Label
from jumar.scorers.scars.search import Finding, ScarSearch, subtract_findings
from jumar.verify.code_warnings import find_written_answer

TOO_LARGE, TOO_HARD = "too-large", "too-hard"
"""Rule that takes all points: else whoever pads a file hides its scars."""


class ScoringOrder(NamedTuple):
    """Campaign whose runs are scored, and by what."""

    plan: CampaignPlan
    folder: Path
    rules: RescoreRules
    scars: ScarSearch
    linters: Linters
    most: float
    """Points of the scars axis."""
    trust: Trust
    cores: int
    say: Callable[[str], None]


class StoredRun(NamedTuple):
    """Rollout that has ended, by its journal."""

    rollout: Rollout
    folder: Path
    result: Result
    state: RunState
    cheating: str
    """Reason for which a verdict of the run on one of its trees says that it cheated; empty: none does."""


async def score_runs(order: ScoringOrder) -> tuple[RunScore, ...]:
    """Return the scores of all rollouts of a campaign, in order. A tree that two runs share is judged once."""
    rollouts = list_rollouts(order.plan)
    ended: list[StoredRun] = []
    scores: dict[str, RunScore] = {}
    for rollout in rollouts:
        folder = get_run_folder(order.folder, order.plan, rollout)
        standing = read_standing(folder)
        if standing.progress is Progress.ENDED and standing.result is not None:
            entries = read_journal(folder)
            state = replay_state(entries)
            ended.append(StoredRun(rollout, folder, standing.result, state, find_cheating(entries)))
        else:
            scores[rollout.name] = _score_absent(rollout, standing, order.folder, folder)
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in ended:
        groups.setdefault((run.rollout.task.path, run.state.tree), []).append(run)
    limiter = anyio.CapacityLimiter(order.cores)

    async def judge(group: Sequence[StoredRun]) -> None:
        async with limiter:
            scored, why = await _judge(group[0], order)
            findings = await _find_scars(group[0], order)
        for run in group:
            scores[run.rollout.name] = replace(_score(run, scored, why, order), findings=findings)
            told = scores[run.rollout.name]
            counted = f"{told.passed} of {told.total}" if told.passed is not None else told.label
            order.say(f"scored  {run.rollout.name}  {counted}")

    async with anyio.create_task_group() as tasks:
        for group in groups.values():
            tasks.start_soon(judge, group)
    return tuple(scores[rollout.name] for rollout in rollouts)


def find_cheating(entries: Iterable[ev.Entry]) -> str:
    """Return why a verdict says that a tree cheated, even one that was not kept; empty: none does.

    It was tampered with; or its visible tests passed and the held-out ones did not, and it has answers of the visible
    ones written down. An answer that is merely wrong is no cheating.
    """
    voids = ((each.event.void, each.event.warnings) for each in entries if isinstance(each.event, ev.Tests))
    return next((why for void, warnings in voids if void and (why := _name_cheating(void, warnings))), "")


def _name_cheating(void: Void, warnings: Iterable[str]) -> str:
    if void.cause is Cause.TAMPER:
        return void.reason
    return _name_written_answer(warnings) if void.cause is Cause.HELD_OUT else ""


def _name_written_answer(warnings: Iterable[str]) -> str:
    """Return why code that only the visible tests pass cheated, by its *warnings*; empty: it is merely wrong."""
    written = find_written_answer(warnings)
    if not written:
        return ""
    return f"the held-out tests did not pass, and answers of the visible ones are written down: {written}"


async def _find_scars(run: StoredRun, order: ScoringOrder) -> tuple[Finding, ...]:
    """Return the scars that *run* added, by the rules and by the linters."""
    changed = read_changed_files(run.folder, run.state)
    after, before = order.scars.search(changed.after), order.scars.search(changed.before)
    found = subtract_findings(after.findings, before.findings)
    hard = [path for path in after.left_out if path not in before.left_out]
    found += tuple(Finding(path, 1, TOO_HARD, order.most, "too deep or too broken to be searched") for path in hard)
    found += tuple(Finding(path, 1, TOO_LARGE, order.most, "too large to be searched") for path in changed.large)
    return (*found, *await order.linters.search(run.folder, (run.state.run.tree, run.state.tree), changed))


async def _judge(run: StoredRun, order: ScoringOrder) -> tuple[Scored | None, str]:
    """Return the verdict on the tree of *run*, or why there is none. A fault of the harness is tried twice."""
    why = ""
    for _ in range(2):
        told = await rescore_run(run.folder, order.rules, order.trust)
        why = told.why
        if told.score is None or not told.score.void.startswith(Cause.HARNESS):
            return told.score, why
    return None, why


def _score_absent(rollout: Rollout, standing: Standing, campaign: Path, folder: Path) -> RunScore:
    """Return the score of a rollout without an end: a fault of the machine, or it was not run."""
    result = standing.result
    blank = RunScore(
        agent=rollout.task.agent,
        task=rollout.task.own_name,
        rollout=rollout.number,
        run=str(folder.relative_to(campaign)) if result is not None else "",
        stop=str(result.stop) if result is not None else str(OtherEnd.NOT_BEGUN),
        passed=None,
        total=result.total if result is not None else 0,
    )
    if result is not None:
        blank = replace(blank, usd=result.usd, seconds=result.seconds, tokens=result.tokens, why=result.why)
    return blank if standing.progress is Progress.FAULT else replace(blank, label=Label.NOT_RUN)


def _score(run: StoredRun, scored: Scored | None, why: str, order: ScoringOrder) -> RunScore:
    result = run.result
    label, reason = find_label(run, scored, why)
    evaluated = scored is not None and label in ("", Label.TIMED_OUT)
    return RunScore(
        agent=run.rollout.task.agent,
        task=run.rollout.task.own_name,
        rollout=run.rollout.number,
        run=str(run.folder.relative_to(order.folder)),
        stop=str(result.stop),
        passed=scored.passed if scored is not None and evaluated else None,
        total=scored.total if scored is not None else result.total,
        red=scored.red if scored is not None and evaluated else (),
        suite=compute_suite(run.state),
        label=label,
        why=reason,
        usd=result.usd,
        seconds=result.seconds,
        tokens=result.tokens,
        # Who cheated, or did what is forbidden, did so before the money ended.
        out_of_budget=is_out_of_budget(result) and label not in (Label.CHEATED, Label.GUARDRAIL),
    )


def find_label(run: StoredRun, scored: Scored | None, why: str) -> tuple[str, str]:
    """Return the label of *run*, whose best tree was judged as *scored*, and the reason for it.

    Who cheated once is called that, also where the ratchet shipped an honest tree in the end.
    """
    result = run.result
    if refused := run.cheating or _find_cheating_of_best(scored):
        return Label.CHEATED, refused
    if result.stop is StopReason.GUARDRAIL:
        return Label.GUARDRAIL, result.why
    if scored is None or scored.untested:
        return Label.NEVER_EVALUATED, scored.untested if scored else why
    if scored.total and not scored.passed and scored.errors == scored.total:
        return (
            Label.NEVER_EVALUATED,
            "none of its tests came to an end: it does not build, cannot be imported, or runs for ever",
        )
    if result.stop is StopReason.BUDGET and "seconds" in result.raises and not scored.ok:
        return Label.TIMED_OUT, result.why
    return "", scored.void


def _find_cheating_of_best(scored: Scored | None) -> str:
    """Return why the best tree, judged anew as *scored*, cheated; empty: it did not.

    A red one has warnings only where its visible tests passed and the held-out ones did not.
    """
    if scored is None:
        return ""
    if scored.void.startswith(Cause.TAMPER):
        return scored.void
    return _name_written_answer(scored.warnings) if scored.red or scored.void else ""


def compute_suite(state: RunState) -> str:
    """Return a text that differs between the expected tests of different tasks or languages."""
    return sha256("\n".join(sorted(state.expected)).encode()).hexdigest()[:16]
