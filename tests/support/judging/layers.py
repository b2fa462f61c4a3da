"""The layers that stand between an attack and a green, as rungs: each can be left out, to see what it is there for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from jumar.core.gate.grades import describe_min_grade, is_proved, refuses_harder
from jumar.core.gate.write_rules import CONFIGURATION, WriteRules
from jumar.core.state.settings import Settings
from jumar.core.state.verdict import Ended, Outcome, Report
from jumar.languages.gitignore_globs import compile_patterns
from jumar.ports import Record, Sandbox
from jumar.process import records as decode
from jumar.runners.pytest import PytestRunner
from jumar.runs.setup.assembly import (
    RunPlace,
    build_settings,
    build_verifier,
    find_files_of_tests,
    protect_expected_files,
    store_tree,
)
from jumar.task.task import Task, build_write_rules, load_task
from jumar.verify.challenge.round_challenge import UNCHALLENGED
from jumar.verify.execution import HeldOut, SuiteKnowledge
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import overlay
from support.judging.attack_corpus import Project, attacked, junit_key, plain, task_in
from support.processes.sandboxes import ENVIRON


@dataclass(frozen=True)
class Layers:
    """Which layers are there."""

    reconciliation: bool = True
    """Every expected id passed, and the process ended well. Without it: nothing was reported failed."""
    configuration: bool = True
    """No conftest and no configuration crosses from a candidate."""
    freeze: bool = True
    """No file of tests crosses from a candidate."""
    tripwire: bool = True
    challenge: bool = True
    """Fresh runs in which tests are falsified; without it they are plain."""
    apart: bool = True
    """Tests and code in two processes, where the suite runs that way."""
    held_out: bool = True


NAMES = tuple(Layers.__dataclass_fields__)
"""The layers, weakest first."""


class Ruling(NamedTuple):
    """What became of an attack."""

    green: bool
    grade: str = "D"
    why: str = ""
    executions: int = 1


class Listening(PytestRunner):
    """The adapter of pytest, without the judges that are left out."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.heard: tuple[list[Record], Ended, str] = ([], Ended.UNSTARTED, "")

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """As the adapter; what was said is kept."""
        self.heard = (list(records), ended, detail)
        return report_under(self.layers, *self.heard)


def report_under(layers: Layers, records: Sequence[Record], ended: Ended, detail: str) -> Report:
    """The report of *records* if only *layers* look at them."""
    kept = [record for record in records if _believed(record, layers)]
    if layers.reconciliation:
        return decode.build_report(kept, ended, detail, serial=True)
    found = decode.build_report(kept, Ended.NORMAL if ended is not Ended.UNSTARTED else ended, detail)
    return msgspec.structs.replace(found, anomalies=tuple(a for a in found.anomalies if a.startswith("tampered")))


def _believed(record: Record, layers: Layers) -> bool:
    return record[0] != "tampered" or layers.tripwire


class Case(NamedTuple):
    """A task, ready to judge candidates."""

    task: Task
    place: RunPlace
    settings: Settings
    base: str
    expected: tuple[str, ...]
    held_out: HeldOut


