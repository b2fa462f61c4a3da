"""Runs the tests of one tree: a fresh room, one process, one report. It judges nothing."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec
from anyio import to_thread

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Broken, Ended, Report
from jumar.errors import BadInput
from jumar.languages.test_annotations import Aliases, is_slug
from jumar.ports import Invocation, Record, Runner, Sandbox, Surroundings
from jumar.process.child_process import Child, read_records
from jumar.process.launch import Confinement, Role
from jumar.process.progress import Counter, Tell, Work, ignore_progress
from jumar.process.room import lay_out, list_paths, make_links, replace_files
from jumar.process.shell_check import format_command_line
from jumar.process.toolchain import is_prepared, prepare_cache
from jumar.process.warm.starts import WarmStarts
from jumar.sandbox.request import Reach
from jumar.sandbox.unconfined import Unconfined, report_unchanged
from jumar.verify.challenge.round_challenge import UNCHALLENGED, Challenge
from jumar.verify.merge_reports import PlainAhead, ReportPart, find_differences, merge_reports
from jumar.verify.naming.test_names import IdMapping, read_names, read_test_files
from jumar.verify.two_process import TwoProcessTrial, find_imports
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.store.object_store import Store


class HeldOut(NamedTuple):
    """Tests that no candidate sees: they are there only when a green is accepted."""

    tree: str = ""
    """Their files, laid over the candidate's; empty: there are none."""
    ids: tuple[str, ...] = ()
    best_grade: bool = False
    """True if a green is refused that the change made harder to judge: then no process with the code has them."""


@dataclass(slots=True)
class SuiteKnowledge:
    """Knowledge about one suite, gathered by the acceptances of its task."""

    apart: bool = True
    """True if two processes are tried; they are left out to measure what they are for."""
    red: frozenset[str] | None = None
    """Tests that do not pass on the untouched tree, by the runner's names; None: not known yet."""
    base_report: Report | None = None
    """Report of the untouched tree in one process."""
    base_apart: Report | None = None
    """Report of the untouched tree in two, on those tests whose grades that decided so far."""
    asked_apart: frozenset[str] = frozenset()
    """The tests that `base_apart` tells of."""
    compared: frozenset[str] = frozenset()
    """Tests whose outcomes in one process and in two on the untouched tree were compared."""
    alike: frozenset[str] = frozenset()
    """Tests of `compared` that come out the same."""
    hollow: frozenset[str] = frozenset()
    """Tests that pass in two processes on the untouched tree, every time, and are red there in one."""
    unseen: frozenset[str] = frozenset()
    """Tests of `alike` that were not loaded there: what they import is missing."""
    tests_of_base: tuple[frozenset[str], Mapping[str, Broken]] | None = None
    """All tests that the untouched tree has, held-out ones too, and files of tests that it breaks; None: not asked."""
    conversed: frozenset[str] = frozenset()
    """Test functions in which more than questions and data crossed between two processes, in a green before."""
    ordered: bool = False
    """True if its tests pass in their own order only."""
    challenge: Mapping[str, bytes] | None = None
    """Files of the tests, for a challenge; none: there is none; None: not read."""
    test_files: Mapping[str, bytes] | None = None
    """Test files of the untouched tree, by their hashes; None: not read yet."""
    imports: frozenset[str] | None = None
    """Modules that the product of the untouched tree seems to import; None: not looked for yet."""
    tests: str = ""
    """The tree whose test files judge; empty: the base's. Another one where a codemod renamed something in them."""
    others: dict[str, SuiteKnowledge] = field(default_factory=dict)
    """Knowledge gathered with the test files of other trees."""


