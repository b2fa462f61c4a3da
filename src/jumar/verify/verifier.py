"""Judges trees: each verdict has a fresh room, and what is the machine's doing is never held against the code."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from anyio import to_thread

from jumar.core.events import Localisation
from jumar.core.settings import Suite
from jumar.core.verdict import EXCUSED, Cause, Ended, Outcome, Report, Verdict, Void, reconcile
from jumar.disk.beneath import disk
from jumar.ports import Collected, Invocation, Record, Runner, Verification
from jumar.verify.process import Child, confined
from jumar.verify.room import Store, laid_out
from jumar.verify.spectrum import spectrum, traced


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
    """Which files localisation may suspect."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment that confined processes get their PATH, LANG, LC_* and TZ from."""
    _steady: set[str] = field(default_factory=set)
    """Trees that were seen to end well: a control says something only if it is one of them."""

    async def collect(self, tree: str) -> Collected:
        """The ids of *tree*'s suite; those of files that do not import are read from their syntax trees.

        Ids that are expected explicitly are not looked for. An anomaly is for the caller to act on: the ids are then
        no evidence.
        """
        if self.expected:
            return Collected(ids=self.expected)
        async with laid_out(self.store, tree, self.directory / "rooms") as room:
            records, child = await self._run(self.runner.collection(self.suite, room), room, self._output())
            found = self.runner.collected(records, child.ended, child.detail)
            return await to_thread.run_sync(self._completed, found, room)

    async def verify(self, tree: str, accepted: Mapping[str, Outcome] | None, *, control: str = "") -> Verification:
        """Judge *tree* on all expected ids (see `ports.Verifier`)."""
        started, output, executions = time.monotonic(), self._output(), 1
        report = await self._report(tree, output)
        void = None
        if report.ended is Ended.NORMAL:
            self._steady.add(tree)
        elif not report.anomalies and control in self._steady - {tree}:
            executions += 1
            report, void = _blamed(report, await self._report(control, self._output()))
        if accepted is None and any(r.outcome in EXCUSED for r in report.results):
            frozen = report
            if self.base not in ("", tree):
                executions += 1
                frozen = await self._report(self.base, self._output())
            accepted = {r.id: r.outcome for r in frozen.results}
        return Verification(
            verdict=Verdict({}, void=void) if void else reconcile(self.expected, report, accepted),
            ended=report.ended,
            executions=executions,
            duration_ms=_ms_since(started),
            output=output.name,
        )

    async def localise(self, tree: str, red: Sequence[str], green: Sequence[str]) -> Localisation:
        """Which lines the red tests run and the green ones do not, by one run of them under coverage."""
        started = time.monotonic()
        async with laid_out(self.store, tree, self.directory / "rooms") as room:
            files = [path for path in _paths(room) if self.sources(path)]
            with traced(self.runner, self.suite, room, (red, green)) as arranged:
                records, _ = await self._run(arranged(files), room, self._output())
        return Localisation(tree=tree, suspects=spectrum(records, red), duration_ms=_ms_since(started))

    async def _report(self, tree: str, output: Path) -> Report:
        async with laid_out(self.store, tree, self.directory / "rooms") as room:
            records, child = await self._run(self.runner.verification(self.suite, room, self.expected), room, output)
        report = self.runner.report(records, child.ended, child.detail)
        return msgspec.structs.replace(report, anomalies=(*report.anomalies, *child.anomalies))

    async def _run(self, invocation: Invocation, room: Path, output: Path) -> tuple[list[Record], Child]:
        records: list[Record] = []
        seconds = self.suite.timeout_seconds
        async with confined(invocation, room=room, output=output, timeout=seconds, environ=self.environ) as child:
            while (record := await child.receive()) is not None:
                records.append(record)
        return records, child

    def _output(self) -> Path:
        """A new file for the output of one process; numbers go on after a resume."""
        folder = self.directory / "output"
        with disk(f"cannot write to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            numbers = (int(path.stem) for path in folder.glob("*.txt") if path.stem.isdigit())
            path = folder / f"{max(numbers, default=0) + 1:03d}.txt"
            path.touch(exist_ok=False)
        return path

    def _completed(self, found: Collected, room: Path) -> Collected:
        """*found*, with the ids of what could not be collected; a folder that is broken stands for its files."""
        paths = _paths(room)
        broken = {
            path: why
            for where, why in found.broken.items()
            for path in (*self.runner.test_files(paths, self.suite.select), *((where,) if where in paths else ()))
            if not where or path == where or path.startswith(where + "/")
        }
        known = {*found.ids, *(i.partition("[")[0] for i in found.ids)}
        static = [i for path in broken for i in self.runner.static_ids(path, (room / path).read_bytes())]
        missing = [i for i in static if i not in known and _selects(self.suite.select, i)]
        # Without a single id, how the process ended tells nothing that the broken files do not tell better.
        anomaly = "" if missing and not found.ids else found.anomaly
        return Collected(ids=(*found.ids, *missing), broken=broken, anomaly=anomaly)


def _blamed(report: Report, control: Report) -> tuple[Report, Void | None]:
    """Whose doing a bad end was: the candidate's if the control ends well under the same conditions."""
    if control.ended is not Ended.NORMAL:
        return report, Void(Cause.HARNESS, f"the best tree does not end well any more either: {control.detail}")
    ended = Ended.EXIT if report.ended is Ended.UNSTARTED else report.ended
    return msgspec.structs.replace(report, ended=ended), None


def _selects(select: Sequence[str], test_id: str) -> bool:
    """Whether *test_id* is within *select*, as far as ids are named there."""
    path = test_id.partition("::")[0]
    named = [s for s in select if s.startswith(path + "::")]
    return path in select or not named or any(test_id == s or test_id.startswith((s + "::", s + "[")) for s in named)


def _paths(room: Path) -> list[str]:
    return sorted(path.relative_to(room).as_posix() for path in room.rglob("*") if path.is_file())


def _ms_since(started: float) -> int:
    return int(1000 * (time.monotonic() - started))