class Ladder:
    """Judges the projects of the corpus in *folder*, by any of the layers. Two processes need a *sandbox*, S2 or S3."""

    def __init__(self, folder: Path, sandbox: Sandbox | None = None) -> None:
        self._folder, self._sandbox = folder, sandbox
        self._numbers = count()
        self._cases: dict[tuple[tuple[str, str], ...], Case] = {}
        self._opening = anyio.Lock()

    async def case(self, project: Project) -> Case:
        """The task of *project*, made once for all attacks on it."""
        key = tuple(sorted({**project.base, **project.hidden, **project.env}.items()))
        async with self._opening:
            if key not in self._cases:
                self._cases[key] = await self._opened(project)
        return self._cases[key]

    async def _opened(self, project: Project) -> Case:
        folder = self._folder / f"case{next(self._numbers)}"
        task, place = (
            load_task(task_in(folder / "task", project)),
            RunPlace.at(folder / "run", ENVIRON if self._sandbox else {}, self._sandbox),
        )
        base = store_tree(place.store, task)
        settings = build_settings(task, place.store, base, None)
        expected = (await build_verifier(place, settings, base, ()).collect(base)).ids
        if not expected:
            raise LookupError(f"{project.id} has no tests")
        settings = protect_expected_files(settings, find_files_of_tests(expected, place, base, PytestRunner()))
        held_out = HeldOut()
        if task.hidden:
            hidden = place.store.capture(task.hidden)
            files = place.store.manifest(hidden)
            both = place.store.keep(overlay(place.store.manifest(base), files, files.__contains__))
            found = (await build_verifier(place, settings, both, ()).collect(both)).ids
            ids = tuple(i for i in found if i.partition("::")[0] in files)
            held_out = HeldOut(hidden, ids, refuses_harder(settings.min_grade))
        return Case(task, place, settings, base, expected, held_out)

    def readings(self, project: Project, case: Case) -> tuple[bool, bool, bool]:
        """Whether pytest alone takes *project* for green: by exit status, by "nothing failed", by every expected id."""
        folder = attacked(self._folder / f"plain{next(self._numbers)}", project)
        status, outcomes = plain(folder, project)
        found = set(outcomes.values())
        named = all(outcomes.get(junit_key(i)) == "passed" for i in case.expected)
        return status == 0, bool(found) and not found & {"error", "failure"}, named

    def candidate(self, project: Project, case: Case, layers: Layers) -> str:
        """The tree that is judged: as much of what *project* leaves behind as *layers* let cross."""
        given = store_tree(
            case.place.store, case.task, attacked(self._folder / f"attack{next(self._numbers)}", project)
        )
        return case.place.store.overlay(case.base, given, lambda path: _crosses(path, case, layers))

    async def feedback(self, project: Project, layers: Layers) -> Ruling:
        """The verdict of one run, with nothing but the channel behind it."""
        return await self._judged(project, replace(layers, held_out=False), confirm=0)

    async def accepted(self, project: Project, layers: Layers) -> Ruling:
        """The verdict that counts: a green is accepted in fresh runs."""
        return await self._judged(project, layers, confirm=3)

    async def outcomes(self, project: Project) -> dict[str, str]:
        """What one run of the untouched task says of each id."""
        case = await self.case(project)
        done = await self._verifier(case, Layers(), 0).verify(case.base, None)
        return {i: str(result.outcome) for i, result in done.verdict.results.items()}

    def _verifier(self, case: Case, layers: Layers, confirm: int) -> TrustedVerifier:
        verifier = build_verifier(case.place, confirming(case.settings, confirm), case.base, case.expected)
        verifier.directory = self._folder / f"judged{next(self._numbers)}"
        verifier.runner = Listening(layers)
        verifier.held_out = case.held_out if layers.held_out else HeldOut()
        verifier.experience = SuiteKnowledge(apart=layers.apart, challenge=None if layers.challenge else {})
        return verifier

    async def _judged(self, project: Project, layers: Layers, *, confirm: int) -> Ruling:
        case = await self.case(project)
        verifier = self._verifier(case, layers, confirm)
        tree = self.candidate(project, case, layers)
        if not layers.reconciliation:
            report = await verifier.run_fresh(tree, case.expected, UNCHALLENGED, None)
            failed = [r.id for r in report.results if r.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)]
            why = "; ".join((*report.anomalies, *failed, *report.broken))
            return Ruling(not why and report.ended is not Ended.UNSTARTED, why=why)
        done = await verifier.verify(tree, None, control=case.base)
        verdict = done.verdict
        why = verdict.void.reason if verdict.void else ", ".join(verdict.flaky_ids or verdict.red_ids)
        wanted = case.settings.min_grade if layers.held_out else ""
        proved = is_proved(done.grade, done.reachable, wanted)
        weak = "" if proved else f"unproved: grade {done.grade}, and {describe_min_grade(done.reachable, wanted)}"
        return Ruling(verdict.green and proved, done.grade, why or weak, done.executions)


def confirming(settings: Settings, confirm: int) -> Settings:
    """*settings* with another number of confirmations."""
    return msgspec.structs.replace(settings, suite=msgspec.structs.replace(settings.suite, confirm=confirm))


def _crosses(path: str, case: Case, layers: Layers) -> bool:
    guard: WriteRules = build_write_rules(case.settings)
    if guard.editable(path) and not guard.protected(path):
        return True
    steers = compile_patterns(CONFIGURATION)(path)
    return not layers.configuration if steers else not layers.freeze


def without(name: str) -> Layers:
    """All layers but *name*."""
    return Layers(**{name: False})


def up_to(name: str) -> Layers:
    """The layers up to *name*, and no stronger one."""
    return Layers(**dict.fromkeys(NAMES[NAMES.index(name) + 1 :], False))


def outcomes_of(report: Mapping[str, str], ids: Iterable[str]) -> dict[str, str]:
    """What a JUnit report says of *ids*."""
    return {i: report.get(junit_key(i), "absent") for i in ids}
