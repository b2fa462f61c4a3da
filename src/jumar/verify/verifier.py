"""Judges trees: each verdict in a fresh room; failures of the machine are never held against the code."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from jumar.core.state.events import Localisation
from jumar.core.state.verdict import CHANGED, EXCUSED, Ended, Outcome, Report, Verdict, Void, mark_flaky, reconcile
from jumar.errors import BadInput
from jumar.languages.test_annotations import is_slug
from jumar.ports import Checked, Collected, Verification
from jumar.process.room import lay_out, list_paths, make_links
from jumar.process.shell_check import run_check
from jumar.verify.collection import collect_tests
from jumar.verify.execution import SuiteKnowledge, TreeRunner
from jumar.verify.localisation.coverage_spectrum import build_localisation, build_traced_invocation
from jumar.verify.merge_reports import (
    FirstReport,
    ReportPart,
    attribute_bad_end,
    judge_shadows,
    list_retries,
    merge_reports,
    remove_parts,
)
from jumar.verify.naming.single_test_command import wrap_runner
from jumar.verify.naming.test_names import map_collected
from jumar.verify.selection import Question, Selection, verify_selected

if TYPE_CHECKING:
    from jumar.verify.kept_process import KeptRuns


@dataclass(slots=True)
class TrustedVerifier(TreeRunner):
    """Judges the trees of one task, and counts the processes that this takes."""

    kept: KeptRuns | None = None
    """Source of feedback from a process that is kept; None: each verification starts its own."""
    _seen: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Tree -> id -> whether it passed: what changes while the tree does not is flaky."""
    selection: Selection = field(default_factory=Selection)
    """Coverage of the tests, for verifications that begin with a part of them."""
    _steady: set[str] = field(default_factory=set)
    """Trees that were seen to end well: a control says something only if it is one of them."""

    def __post_init__(self) -> None:
        """Let the task's own command judge, if it has one for a single test."""
        self.runner = wrap_runner(self.runner, self.suite)

    async def collect(self, tree: str) -> Collected:
        """Return the ids of *tree*'s suite, if none are expected explicitly; with an anomaly they are no evidence.

        Raises:
            BadInput: if the runner cannot work here, or an annotation of a test is not right.
        """
        if self.around.missing:
            raise BadInput(self.around.missing)
        if self.expected and not any(map(is_slug, self.expected)):
            return Collected(ids=self.expected)
        async with lay_out(self.store, tree, self.rooms) as room:
            names = await to_thread.run_sync(self.read_annotations, room)
        if self.expected:
            return Collected(ids=self.expected)
        found, _ = await collect_tests(self, tree)
        return map_collected(found, names)

    async def verify(
        self,
        tree: str,
        accepted: Mapping[str, Outcome] | None,
        *,
        control: str = "",
        also: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> Verification:
        """Judge *tree* on all expected ids and those in *also*; a green is accepted, or none (see `ports.Verifier`).

        Where a part of them, with those in *first*, shows that it cannot stay, the others are not run.
        """
        started, before, beside, done = time.monotonic(), self._list_starts(), self.runs_beside, None
        own = tuple(i for i in dict.fromkeys(also) if i not in self.expected)
        if first and accepted is not None:
            done = await verify_selected(self, self.selection, Question(tree, accepted, control, first, own))
        if done is None:
            done = await self._verify_all(tree, accepted, control, own)
        return msgspec.structs.replace(
            done,
            duration_ms=int(1000 * (time.monotonic() - started)),
            executions=done.executions + self.runs_beside - beside,
            starts=self._list_starts() - before,
            warnings=(*done.warnings, *([self.warm.off] if self.warm and self.warm.off else ())),
        )

    def _list_starts(self) -> Counter[str]:
        return Counter(self.warm.counts if self.warm else ()) + Counter(self.kept.counts if self.kept else ())

    async def _verify_all(
        self, tree: str, accepted: Mapping[str, Outcome] | None, control: str, own: Sequence[str]
    ) -> Verification:
        """Judge *tree* on all expected ids, and on tests of the run's *own*.

        These run in a process of their own, and their files are not there while the task's are judged: they could
        change the code for them, or, where a package is compiled with all its tests, break it.
        """
        output, ids = self.new_output(), (*self.expected, *own)
        parts = [part for part in (ReportPart(self.expected, ""), ReportPart(own)) if part.ids] or [ReportPart(())]
        first = await self._make_first_report(tree, output, parts, own)
        report, void, runs = await self._attribute_end(first, tree, control, parts)
        executions = len(parts) + first.again + runs
        if accepted is None:
            accepted, runs = await self._find_excused(tree, report)
            executions += runs
        judged = self._mark_unsteady(tree, Verdict({}, void=void) if void else reconcile(ids, report, accepted))
        done = Verification(
            verdict=judged,
            ended=report.ended,
            executions=executions,
            duration_ms=0,
            output=output.name,
            grade="" if judged.untested else self.runner.grade,
            sandbox=self.sandbox.tier,
            natives=first.natives,
            command=self.last_command,
        )
        self.selection.remember(tree, done.verdict)
        if tree == self.base:
            self._remember_base(report, done)
        if done.verdict.green and self.suite.confirm and self.expected:
            from jumar.verify.acceptance import accept_green  # noqa: PLC0415  it takes a while to import

            done = await accept_green(self, done, tree, accepted, report.beyond)
        return msgspec.structs.replace(done, warnings=(*done.warnings, *first.warnings))

    async def _make_first_report(
        self, tree: str, output: Path, parts: Sequence[ReportPart], own: Sequence[str]
    ) -> FirstReport:
        """Return the report of a kept process where one may judge *tree*, else those of fresh ones on all *parts*."""
        if self.kept and parts == [ReportPart(self.expected, "")]:
            kept = await self.kept.get_feedback(self, tree, output)
            if kept is not None:
                return kept
        report, natives = await self.report_parts(tree, output, parts)
        again = list_retries(report, natives, own)
        if again:
            more, _ = await self.report_parts(tree, self.new_output(), again)
            report = merge_reports(more, remove_parts(report, natives, again))
        return FirstReport(report, natives, len(again))

    def _remember_base(self, report: Report, done: Verification) -> None:
        """Keep what a verification of the untouched tree said, for the grades of later greens."""
        if done.verdict.void is None:
            red = done.verdict.red_ids
            self.experience.red = frozenset(done.natives.get(i, i) for i in self.expected if i in red)
            self.experience.base_report = None if done.natives else report

    async def _attribute_end(
        self, first: FirstReport, tree: str, control: str, parts: Sequence[ReportPart]
    ) -> tuple[Report, Void | None, int]:
        """Attribute a bad end of *first* by running *control*; the number of runs that took."""
        if not first.fresh:  # that a tree ended well where others ran before says nothing of it as a control
            return first.report, None, 0
        report = judge_shadows(first.report, self.store, self.base)
        if report.ended is Ended.NORMAL:
            self._steady.add(tree)
        elif not report.anomalies and control in self._steady - {tree}:
            other, _ = await self.report_parts(control, self.new_output(), parts)
            return *attribute_bad_end(report, other), len(parts)
        return report, None, 0

    async def _find_excused(self, tree: str, report: Report) -> tuple[Mapping[str, Outcome], int]:
        """Return the outcomes of the frozen run where *report* of *tree* skips, and the number of runs that took."""
        if not any(r.outcome in EXCUSED for r in report.results):
            return {}, 0
        frozen, runs = report, int(self.base not in ("", tree))
        if runs:
            frozen, _ = await self.report(self.base, self.new_output(), ReportPart(self.expected))
        return {r.id: r.outcome for r in frozen.results}, runs

    def _mark_unsteady(self, tree: str, verdict: Verdict) -> Verdict:
        """Return *verdict*, but what passed in this tree before and does not now, or the other way round, is flaky."""
        if verdict.void is not None or not self.suite.confirm:
            return verdict
        before = self._seen.setdefault(tree, {})
        green = verdict.green_ids
        changed = [i for i in verdict.results if before.setdefault(i, i in green) != (i in green)]
        return mark_flaky(verdict, changed, CHANGED)

    async def plain(self, tree: str, accepted: Mapping[str, Outcome] | None, also: Sequence[str] = ()) -> Verification:
        """Judge *tree* on each expected id, and those in *also*, by one run; a green is not accepted."""
        once = copy.copy(self)
        once.selection = Selection()
        once.suite, once.kept = msgspec.structs.replace(self.suite, confirm=0), None
        return await once.verify(tree, accepted, also=also)

    def with_tests(self, tests: str) -> TrustedVerifier:
        """Return a verifier that takes the test files of the tree *tests* for the task's own; empty: this one."""
        if not tests:
            return self
        other = copy.copy(self)
        other.selection = Selection()
        other.experience = self.experience.others.setdefault(tests, SuiteKnowledge(tests=tests))
        return other

    async def check(self, tree: str, command: str, seconds: float) -> Checked:
        """Run the shell *command* in a room of *tree* (see `ports.Verifier`)."""
        async with lay_out(self.store, tree, self.rooms) as room:
            await to_thread.run_sync(make_links, room, self.around.links)
            confinement = replace(self.build_confinement(room, self.new_output()), seconds=seconds)
            return await run_check(command, confinement, {**self.around.env, **self.suite.env})

    async def localise(
        self, tree: str, red: Sequence[str], green: Sequence[str], seconds: float | None = None
    ) -> Localisation:
        """Trace one run: lines that the red tests run and the green ones do not (see `ports.Verifier`)."""
        started = time.monotonic()
        async with lay_out(self.store, tree, self.rooms) as room:
            bad, good = [(await self.map_ids(room, ids)).asked for ids in (red, green)]
            files = filter(self.sources, list_paths(room))
            run = build_traced_invocation(self.runner.verification, self.suite, room, (bad, good), files)
            records, child = await self.run(run, room, self.new_output(), inf if seconds is None else seconds)
        return build_localisation(tree, bad, records, child, int(1000 * (time.monotonic() - started)))
