"""Runs claimed and impacted tests first, and stops where they already show that an edit cannot stay.

Coverage per test is recorded once per task. What is red in a selection is red; of what is not, nothing is concluded:
then all expected ids are run, as if there had been no selection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jumar.child.pytest.line_tracer import IMPORTING
from jumar.core.gate.impact import RanLines, carry_region, find_impacted, find_regions, match_ids
from jumar.core.state.verdict import Ended, Outcome, Verdict, reconcile
from jumar.languages.test_annotations import is_slug
from jumar.ports import Record, Verification
from jumar.process.room import lay_out, list_paths
from jumar.verify.localisation.coverage_spectrum import build_coverage_invocation, find_problem
from jumar.verify.merge_reports import ReportPart, judge_shadows
from jumar.verify.rounds import is_pytest
from jumar.workspace.files.trees import EntryKind

if TYPE_CHECKING:
    from jumar.verify.execution import TreeRunner

WORTH_MS = 1000
"""A suite whose tests take less is run as a whole."""

AFTER = 3
"""Verifications before coverage is recorded: that takes the time of several, which a short run would not get back."""

SHARE = 0.5
"""Largest share of the tests' time that a selection may take."""

REMEMBERED = 4
"""Trees whose results are kept."""


class Question(NamedTuple):
    """Arguments of a verification; see `jumar.ports.Verifier.verify`."""

    tree: str
    accepted: Mapping[str, Outcome]
    control: str
    first: Sequence[str]
    also: Sequence[str]


@dataclass(slots=True)
class Selection:
    """Coverage of one task's tests, and the complete verdicts that a selection is completed from."""

    least_ms: int = WORTH_MS
    after: int = AFTER
    share: float = SHARE
    complete: dict[str, Verdict] = field(default_factory=dict)
    """Tree -> verdict on all its tests, of those that were judged last."""
    asked: int = 0
    """Verifications that could have begun with a selection."""
    tree: str = ""
    """The tree that coverage was recorded on; empty: it was not."""
    ran: Mapping[str, RanLines] = field(default_factory=dict)
    """Path -> lines that ran in it."""

    def remember(self, tree: str, verdict: Verdict) -> None:
        """Keep a complete *verdict*."""
        if verdict.void is None:
            self.complete[tree] = verdict
            while len(self.complete) > REMEMBERED:
                del self.complete[next(iter(self.complete))]

    def recall(self, tree: str) -> Verdict | None:
        """Return the complete verdict on *tree*, which is kept longest from now on."""
        found = self.complete.pop(tree, None)
        if found is not None:
            self.complete[tree] = found
        return found


async def verify_selected(verifier: TreeRunner, selection: Selection, question: Question) -> Verification | None:
    """Run the tests that are asked *first*, and those that the difference to the control can have an effect on.

    The verification, if they show that the tree cannot stay: one of *first* is red, or one that was green in the
    control. The other ids have the control's results there. None: it is not shown, or a selection is not worth it.
    """
    before = selection.recall(question.control)
    if not before or not _is_worth(verifier, before, selection.least_ms):
        return None
    if (found := await _select(verifier, selection, question)) is None:
        return None
    chosen = ReportPart([i for i in verifier.expected if i in question.first or i in found], "", refutes=True)
    if _add_durations(before, chosen.ids) > selection.share * _add_durations(before, before.results):
        return None
    parts = [part for part in (chosen, ReportPart(question.also, refutes=True)) if part.ids]
    if not parts:
        return None
    output = verifier.new_output()
    report, natives = await verifier.report_parts(question.tree, output, parts)
    verifier.runs_beside += len(parts)
    believed = judge_shadows(report, verifier.store, verifier.base)
    verdict = reconcile((*chosen.ids, *question.also), believed, question.accepted)
    asked = (i for i in verdict.results if i in question.first or i in before.green_ids)
    if report.ended is not Ended.NORMAL or verdict.void or verdict.green_ids.issuperset(asked):
        return None
    return Verification(
        verdict=Verdict(
            {i: verdict.results.get(i) or before.results[i] for i in (*before.results, *verdict.results)},
            verdict.green_ids | before.green_ids.difference(verdict.results),
        ),
        ended=report.ended,
        executions=0,
        duration_ms=0,
        output=output.name,
        grade=verifier.runner.grade,
        sandbox=verifier.sandbox.tier,
        natives=natives,
        command=verifier.last_command,
        selected=len(verdict.results),
    )


def _is_worth(verifier: TreeRunner, before: Verdict, least_ms: int) -> bool:
    """Return whether a selection can be made of these tests, and saves more than it costs."""
    plain = is_pytest(verifier) and not verifier.suite.single and not any(map(is_slug, verifier.expected))
    return plain and _add_durations(before, before.results) >= least_ms


def _add_durations(verdict: Verdict, ids: Iterable[str]) -> int:
    return sum(verdict.results[i].duration_ms for i in ids if i in verdict.results)


async def _select(verifier: TreeRunner, selection: Selection, question: Question) -> tuple[str, ...] | None:
    """Return the ids that the difference to the control can have an effect on; None: nobody knows."""
    store = verifier.store
    old, new = store.manifest(question.control), store.manifest(question.tree)
    changed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
    if not all(verifier.sources(path) or verifier.own(path) for path in changed):
        return None  # data, configuration: no coverage sees who reads it
    selection.asked += 1
    if not selection.tree and selection.asked > selection.after:
        await record_coverage(verifier, selection, question.control)
    if not selection.ran:
        return None
    found: set[str] = set()
    for path in changed:
        if path in selection.ran:
            texts = [_read_lines(verifier, tree, path) for tree in (question.control, question.tree, selection.tree)]
            for region in find_regions(texts[0], texts[1]):
                found |= find_impacted(selection.ran[path], carry_region(region, texts[0], texts[2]))
    return match_ids(verifier.expected, frozenset(found))


def _read_lines(verifier: TreeRunner, tree: str, path: str) -> list[bytes]:
    node = verifier.store.manifest(tree).get(path)
    return verifier.store.get(node.sha256).splitlines() if node and node.kind is EntryKind.FILE else []


async def record_coverage(verifier: TreeRunner, selection: Selection, tree: str) -> None:
    """Record which lines each expected test runs on *tree*; where that fails, there are no selections of this task."""
    async with lay_out(verifier.store, tree, verifier.rooms) as room:
        files = [path for path in list_paths(room) if verifier.sources(path)]
        run = build_coverage_invocation(verifier.runner.verification(verifier.suite, room, verifier.expected), files)
        records, child = await verifier.run(run, room, verifier.new_output())
    verifier.runs_beside += 1
    selection.tree = tree
    if not find_problem(records, child.ended, child.detail):
        selection.ran = read_coverage(records)


def read_coverage(records: Iterable[Record]) -> dict[str, RanLines]:
    """Return the lines that ran, by path, from the records of a traced run."""
    found: dict[str, dict[str, frozenset[int]]] = {}
    for record in records:
        match record:
            case ["lines", str(test_id), str(path), list(numbers)]:
                # Code under test may have forged the record.
                found.setdefault(path, {})[test_id] = frozenset(n for n in numbers if type(n) is int)
    return {path: RanLines(imported=tests.pop(IMPORTING, frozenset()), tests=tests) for path, tests in found.items()}
