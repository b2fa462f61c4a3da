"""Feedback from a process that is kept from one verification to the next, where the runner has such a process.

Laws: it judges red trees only, as a green one is judged anew by a fresh process; it never judges the untouched tree; it
is compared with a fresh process again and again, and believed no more after the first difference.
"""

from __future__ import annotations

import collections
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from anyio import to_thread

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import EXCUSED, Ended, Outcome, Report, reconcile
from jumar.languages.test_annotations import is_slug
from jumar.ports import Invocation
from jumar.process.resident.resident_process import Answer, Refusal, ResidentProcess
from jumar.process.room import discard
from jumar.process.shell_check import format_command_line
from jumar.verify.merge_reports import FirstReport, ReportPart
from jumar.workspace.files.trees import EntryKind, Manifest

if TYPE_CHECKING:
    import re

    from jumar.verify.execution import TreeRunner

ORDERS = 100
"""Orders that one process takes at most."""

COMPARED = 10
"""Each so many-th answer is compared with that of a fresh process, and so is the first."""

REFUSALS = 3
"""After so many refusals without an answer between them no process is kept any more."""

EDIT_BYTES = 4 << 20
"""Most bytes of one order's edits; a fresh process reads more from its room."""

GOOD = frozenset({Outcome.PASSED, *EXCUSED})


@runtime_checkable
class KeepingRunner(Protocol):
    """A runner with a process that can be kept."""

    sources: re.Pattern[str]
    """Paths of files that it reads anew for each run; when another one changes, a new process is started."""

    def resident(self, suite: Suite) -> Invocation:
        """Return the invocation of the process that is kept."""
        ...


@dataclass(slots=True)
class KeptRuns:
    """The kept process of one run of jumar, and the rules that say when it is asked."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    """Decision -> how often it was taken: `warm`, or the reason for a fresh process."""
    off: str = ""
    """Reason that no process is kept any more; empty while one is."""
    most: int = ORDERS
    """Orders after which a process is replaced."""
    _kept: ResidentProcess | None = None
    _tree: Manifest = field(default_factory=dict)
    """Files of the tree that lies in its room."""
    _held: frozenset[str] = frozenset()
    _busy: bool = False
    _seen: int = 0
    _orders: int = 0
    _answers: int = 0
    _refusals: int = 0

    async def get_feedback(self, tests: TreeRunner, tree: str, output: Path) -> FirstReport | None:
        """Return a report of *tree* on the expected ids; None if a fresh process is to judge it."""
        why = self._find_reason(tests, tree)
        self._seen += tree != tests.base
        if why:
            self.counts[why] += 1
            return None
        self._busy = True
        try:
            answer = await self._ask(tests, tree, output)
        finally:
            self._busy = False
        if isinstance(answer, Refusal):
            self._refuse(answer)
            return None
        report = tests.runner.report(answer.records, Ended.NORMAL, "")
        tests.last_command = format_command_line(tests.runner.verification(tests.suite, tests.rooms, tests.expected))
        self._answers += 1
        red = _is_red(tests.expected, report)
        if red and self._answers % COMPARED != 1:
            self.counts["warm"] += 1
            return FirstReport(report, fresh=False)
        self.counts["compared" if red else "green"] += 1
        fresh, natives = await tests.report(tree, output, ReportPart(tests.expected, ""))
        tests.runs_beside += 1
        warnings = self._compare(tests.expected, report, fresh)
        if warnings:
            await to_thread.run_sync(self.release)
        return FirstReport(fresh, natives, warnings=warnings)

    def release(self) -> None:
        """End the kept process."""
        if self._kept is not None:
            self._kept.end()
            self._kept = None

    def _find_reason(self, tests: TreeRunner, tree: str) -> str:
        """Return why a fresh process is to judge *tree*; empty if the kept one may be asked."""
        if self.off:
            return self.off
        if not isinstance(tests.runner, KeepingRunner):
            return "the runner keeps no process"
        if tree == tests.base:
            return "the untouched tree"
        if not self._seen:
            return "the first verification"
        if self._busy:
            return "another verification runs"
        return "tests have names in annotations" if any(map(is_slug, tests.expected)) else ""

    async def _ask(self, tests: TreeRunner, tree: str, output: Path) -> Answer | Refusal:
        manifest = {path: node for path, node in tests.store.manifest(tree).items() if not tests.own(path)}
        edits = self._find_edits(tests, manifest)
        if edits is None or self._kept is None or not self._kept.alive or self._orders >= self.most:
            await to_thread.run_sync(self.release)
            self._kept, edits = await self._start(tests, tree, output), {}
            self._orders, self._held = 0, frozenset()
        self._orders += 1
        self._tree = manifest
        answer = await self._kept.order(edits, tests.expected, tests.suite.timeout_seconds, output)
        if isinstance(answer, Answer):
            self._held, self._refusals = answer.held, 0
        return answer

    def _find_edits(self, tests: TreeRunner, manifest: Manifest) -> dict[str, bytes] | None:
        """Return the files that differ from the tree in the room; None if more differs than what is read anew."""
        before = self._tree
        if before.keys() != manifest.keys() or not isinstance(tests.runner, KeepingRunner):
            return None
        changed = [path for path, node in manifest.items() if node != before[path]]
        for path in changed:
            old, new = before[path], manifest[path]
            plain = old.kind is new.kind is EntryKind.FILE and old.executable == new.executable
            if not plain or path in self._held or not tests.runner.sources.fullmatch(path):
                return None
        edits = {path: tests.store.get(manifest[path].sha256) for path in changed}
        return edits if sum(map(len, edits.values())) <= EDIT_BYTES else None

    async def _start(self, tests: TreeRunner, tree: str, output: Path) -> ResidentProcess:
        """Start a process in a room of *tree*; all that it prints goes to a file beside *output*."""
        room = tests.rooms.absolute() / secrets.token_hex(4)
        try:
            await to_thread.run_sync(tests.store.materialise, tree, room)
            await to_thread.run_sync(tests.remove_own_tests, room, tree)
            assert isinstance(tests.runner, KeepingRunner)  # noqa: S101  for the type checker: it was asked before
            invocation = await tests.prepare(tests.runner.resident(tests.suite), room)
            return ResidentProcess(invocation, tests.build_confinement(room, output.with_name(f"{room.name}.log")))
        except BaseException:
            discard(room)
            raise

    def _refuse(self, refusal: Refusal) -> None:
        self.counts[refusal.why] += 1
        self._refusals += 1
        self._kept = None
        if refusal.lasting or self._refusals >= REFUSALS:
            self.off = refusal.why

    def _compare(self, expected: Sequence[str], warm: Report, fresh: Report) -> tuple[str, ...]:
        """Return a warning if the two differ on *expected*, after which no process is kept."""
        mine, theirs = (
            {i: (r.outcome, r.blame, r.absent) for i, r in reconcile(expected, report).results.items()}
            for report in (warm, fresh)
        )
        if fresh.ended is Ended.NORMAL and mine == theirs:
            return ()
        self.off = "it once differed from a fresh process"
        different = sorted(i for i in mine.keys() | theirs.keys() if mine.get(i) != theirs.get(i))
        where = different[0] if different else f"the end of the run, {fresh.detail}"
        return (
            f"a kept process of the test runner judged otherwise than a fresh one ({where}): none is kept any more",
        )


def _is_red(expected: Sequence[str], report: Report) -> bool:
    """Return whether *report* holds an outcome for one of *expected* that no tree's history could excuse."""
    verdict = reconcile(expected, report)
    return verdict.void is None and any(result.outcome not in GOOD for result in verdict.results.values())