@dataclass(slots=True)
class TreeRunner:
    """Runs the tests of the trees of one task. Starts all the processes that this takes."""

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
    """Predicate: files of code under test: localisation may suspect them, two processes part them from the tests."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment that confined processes get their PATH, LANG, LC_* and TZ from."""
    around: Surroundings = field(default_factory=Surroundings)
    """Needs of the runner beside the tree."""
    sandbox: Sandbox = field(default_factory=Unconfined)
    """Sandbox of its processes."""
    own: Callable[[str], bool] = lambda _: False
    """Predicate: files with tests that a candidate wrote itself."""
    weakened: Callable[[], Awaitable[str]] = report_unchanged
    """Returns why the sandbox confines less than it did; empty if it does not. Called before a green is accepted."""
    tell: Tell = ignore_progress
    """Is told of progress."""
    held_out: HeldOut = field(default_factory=HeldOut)
    """Tests that no candidate sees."""
    experience: SuiteKnowledge = field(default_factory=SuiteKnowledge)
    """Knowledge gathered by the acceptances of this task."""
    warm: WarmStarts | None = None
    """Forks those of its processes that can be forked; None: each is started."""
    first_role: Role = Role.CANDIDATE
    """Role of the first run of a candidate."""
    plain_ahead: PlainAhead | None = None
    """Returns the report of a plain run that was begun before the tree was known to be green; None: none was."""
    runs_beside: int = 0
    """Runs of the tests beside those that a verification counts by itself: comparisons, parts of tests, coverage."""
    last_command: str = ""
    """The command line of the newest verification."""

    @property
    def rooms(self) -> Path:
        """Return the folder of the rooms."""
        return self.directory / "rooms"

    async def report_parts(
        self, tree: str, output: Path, parts: Sequence[ReportPart]
    ) -> tuple[Report, Mapping[str, str]]:
        """Report on all *parts*, as `report` does: one process for each."""
        first, natives = await self.report(tree, output, parts[0])
        for part in parts[1:]:
            more, named = await self.report(tree, self.new_output(), part)
            first, natives = merge_reports(first, more), {**natives, **named}
        if self.warm is not None and self.warm.is_comparison_due:
            first = await self._compare(tree, parts, first)
        return first, natives

    async def _compare(self, tree: str, parts: Sequence[ReportPart], forked: Report) -> Report:
        """Repeat *forked*, the report of forked processes, with started ones; return the report that counts.

        If the two differ, and a third one says the same as the second, nothing of this run is forked any more.
        """
        cold = copy.copy(self)
        cold.warm = None
        started, _ = await cold.report_parts(tree, self.new_output(), parts)
        self.runs_beside += len(parts)
        differing = find_differences(forked, started)
        if differing and self.warm is not None:
            again, _ = await cold.report_parts(tree, self.new_output(), parts)
            self.runs_beside += len(parts)
            if not find_differences(started, again):
                self.warm.off = f"a forked process said otherwise than a started one of {differing[0]}"
        return started if differing else forked

    async def report(self, tree: str, output: Path, part: ReportPart) -> tuple[Report, Mapping[str, str]]:
        """Run the tests of *part*; the report, and the runner's names of annotated ids."""
        async with lay_out(self.store, tree, self.rooms) as room:
            if part.beside is not None:
                await to_thread.run_sync(self.remove_own_tests, room, tree, part.beside)
            naming = await self.map_ids(room, part.ids)
            if part.ids and not naming.asked:
                return naming.map_report(Report(ended=Ended.NORMAL)), naming.natives
            invocation = self.runner.verification(self.suite, room, naming.asked)
            if part.refutes:
                invocation = msgspec.structs.replace(invocation, config={**invocation.config, "refutes": True})
            self.last_command = format_command_line(invocation)
            role = Role.UNTOUCHED if tree == self.base else self.first_role
            records, child = await self.run(invocation, room, output, role=role)
        report = self.runner.report(records, child.ended, child.detail)
        judged = msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))
        return naming.map_report(judged), naming.natives

    async def run_fresh(self, tree: str, ids: Sequence[str], challenge: Challenge, seed: int | None) -> Report:
        """Run *ids*, by the runner's own names, in another fresh room of *tree*; its report.

        *seed* shuffles the tests, None leaves them in their order.
        """
        async with lay_out(self.store, tree, self.rooms) as room:
            await to_thread.run_sync(self.remove_own_tests, room, tree)
            await to_thread.run_sync(replace_files, room, challenge.files)
            run = self._build_fresh_invocation(room, ids, seed, challenge.told)
            records, child = await self.run(run, room, self.new_output(), role=Role.CONFIRMING)
        report = self.runner.report(records, child.ended, child.detail)
        return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))

    def _build_fresh_invocation(
        self, room: Path, ids: Sequence[str], seed: int | None, challenge: Mapping[str, object]
    ) -> Invocation:
        """Return the invocation of a fresh run. To explain failures can take longer than all the tests."""
        invocation = self.runner.verification(self.suite, room, ids)
        more = {**({"challenge": challenge} if challenge else {}), **({} if seed is None else {"shuffle": seed})}
        config = {**invocation.config, "quiet": bool(more), "bare": seed is not None, **more}
        return msgspec.structs.replace(invocation, config=config)

    def build_two_process_trial(
        self, tree: str, ids: Sequence[str], *, challenge: Challenge = UNCHALLENGED, seed: int | None = None
    ) -> TwoProcessTrial:
        """Return a trial of *ids* in two processes; see `run_fresh`."""
        return TwoProcessTrial(
            store=self.store,
            tree=tree,
            product=self.sources,
            known=self.store.manifest(self.base).__contains__ if self.base else lambda _: True,
            confinement=lambda room, output: replace(self.build_confinement(room, output), role=Role.CONFIRMING),
            invocation=lambda room: self._build_fresh_invocation(room, ids, seed, challenge.told),
            rooms=self.rooms,
            output=self.new_output(),
            files=challenge.files,
        )

    def list_product_modules(self) -> Sequence[str]:
        """Return the installed modules that the untouched tree imported, as far as its product seems to do that."""
        if self.warm is None or not self.warm.installed or not self.base:
            return ()
        if self.experience.imports is None:
            self.experience.imports = find_imports(self.store, self.base, self.sources)
        return sorted(self.experience.imports & self.warm.installed)

    def _read_test_files(self) -> Mapping[str, bytes]:
        known = self.experience
        if known.test_files is None:
            known.test_files = read_test_files(self.store, known.tests or self.base, self.runner, self.suite)
        return known.test_files

    async def map_ids(self, room: Path, ids: Sequence[str]) -> IdMapping:
        """Map *ids* to the runner's names in *room*. Files are searched only where an annotation is asked for."""
        if not any(map(is_slug, ids)):
            return IdMapping(ids, Aliases())
        try:
            return IdMapping(ids, await to_thread.run_sync(self.read_annotations, room))
        except BadInput as wrong:
            return IdMapping(ids, Aliases(), str(wrong))

    def read_annotations(self, room: Path) -> Aliases:
        """Return the names that annotations give to tests of *room*."""
        return read_names(self.runner, room, list_paths(room), self.suite.select)

    def remove_own_tests(self, room: Path, tree: str, kept: str = "") -> None:
        """Remove the candidate's own test files from *room*, where *tree* lies, all but *kept*, and no held-out one."""
        laid, hidden = self.store.manifest(tree), self.held_out.tree
        ours = self.store.manifest(hidden).items() & laid.items() if hidden else ()
        held_out = {path for path, _ in ours}
        for path in list_paths(room):
            if path not in held_out and path != kept and self.own(path):
                room.joinpath(path).unlink()

    async def run(
        self, invocation: Invocation, room: Path, output: Path, seconds: float = inf, role: Role = Role.CANDIDATE
    ) -> tuple[list[Record], Child]:
        """Run *invocation* as `prepare` makes it; its records, and how it ended. *role* as in `Confinement`."""
        invocation = await self.prepare(invocation, room)
        if self.warm is not None:
            self.warm.read_tests = self._read_test_files
        confinement = replace(self.build_confinement(room, output), seconds=min(self.suite.timeout_seconds, seconds))
        return await read_records(invocation, replace(confinement, role=role))

    async def prepare(self, invocation: Invocation, room: Path) -> Invocation:
        """Put into *room* what the runner needs beside the tree; *invocation* with the environment for it.

        Raises:
            BadInput: if the runner cannot work here.
        """
        if self.around.missing:
            raise BadInput(self.around.missing)
        if not is_prepared(self.around, invocation.builds):
            self.tell(Work.PREPARING, 0, 0)
            await to_thread.run_sync(prepare_cache, self.around, invocation.builds)
        await to_thread.run_sync(make_links, room, self.around.links)
        return msgspec.structs.replace(invocation, env={**self.around.env, **invocation.env})

    def build_confinement(self, room: Path, output: Path | None) -> Confinement:
        """Return the confinement of a process of this task in *room*."""
        return Confinement(
            room=room,
            output=output,
            seconds=self.suite.timeout_seconds,
            environ=self.environ,
            sandbox=self.sandbox,
            reach=Reach(readable=self.around.readable, own=self.around.own, barred=self.around.barred),
            heard=Counter(self.tell).count,
            warm=self.warm,
        )

    def new_output(self) -> Path:
        """Return a new file for the output of one process; numbers go on after a resume."""
        folder = self.directory / "output"
        with explain_disk_faults(f"cannot write to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            numbers = (int(path.stem) for path in folder.glob("*.txt") if path.stem.isdigit())
            path = folder / f"{max(numbers, default=0) + 1:03d}.txt"
            path.touch(exist_ok=False)
        return path
