"""Scores stored runs again without an agent: with other held-out tests, more confirmation, or a newer judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import Cause
from jumar.errors import BadInput, Infra
from jumar.runs.scoring import Scored, score_tree
from jumar.runs.setup.marks import Trust
from jumar.runs.setup.result import build_no_event_fault, read_state
from jumar.task.option_values import OptionValues
from jumar.task.resolve import Options, apply_options
from jumar.task.task import Task, load_task


class RescoreRules(NamedTuple):
    """Rules by which runs are scored again."""

    options: OptionValues
    """Confirmation, sandbox and limits; what is not chosen is as the task says."""
    task: Task | None = None
    """Judges all runs, in the place of the task that each run came from."""
    hidden: Path | None = None
    """Folder of held-out tests, in the place of the task's own."""
    python: str | None = None


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one run, as it ended and as it is judged now."""

    run: str
    task: str
    before: str
    """Standing as the run ended: `green 3/3`, `unproved 3/3`, `red 2/3`, or `unscored`."""
    after: str = ""
    """Standing now, with the held-out tests behind it: `red 2/2, 0 of 1 held out`; empty: it could not be judged."""
    changed: bool = False
    """True if it is green now and was not, or the other way round, or another number of visible tests passes."""
    why: str = ""
    """Reason why it could not be judged."""
    score: Scored | None = None


async def rescore_run(folder: Path, rules: RescoreRules, trust: Trust) -> Rescored:
    """Return the scores of the run in *folder*, whose best tree is judged again, if its journal can be read.

    Raises:
        BadInput: if somebody else may have made the run: its journal says which commands judge it.
    """
    try:
        state = read_state(folder)
    except BadInput as fault:
        return Rescored(run=folder.name, task="", before="unscored", why=str(fault))
    trust.run(folder)
    if state.start is None:
        return Rescored(run=folder.name, task="", before="unscored", why=str(build_no_event_fault(folder)))
    before = describe_end(state)
    told = Rescored(run=state.run.run, task=state.run.task, before=before)
    try:
        task = rules.task or load_judging_task(Path(state.run.settings.origin), rules, trust.environ)
        task = replace(task, name=state.run.task)  # whoever names a task for it means that one
        scored = await score_tree(task, folder, python=rules.python, environ=trust.environ)
    except (BadInput, Infra) as fault:
        return replace(told, why=str(fault))
    after = describe_score(scored)
    more = f", {_count_held_out(scored)} of {len(scored.held_out)} held out" if after and scored.held_out else ""
    return replace(told, after=after + more, changed=after not in ("", before), why=scored.void, score=scored)


def describe_score(scored: Scored) -> str:
    """Return a new score as `describe_end` says an old one; empty: nothing is known about the tree.

    A run counts its visible tests alone, so the held-out ones decide the word here and are not counted. A void that
    the tree itself caused, by tampering or by answers for the visible tests alone, is red.
    """
    cause = scored.void.partition(":")[0]
    if cause == Cause.HARNESS:
        return ""
    word = "green" if scored.ok else "unproved" if scored.unproved else "untested" if scored.untested else "red"
    if cause or scored.passed is None:
        return f"red ({cause})"
    return f"{word} {scored.passed - _count_held_out(scored)}/{scored.total - len(scored.held_out)}"


def _count_held_out(scored: Scored) -> int:
    """Return how many held-out tests passed."""
    return len(set(scored.held_out).difference(scored.red)) if scored.passed is not None else 0


def describe_end(state: RunState) -> str:
    """Return the score with which the run in *state* ended: `green 3/3`, `red 2/3`, or `unscored`."""
    if state.best is None or not state.expected:
        return "unscored"
    stop = state.end.stop if state.end else None
    word = str(stop) if stop in (StopReason.GREEN, StopReason.UNPROVED, StopReason.UNTESTED) else "red"
    return f"{word} {state.best.score.passed}/{len(state.expected)}"


def load_judging_task(origin: Path, rules: RescoreRules, environ: Mapping[str, str]) -> Task:
    """Return the task at *origin* as *rules* judge by it.

    Raises:
        BadInput: if it cannot be read, or the rules do not fit it.
    """
    given = {name: getattr(rules.options, name) for name in OptionValues.__struct_fields__}
    options = Options(**{**given, "agent": HOST, "model": HOST, "gate": str(Gate.OFF)})
    task = apply_options(load_task(origin), options, environ)
    return replace(task, hidden=rules.hidden.resolve()) if rules.hidden else task
