"""Reads the facts that a report shows of one run from its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from jumar.campaigns.plan import Rollout
from jumar.campaigns.schedule import is_out_of_budget
from jumar.core.failure_text import find_message, split_output
from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Trigger
from jumar.core.state.verdict import Outcome
from jumar.journal.line_format import JournalEnd
from jumar.report.fingerprints import compute_fingerprint
from jumar.runs.archive.listing import UNFINISHED
from jumar.runs.setup.believed import find_other_verdict, read_unless_changed
from jumar.runs.setup.result import Result, build_result, read_head

NOT_COUNTED = frozenset({StopReason.INFRA, StopReason.INTERRUPTED, UNFINISHED})
"""Ends that say nothing about the agent."""

STANDS_FOR_A_MODEL = ("script", "replay")
"""Kinds of model that are a file: rollouts have one each, and it is one configuration."""

MESSAGE_CHARACTERS = 2000
"""Characters shown of why a test failed."""


class Verification(msgspec.Struct, frozen=True):
    """One verification of a run, as a point of its curve."""

    passed: int | None
    """Number of passed tests; None if it was void."""
    best: int
    """Tests that the best tree passed afterwards."""
    total: int
    trigger: str
    cached: bool = False


class FailingTest(msgspec.Struct, frozen=True):
    """A test that the best tree does not pass."""

    id: str
    outcome: str
    message: str
    fingerprint: str
    before: str
    """Its outcome on the untouched tree; empty: not known."""

    @property
    def is_new(self) -> bool:
        """Return whether the test passed before the run."""
        return self.before == Outcome.PASSED


class Configuration(msgspec.Struct, frozen=True, order=True):
    """Everything that rollouts must share for their pass rates to be one figure."""

    agent: str
    model: str
    test_policy: str
    gate: str
    ratchet: str
    contestant: str = ""
    """Name of the agent in its challenge, which may differ from another in its prompts alone; empty: it has none."""

    @property
    def label(self) -> str:
        """Describe the configuration in one line."""
        said = f"{self.agent}, {self.model}, {self.test_policy}, gate {self.gate}, ratchet {self.ratchet}"
        return f"{self.contestant}: {said}" if self.contestant else said


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one run that a report shows."""

    rollout: str
    """Its name in its campaign; of a run of its own the name of its directory."""
    task: str
    base: str
    """Tree that it began with: runs of one task share it."""
    folder: str
    stop: str
    """Reason that it stopped, or `unfinished`."""
    why: str
    counted: bool
    """True if its end says something about the agent."""
    result: Result
    configuration: Configuration
    started: float
    """Time in seconds since 1970; so is the next."""
    ended: float
    prompt_tokens: int
    """Prompt tokens that a provider counted; so are the next."""
    cached_tokens: int
    cached_verdicts: int
    """Verdicts that needed no test run."""
    curve: tuple[Verification, ...]
    failing: tuple[FailingTest, ...]
    guardrails: tuple[str, ...]
    refused_actions: int
    identity: str
    """Hash of its first and its last line: copies of a run share it."""
    other_verdict: str = ""
    """Later verdict that says otherwise than the run, in words; empty: none does."""

    @property
    def is_green(self) -> bool:
        """Return whether the run ended green."""
        return self.stop == StopReason.GREEN


def read_run(folder: Path, names: Mapping[str, Rollout]) -> RunReport | None:
    """Return the facts of the run in *folder*; None: it was killed before its first event.

    *names* has the rollout of each run directory of a campaign, by the directory's name.

    Raises:
        BadInput: if its journal is damaged, or tells what cannot have happened.
    """
    entries, state = read_unless_changed(folder)
    if state.start is None:
        return None
    result = build_result(state, folder, read_head(folder) or JournalEnd())
    ended = state.phase is Phase.ENDED
    stop = str(state.end.stop) if ended and state.end else UNFINISHED
    calls = [e.event for e in entries if isinstance(e.event, ev.ModelCall) and not e.event.assumed]
    planned = names.get(folder.name)
    return RunReport(
        rollout=planned.name if planned else folder.name,
        task=planned.task.own_name if planned else state.run.task,
        base=state.run.tree,
        folder=str(folder),
        stop=stop,
        why=result.why if stop != UNFINISHED else "",
        counted=stop not in NOT_COUNTED and not is_out_of_budget(result),
        result=result,
        configuration=_describe(state.run, planned.task.agent if planned else ""),
        started=entries[0].ts,
        ended=entries[-1].ts,
        prompt_tokens=sum(call.input_tokens for call in calls),
        cached_tokens=sum(call.cached_tokens for call in calls),
        cached_verdicts=sum(isinstance(e.event, ev.Tests) and e.event.cached for e in entries),
        curve=_draw_curve(entries),
        failing=_find_failing(entries, state),
        guardrails=tuple(f"{e.event.rule}: {e.event.what}" for e in entries if isinstance(e.event, ev.Guardrail)),
        refused_actions=sum(isinstance(e.event, ev.ActionTaken) and not e.event.admitted for e in entries),
        identity=sha256(msgspec.json.encode((entries[0], entries[-1]))).hexdigest(),
        other_verdict=find_other_verdict(folder, state) if ended else "",
    )


def _describe(run: ev.RunStart, contestant: str) -> Configuration:
    kind = run.model.partition(":")[0]
    model = kind if kind in STANDS_FOR_A_MODEL else run.model
    policy, ratchet = str(run.test_policy), str(run.settings.rule.ratchet)
    return Configuration(run.agent, model, policy, str(run.gate), ratchet, contestant)


def _draw_curve(entries: Sequence[ev.Entry]) -> tuple[Verification, ...]:
    """Return a point for each verification, with the best so far after the ratchet's decision."""
    points: list[Verification] = []
    best = 0
    for entry in entries:
        match entry.event:
            case ev.Tests(trigger=trigger, void=void, passed=passed, total=total, cached=cached):
                if trigger is not Trigger.SCORE:
                    known = passed if void is None else None
                    points.append(Verification(known, best, total, str(trigger), cached))
            case ev.BestFound(score=score):
                best = score.passed
                if points:
                    points[-1] = msgspec.structs.replace(points[-1], best=best)
            case _:
                pass
    return tuple(points)


def _find_failing(entries: Sequence[ev.Entry], state: RunState) -> tuple[FailingTest, ...]:
    """Return the expected tests that the best tree does not pass, with the reason and their state before."""
    if state.best is None:
        return ()
    before: dict[str, str] = {}
    on_tree: dict[str, dict[str, str]] = {}
    open_results: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case ev.TestRun(test_id=test_id, outcome=outcome):
                open_results[test_id] = str(outcome)
            case ev.Tests(trigger=trigger, tree=tree, void=void):
                if void is None:
                    on_tree[tree] = open_results
                    before = before or (open_results if trigger is Trigger.BASELINE else {})
                open_results = {}
            case _:
                pass
    red = [test_id for test_id in state.expected if test_id not in state.best.green_ids]
    outcomes = on_tree.get(state.best.tree, {})
    said = split_output(str(state.best_results.get("output", "")), red)
    return tuple(
        FailingTest(
            test_id,
            outcomes.get(test_id, ""),
            (message := find_message(said.get(test_id, "")))[:MESSAGE_CHARACTERS],
            compute_fingerprint(test_id, message or outcomes.get(test_id, "")),
            before.get(test_id, ""),
        )
        for test_id in red
    )
