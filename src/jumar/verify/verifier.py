"""Judges trees: each verdict has a fresh room, and what is the machine's doing is never held against the code."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import msgspec
from anyio import to_thread

from jumar.core.state.events import Localisation
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import CHANGED, EXCUSED, Ended, Outcome, Report, Verdict, reconcile, unsteady
from jumar.errors import BadInput
from jumar.languages.test_annotations import Aliases, is_slug
from jumar.ports import (
    Checked,
    Collected,
    Invocation,
    Record,
    Runner,
    Sandbox,
    Surroundings,
    Verification,
)
from jumar.process.child_process import Child, run_confined
from jumar.process.launch import Confinement
from jumar.process.progress import Counter, Tell, ignore_progress
from jumar.process.room import lay_out, list_paths, make_links, replace_files
from jumar.process.shell_check import run_check
from jumar.sandbox.request import Reach
from jumar.sandbox.unconfined import Unconfined, report_unchanged
from jumar.verify.command_line import command_line
from jumar.verify.configured import judge_with, run_plain
from jumar.verify.coverage_spectrum import located, traced
from jumar.verify.merge_reports import ReportPart, alone, blamed, but, joined
from jumar.verify.rounds import HeldOut, SuiteKnowledge
from jumar.verify.single_test_command import commanded
from jumar.verify.test_names import IdMapping, collected, completed, names_in
from jumar.verify.two_process import TwoProcessTrial
from jumar.workspace.files.safe_paths import disk
from jumar.workspace.store.object_store import Store


@dataclass(slots=True)
class TrustedVerifier:
    """Judges the trees of one task. Starts all the processes that this takes, and counts them."""

    store: Store
    runner: Runner
    suite: Suite
    directory: Path
    """The run's directory: rooms are made in `rooms/`, output goes to `output/NNN.txt`."""
    expected: tuple[str, ...] = ()
    """The ids that are judged. Empty before `collect` has found them."""
    base: str = ""
    """The tree of the task as it came: what it skips or fails expectedly, a candidate may too."""
    sources: Callable[[str], bool] = lambda path: path.endswith(".py")
    """Which files are code under test: localisation may suspect them, and two processes part them from the tests."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment that confined processes get their PATH, LANG, LC_* and TZ from."""
    around: Surroundings = field(default_factory=Surroundings)
    """What the runner needs beside the tree."""
    sandbox: Sandbox = field(default_factory=Unconfined)
    """What its processes run in."""
    own: Callable[[str], bool] = lambda _: False
    """Which files hold tests that a candidate wrote itself."""
    weakened: Callable[[], Awaitable[str]] = report_unchanged
    """Why the sandbox does not confine any more what it did; empty: it does. Asked before a green is accepted."""
    tell: Tell = ignore_progress
    """Is told of progress."""
    held_out: HeldOut = field(default_factory=HeldOut)
    """Tests that no candidate sees."""
    experience: SuiteKnowledge = field(default_factory=SuiteKnowledge)
    """What the acceptances of this task have taught."""
    _seen: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Tree -> id -> whether it passed: what changes while the tree does not is flaky."""
    _steady: set[str] = field(default_factory=set)
    """Trees that were seen to end well: a control says something only if it is one of them."""
    _command: str = ""

    def __post_init__(self) -> None:
        """Let the task's own command judge, if it has one for a single test."""
        self.runner = commanded(self.runner, self.suite)

    async def collect(self, tree: str) -> Collected:
        """The ids of *tree*'s suite, if none are expected explicitly; with an anomaly they are no evidence.

        Raises:
            BadInput: if the runner cannot work here, or an annotation of a test is not right.
        """
        if self.around.missing:
            raise BadInput(self.around.missing)
        if self.expected and not any(map(is_slug, self.expected)):
            return Collected(ids=self.expected)
        async with lay_out(self.store, tree, self.rooms) as room:
            names = await to_thread.run_sync(self._names, room)
            if self.expected:
                return Collected(ids=self.expected)
            records, child = await self._run(self.runner.collection(self.suite, room), room, self._output())
            found = self.runner.collected(records, child.ended, child.detail)
            return collected(await to_thread.run_sync(completed, found, room, self.runner, self.suite.select), names)

    async def verify(
        self, tree: str, accepted: Mapping[str, Outcome] | None, *, control: str = "", also: Sequence[str] = ()
    ) -> Verification:
        """Judge *tree* on all expected ids and those in *also*; a green is accepted, or none (see `ports.Verifier`).

        The tests in *also* run in a process of their own, and their files are not there while the task's are judged:
        they could change the code for them, or, where a package is compiled with all its tests, break it.
        """
        started, output = time.monotonic(), self._output()
        own = tuple(i for i in dict.fromkeys(also) if i not in self.expected)
        ids = (*self.expected, *own)
        parts = [part for part in (ReportPart(self.expected, ""), ReportPart(own)) if part.ids] or [ReportPart(())]
        report, natives = await self._reports(tree, output, parts)
        if again := alone(report, natives, own):
            report = joined((await self._reports(tree, self._output(), again))[0], but(report, natives, again))
        executions, void = len(parts) + len(again), None
        if report.ended is Ended.NORMAL:
            self._steady.add(tree)
        elif not report.anomalies and control in self._steady - {tree}:
            executions += len(parts)
            report, void = blamed(report, (await self._reports(control, self._output(), parts))[0])
        if accepted is None:
            accepted, more = await self._excused(tree, report)
            executions += more
        done = Verification(
            verdict=self._steadied(tree, Verdict({}, void=void) if void else reconcile(ids, report, accepted)),
            ended=report.ended,
            executions=executions,
            duration_ms=0,
            output=output.name,
            grade=self.runner.grade,
            sandbox=self.sandbox.tier,
            natives=natives,
            command=self._command,
        )
        if done.verdict.green and self.suite.confirm and self.expected:
            from jumar.verify.acceptance import accepted as accept  # noqa: PLC0415  it takes a while to import

            done = await accept(self, done, tree, accepted)
        return msgspec.structs.replace(done, duration_ms=int(1000 * (time.monotonic() - started)))

    async def again(self, tree: str, ids: Sequence[str], *, files: Mapping[str, bytes], seed: int | None) -> Report:
        """What the runner says of *ids*, by its own names, in another fresh room of *tree*.

        *files* lie there in the place of the tree's; *seed* shuffles the tests, None leaves them in their order.
        """
        async with lay_out(self.store, tree, self.rooms) as room:
            await to_thread.run_sync(self._without, room, "")
            await to_thread.run_sync(replace_files, room, files)
            records, child = await self._run(self._afresh(room, ids, seed), room, self._output())
        report = self.runner.report(records, child.ended, child.detail)
        return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))

    def _afresh(self, room: Path, ids: Sequence[str], seed: int | None) -> Invocation:
        """How a fresh run is started. Nobody reads there why a test fails, which can take longer than all of them."""
        invocation = self.runner.verification(self.suite, room, ids)
        config = {**invocation.config, "quiet": True, **({} if seed is None else {"shuffle": seed})}
        return msgspec.structs.replace(invocation, config=config)

    def question(
        self, tree: str, ids: Sequence[str], *, files: Mapping[str, bytes], seed: int | None = None
    ) -> TwoProcessTrial:
        """What is to be judged in two processes; see `again`."""
        return TwoProcessTrial(
            store=self.store,
            tree=tree,
            product=self.sources,
            confinement=self.confinement,
            invocation=lambda room: self._afresh(room, ids, seed),
            rooms=self.rooms,
            output=self._output(),
            files=files,
        )

    @property
    def rooms(self) -> Path:
        """Where trees are laid out."""
        return self.directory / "rooms"

    async def _excused(self, tree: str, report: Report) -> tuple[Mapping[str, Outcome], int]:
        """What the frozen run had where *report* of *tree* skips, and how many runs that took."""
        if not any(r.outcome in EXCUSED for r in report.results):
            return {}, 0
        frozen, runs = report, int(self.base not in ("", tree))
        if runs:
            frozen, _ = await self._report(self.base, self._output(), self.expected)
        return {r.id: r.outcome for r in frozen.results}, runs

    def _steadied(self, tree: str, verdict: Verdict) -> Verdict:
        """*verdict*, but what passed in this tree before and does not now, or the other way round, is flaky."""
        if verdict.void is not None or not self.suite.confirm:
            return verdict
        before = self._seen.setdefault(tree, {})
        green = verdict.green_ids
        changed = [i for i in verdict.results if before.setdefault(i, i in green) != (i in green)]
        return unsteady(verdict, changed, CHANGED)

    plain, with_tests = run_plain, judge_with

    async def check(self, tree: str, command: str, seconds: float) -> Checked:
        """Whether the shell *command* succeeds in a room of *tree* (see `ports.Verifier`)."""
        async with lay_out(self.store, tree, self.rooms) as room:
            await to_thread.run_sync(make_links, room, self.around.links)
            confinement = replace(self.confinement(room, self._output()), seconds=seconds)
            return await run_check(command, confinement, {**self.around.env, **self.suite.env})

    async def localise(
        self, tree: str, red: Sequence[str], green: Sequence[str], seconds: float | None = None
    ) -> Localisation:
        """Which lines the red tests run and the green ones do not, by one traced run (see `ports.Verifier`)."""
        started = time.monotonic()
        async with lay_out(self.store, tree, self.rooms) as room:
            bad, good = [(await self._naming(room, ids)).asked for ids in (red, green)]
            run = traced(
                self.runner.verification, self.suite, room, (bad, good), filter(self.sources, list_paths(room))
            )
            records, child = await self._run(run, room, self._output(), inf if seconds is None else seconds)
        return located(tree, bad, records, child, int(1000 * (time.monotonic() - started)))

    async def _reports(self, tree: str, output: Path, parts: Sequence[ReportPart]) -> tuple[Report, Mapping[str, str]]:
        """As `_report`, of all *parts*: one process for each."""
        first, natives = await self._report(tree, output, *parts[0])
        for part in parts[1:]:
            more, named = await self._report(tree, self._output(), *part)
            first, natives = joined(first, more), {**natives, **named}
        return first, natives

    async def _report(
        self, tree: str, output: Path, ids: Sequence[str], beside: str | None = None
    ) -> tuple[Report, Mapping[str, str]]:
        """What the runner says of *ids*, and what it calls those that annotations give; *beside* as in `ReportPart`."""
        async with lay_out(self.store, tree, self.rooms) as room:
            if beside is not None:
                await to_thread.run_sync(self._without, room, beside)
            naming = await self._naming(room, ids)
            if ids and not naming.asked:
                return naming.told(Report(ended=Ended.NORMAL)), naming.natives
            invocation = self.runner.verification(self.suite, room, naming.asked)
            self._command = command_line(invocation)
            records, child = await self._run(invocation, room, output)
        report = self.runner.report(records, child.ended, child.detail)
        judged = msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))
        return naming.told(judged), naming.natives

    async def _naming(self, room: Path, ids: Sequence[str]) -> IdMapping:
        """What the runner calls *ids* in *room*. Files are only searched where an annotation is asked for."""
        if not any(map(is_slug, ids)):
            return IdMapping(ids, Aliases())
        try:
            return IdMapping(ids, await to_thread.run_sync(self._names, room))
        except BadInput as wrong:
            return IdMapping(ids, Aliases(), str(wrong))

    def _without(self, room: Path, kept: str) -> None:
        for path in list_paths(room):
            if path != kept and self.own(path):
                room.joinpath(path).unlink()

    def _names(self, room: Path) -> Aliases:
        return names_in(self.runner, room, list_paths(room), self.suite.select)

    async def _run(
        self, invocation: Invocation, room: Path, output: Path, seconds: float = inf
    ) -> tuple[list[Record], Child]:
        records: list[Record] = []
        if self.around.missing:
            raise BadInput(self.around.missing)
        await to_thread.run_sync(make_links, room, self.around.links)
        invocation = msgspec.structs.replace(invocation, env={**self.around.env, **invocation.env})
        confinement = replace(self.confinement(room, output), seconds=min(self.suite.timeout_seconds, seconds))
        async with run_confined(invocation, confinement) as child:
            while (record := await child.receive()) is not None:
                records.append(record)
        return records, child

    def confinement(self, room: Path, output: Path | None) -> Confinement:
        """How a process of this task is confined in *room*."""
        return Confinement(
            room=room,
            output=output,
            seconds=self.suite.timeout_seconds,
            environ=self.environ,
            sandbox=self.sandbox,
            reach=Reach(readable=self.around.readable, own=self.around.own),
            heard=Counter(self.tell).hear,
        )

    def _output(self) -> Path:
        """A new file for the output of one process; numbers go on after a resume."""
        folder = self.directory / "output"
        with disk(f"cannot write to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            numbers = (int(path.stem) for path in folder.glob("*.txt") if path.stem.isdigit())
            path = folder / f"{max(numbers, default=0) + 1:03d}.txt"
            path.touch(exist_ok=False)
        return path
