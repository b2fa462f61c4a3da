"""Derives the result of a run from its state: the object of `--json` and of `result.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jumar.core.failure_text import find_reason, split_output
from jumar.core.gate.excused_tests import format_passed, list_notes
from jumar.core.gate.grades import list_below
from jumar.core.run.raise_caps import find_caps_to_raise
from jumar.core.run.reducers.transitions import IllegalEvent, reduce
from jumar.core.state.events import Entry, Tests
from jumar.core.state.run_state import RunState
from jumar.core.state.stop import Escalation, StopReason, get_exit_code
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.journal.line_format import JournalEnd
from jumar.journal.writer import read_anchor, read_journal
from jumar.verify.mutation_probe import MutationFindings


class BestTree(msgspec.Struct, frozen=True):
    """Number of the expected ids that the shipped tree passes."""

    passed: int
    total: int


NOT_RUN = "not run"
"""Text shown for tests that have judged nothing."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run."""

    run: str
    task: str
    stop: StopReason
    exit: int
    passed: int | None
    """Of the best tree; None where no test has judged the run, which is not the same as 0. So are the next two."""
    failed: int | None
    errors: int | None
    total: int
    attempts: int
    usd: float
    tokens: int
    test_runs: int
    baseline_runs: int
    executions: int
    seconds: float
    tree: str
    best: BestTree | None
    """Passed and total tests of the shipped tree; None where no test has judged the run."""
    events: str
    """Path of the journal."""
    gate: str = Gate.OFF
    """Rule by which edits were admitted; `off`: no edit needed a red test, the ratchet alone decided."""
    grade: str = ""
    """Of the evidence for the best tree (`jumar.core.gate.grades.Grade`); empty: nothing was verified."""
    asked: int | None = None
    """Requests that the code under test made of the tests, in two processes; None: they ran in one."""
    grades: Mapping[str, int] = {}
    """Grade -> how many of the expected tests have it in that evidence."""
    below: Mapping[str, str] = {}
    """Test below the letter that `--min-grade` asks for -> its grade, the weakest first; empty unless `unproved`."""
    weaker: Mapping[str, str] = {}
    """Test of `below` -> why its grade is no better, as far as it is known."""
    sandbox: str = ""
    """The tier its verification ran under."""
    excused: Mapping[str, int] = {}
    """Outcome -> number of the tests that have it and count in `passed`: the untouched files skip them, too."""
    reasons: Mapping[str, str] = {}
    """Test that the shipped tree does not pass -> one line of why, as far as the output that models see has them."""
    not_general: int = 0
    """Answers with which every visible test passed and held-out ones did not: they were taken back."""
    flaky: tuple[str, ...] = ()
    """Tests that came out differently on one and the same tree: on the untouched one, where they judge nothing, or in a
    verdict of the run, which did not credit them."""
    warnings: tuple[str, ...] = ()
    """Gaps that no verdict closes, with file and line."""
    probed: MutationFindings | None = None
    """Mutants of the change that the tests killed; None: not asked for, or nothing is green."""
    notes: tuple[str, ...] = ()
    """Settings that were asked for and were not in force, and caps that nobody set."""
    why: str = ""
    said: bool = False
    """True if `why` is the agent's last message (a note on how it works may follow), not a finding of jumar's."""
    raises: Mapping[str, float] = {}
    """Cap that keeps the run from going on -> a value for `jumar resume` that leaves it room."""
    escalated: Escalation | None = None
    """The test that the agent says contradicts the instruction or another test, and why; None: it escalated none."""
    head: JournalEnd = JournalEnd()
    """Number and hash of the journal's last line: an anchor outside the journal for `jumar log verify`."""

    @property
    def taken_back(self) -> str:
        """Say that answers were taken back for the held-out tests, in one line; empty: none was, or it ended green."""
        if not self.not_general or self.stop is StopReason.GREEN:
            return ""
        answers = "one answer" if self.not_general == 1 else f"{self.not_general} answers"
        return f"{answers} passed every visible test and not the held-out ones, and went back"

    @property
    def standing(self) -> str:
        """Describe the test results of the best tree, for people."""
        if self.best is not None:
            return format_passed(self.best.passed, self.best.total, self.excused)
        if self.stop is StopReason.UNTESTED:
            return "no tests"
        return "no usable verdict" if self.test_runs else f"tests {NOT_RUN}"


def build_result(state: RunState, folder: Path, head: JournalEnd) -> Result:
    """Return the result of an ended run whose directory is *folder* and whose journal ends at *head*."""
    stop, why, below, weaker = _find_end(state)
    score = state.best.score if state.best and state.expected else None
    excused = state.evidence.excused if state.evidence and score else {}
    return Result(
        run=state.run.run,
        task=state.run.task,
        stop=stop,
        exit=get_exit_code(stop, judges=state.run.test_policy is not TestPolicy.NEVER),
        passed=score.passed if score else None,
        failed=score.failed if score else None,
        errors=score.errors if score else None,
        total=len(state.expected),
        attempts=state.spend.attempts,
        usd=state.spend.usd,
        tokens=state.spend.tokens,
        test_runs=state.spend.test_runs,
        baseline_runs=state.baseline_runs,
        executions=state.executions,
        seconds=round(state.spend.seconds, 3),
        tree=state.tree,
        best=BestTree(score.passed, len(state.expected)) if score else None,
        events=str(folder / "events.jsonl"),
        gate=state.run.gate,
        notes=(*state.run.settings.notes, *list_notes(excused, len(state.expected))),
        excused=excused,
        **(_describe_evidence(state.evidence) if state.evidence and score else {}),
        below=below,
        weaker=weaker,
        reasons=_find_reasons(state) if score else {},
        not_general=state.not_general,
        flaky=tuple(dict.fromkeys((*state.run.settings.flaky, *state.wavering))),
        warnings=state.evidence.warnings if state.evidence else (),
        raises=find_caps_to_raise(state),
        why=why,
        said=stop is StopReason.FINAL and bool(state.final_message) and bool(why),
        escalated=state.escalated if stop is StopReason.ESCALATED else None,
        head=head,
    )


def _describe_evidence(evidence: Tests) -> dict[str, Any]:
    """Return the fields of a result that say what the best tree's verdict is worth."""
    names = ("grade", "asked", "grades", "sandbox")
    return {name: getattr(evidence, name) for name in names}


def _find_end(state: RunState) -> tuple[StopReason, str, Mapping[str, str], Mapping[str, str]]:
    """Return how and why the run ended, and `below` and `weaker` of its result."""
    if state.end is None:
        return StopReason.INFRA, "the run could not be ended in its journal", {}, {}
    void = state.judged.tests.void if state.judged and not state.best else None
    if state.end.stop is StopReason.FINAL and void:
        said = (state.end.why.rstrip(". "), f"no verdict on what it wrote: {void.reason}")
        return state.end.stop, "; ".join(filter(None, said)), {}, {}
    if state.judged is None or state.end.stop is not StopReason.UNPROVED:
        return state.end.stop, state.end.why, {}, {}
    below = list_below(state.judged.grades, state.judged.better, state.run.settings.min_grade)
    return state.end.stop, state.end.why, below, {i: w for i, w in state.judged.weaker.items() if i in below}


def _find_reasons(state: RunState) -> dict[str, str]:
    """Return why the best tree does not pass a test, for the tests of which that was told."""
    red = [i for i in state.expected if state.best and i not in state.best.green_ids]
    told = split_output(str(state.best_results.get("output", "")), red)
    return {test_id: find_reason(told[test_id]) for test_id in red if test_id in told}


def read_state(folder: Path) -> RunState:
    """Return the state of the run in *folder*, by its journal.

    Raises:
        BadInput: if there is no journal, or it tells what cannot have happened.
    """
    return replay_state(read_journal(folder), f" of {folder}")


def replay_state(entries: Iterable[Entry], whose: str = "") -> RunState:
    """Return the state after *entries*; *whose* stands behind "the journal" in a complaint, such as " of RUN".

    Raises:
        BadInput: if one of them cannot have happened where it stands; the sentence names its line.
    """
    state = RunState()
    for entry in entries:
        try:
            state = reduce(state, entry)
        except IllegalEvent as error:
            raise BadInput(f"line {entry.seq + 1} of the journal{whose} cannot have happened: {error}") from None
    return state


def count_lost_lines(folder: Path) -> int:
    """Return the number of lines that an empty journal in *folder* once had, as files beside it say."""
    ends = (read_anchor(folder), read_head(folder))
    return max(end.seq + 1 if end else 0 for end in ends)


def build_no_event_fault(folder: Path) -> BadInput:
    """Return the complaint about the run in *folder*, whose journal has no event: it was emptied, or never had one."""
    if count := count_lost_lines(folder):
        some = f"{count} lines" if count > 1 else "a line"
        return BadInput(f"the journal in {folder} is damaged: it had {some}, and none is left; restore it from a copy")
    return BadInput(f"the run in {folder} was killed before its first event, so it changed nothing; start it again")


def read_head(folder: Path) -> JournalEnd | None:
    """Return the end of the journal as `result.json` in *folder* has it; None if it cannot be read."""
    try:
        return msgspec.json.decode((folder / "result.json").read_bytes(), type=_Head).head
    except (OSError, msgspec.MsgspecError):
        return None


class _Head(msgspec.Struct, frozen=True):
    """The one field of a result that the chain needs."""

    head: JournalEnd
