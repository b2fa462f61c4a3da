"""Replays records to confirm them: red without the edit, green with it, red once it is reverted."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from jumar.core.state.claims import explain_not_red
from jumar.core.state.events import RunStart, TestRun
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Verdict
from jumar.corpus.build_record import RecordTrees
from jumar.corpus.export import find_run_directories, load_trees
from jumar.corpus.schema import CODEMOD, File, Record, TextRecord, apply_edit, build_node, collect_contents
from jumar.errors import BadInput
from jumar.journal.writer import read
from jumar.ports import Sandbox, Verification
from jumar.runners._programs import find_runner_surroundings
from jumar.runs.setup.assembly import load_runner
from jumar.runs.setup.marks import Trust
from jumar.runtime.frozen_configuration import find_differing_ids
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import EntryKind, Manifest
from jumar.workspace.patch import explain_misfit

NAMED = 3
"""Tests that a sentence names."""


class ReplayStatus(StrEnum):
    """Outcome of the replay of a record."""

    REPRODUCED = "reproduced"
    UNSTABLE = "unstable"
    """Something differed: a flaky test, an edit that did not do it alone, a record that was changed."""
    VOID = "void"
    """No usable evidence: it says nothing about the record."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the replay of one record."""

    id: str
    task: str
    status: ReplayStatus
    differs: tuple[str, ...] = ()
    """Differences from the record, one sentence each."""
    verifications: int = 0
    executions: int = 0
    grade: str = ""
    """Of the evidence, the worst of it; empty: nothing was executed."""
    sandbox: str = ""
    """The tier it was executed in."""


class RecordSource(msgspec.Struct, frozen=True):
    """Location of the trees of a record, and of its test runs."""

    trees: RecordTrees
    origin: Path
    """The folder that the runner looks around in."""
    python: str = ""
    reserved: tuple[str, ...] = ()
    """Places that its task holds for itself."""


class ReplayResources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a replay: trees, interpreter, environment, room and sandbox."""

    sources: Callable[[str], RecordSource]
    """Run -> where its trees lie."""
    python: str = ""
    """The interpreter of the tests; empty is the run's own."""
    environ: Mapping[str, str] = {}
    confirm: int = 1
    """Number of verifications of each of the three trees."""
    room: Path
    """Folder for output and rooms."""
    sandbox: Sandbox = Unconfined()
    """Sandbox in which foreign edits are run."""


def build_source_lookup(runs: Iterable[Path], objects: Path | None, trust: Trust) -> Callable[[str], RecordSource]:
    """Return a function from run to the place of its trees: below *runs*, else in *objects*.

    Raises:
        BadInput: if there is nothing at one of these places; later, if a run is not among them, or not to be trusted.
    """
    folders = {
        first.run: (folder, first.settings) for folder in find_run_directories(runs) if (first := _read_start(folder))
    }
    if objects is not None and not objects.is_dir():
        raise BadInput(f"there is no folder {objects}; `jumar corpus RUNS -o FILE --objects DIR` makes one")
    known: dict[str, RecordSource] = {}

    def source(run: str) -> RecordSource:
        if run not in known and run in folders:
            folder, settings = folders[run]
            known[run] = RecordSource(
                load_trees(trust.run(folder).folder), Path(settings.origin), settings.suite.python, settings.reserved
            )
        elif run not in known:
            if objects is None:
                raise BadInput(
                    f"the run {run} is not here: name its directory, or the folder that holds it, with --runs"
                )
            known[run] = RecordSource(RecordTrees(objects), Path.cwd())
        return known[run]

    return source


def _read_start(folder: Path) -> RunStart | None:
    first = next(read(folder), None)
    return first.event if first is not None and isinstance(first.event, RunStart) else None


def refuse_missing(records: Iterable[Record], means: ReplayResources) -> None:
    """Refuse *records* if one of them lacks its run, its runner or its interpreter: before the first one is replayed.

    Raises:
        BadInput: naming it.
    """
    known: set[tuple[str, str, str]] = set()
    for record in records:
        parts = (record.run, record.runner, record.suite)
        if parts not in known:
            _build_verifier(record, means.sources(record.run), means)
            known.add(parts)


async def replay_record(record: Record, means: ReplayResources) -> Replayed:
    """Replay *record*: judge its tree without the edit, with it, and with the edit reverted.

    Raises:
        BadInput: if its run, its runner or the interpreter is not here.
        Infra: if an object is missing or damaged, or the disk refuses.
    """
    source = means.sources(record.run)
    base = source.trees.manifest(record.edit.tree_before)
    told = Replayed(id=record.id, task=record.task, status=ReplayStatus.UNSTABLE)
    try:
        files = collect_contents(record.edit.files)
    except ValueError as fault:
        return msgspec.structs.replace(told, differs=(str(fault),))
    if why := _explain_mismatch(record, base, source.trees, files):
        return msgspec.structs.replace(told, differs=(why,))
    with_edit = apply_edit(base, record.edit.files)
    taken_back = apply_edit(with_edit, map(_reverse, record.edit.files))
    sides = [source.trees.add(side, files) for side in (base, with_edit, taken_back)]
    verifier = _build_verifier(record, source, means)
    every: list[Verification] = []
    differs: list[str] = []
    for _ in range(means.confirm):
        done = [await verifier.verify(tree, None, control=sides[0]) for tree in sides]
        differs += [d for d in _list_differences(record, [one.verdict for one in done]) if d not in differs]
        every += done
    void = any(one.verdict.void for one in every)
    return Replayed(
        id=record.id,
        task=record.task,
        status=ReplayStatus.VOID if void else ReplayStatus.UNSTABLE if differs else ReplayStatus.REPRODUCED,
        differs=tuple(differs),
        verifications=len(every),
        executions=sum(one.executions for one in every),
        grade=max((one.grade for one in every), default=""),
        sandbox=means.sandbox.tier,
    )


def _explain_mismatch(record: Record, base: Manifest, store: RecordTrees, files: Mapping[str, bytes]) -> str:
    """Return why the edit of *record* is not the one between its two trees; empty: it is."""
    edit = record.edit
    for file in edit.files:
        there = base.get(file.path)
        solid = None if there is None or there.kind is EntryKind.DIR else there
        if solid != build_node(file.before_mode, file.before_sha256):
            return f"{file.path} is another file in the tree that the edit begins from"
    after = apply_edit(base, edit.files)
    if store.add(after, files) != edit.tree_after:
        return "the files of the edit do not lead to the tree after it"
    sides = [{f.path: n for f in edit.files if (n := build_node(*side(f)))} for side in (_get_before, _get_after)]
    try:
        (patch,) = TextRecord(edit.patch_encoding, (edit.patch,)).bytes
    except ValueError as fault:
        return f"the patch cannot be read: {fault}"
    return explain_misfit(store, patch, *sides)


def _get_before(file: File) -> tuple[str, str]:
    return file.before_mode, file.before_sha256


def _get_after(file: File) -> tuple[str, str]:
    return file.after_mode, file.after_sha256


def _reverse(file: File) -> File:
    return msgspec.structs.replace(
        file,
        before_mode=file.after_mode,
        after_mode=file.before_mode,
        before_sha256=file.after_sha256,
        after_sha256=file.before_sha256,
    )


def _build_verifier(record: Record, source: RecordSource, means: ReplayResources) -> TrustedVerifier:
    runner = load_runner(record.runner)
    try:
        suite = msgspec.json.decode(record.suite, type=Suite)
    except msgspec.MsgspecError as fault:
        raise BadInput(f"the suite of {record.id} is none: {fault}") from None
    python = means.python or source.python or sys.executable
    if shutil.which(python) is None:
        raise BadInput(f"the interpreter of {record.run}, {python}, is not here; name another one with --python")
    return TrustedVerifier(
        source.trees,
        runner,
        msgspec.structs.replace(suite, python=python, confirm=0),
        means.room,
        expected=record.judged,
        base=record.edit.tree_before,
        environ=means.environ,
        sandbox=means.sandbox,
        around=find_runner_surroundings(runner, source.origin, means.environ, source.reserved),
    )


def _list_differences(record: Record, verdicts: list[Verdict]) -> Iterator[str]:
    """Yield the differences from the record; *verdicts* are of the tree without the edit, with it, without again."""
    before, after, again = verdicts
    whens = ("without the edit", "with the edit", "with the edit taken back")
    for when, verdict in zip(whens, verdicts, strict=True):
        if verdict.void is not None:
            yield f"no usable evidence {when}: {verdict.void.reason}"
            return
    if record.kind == CODEMOD:
        yield from _list_changed(verdicts)
        return
    for when, verdict in ((whens[0], before), (whens[2], again)):
        for test in record.tests:
            if why := _explain_not_red(verdict, test.id):
                yield f"{when}: {why}"
    for test in record.tests:
        if test.id not in after.green_ids:
            outcome = after.results[test.id].outcome if test.id in after.results else "not judged"
            yield f"with the edit: {test.id} is {outcome}, not green"
    if lost := [i for i in before.results if i in before.green_ids and i not in after.green_ids]:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        yield f"the edit costs {', '.join(lost[:NAMED])}{more}"


def _list_changed(verdicts: list[Verdict]) -> Iterator[str]:
    """Yield the tests whose outcomes differ without a codemod, with it, and with it reverted."""
    before, after, again = verdicts
    for when, verdict in (("with the codemod", after), ("with the codemod taken back", again)):
        for test_id in find_differing_ids(before, verdict):
            yield f"{when}: {test_id} does not come out as it did without it"


def _explain_not_red(verdict: Verdict, test_id: str) -> str:
    """Return why *test_id* is not a red that an edit can answer; empty: it is one."""
    result = verdict.results.get(test_id)
    if result is None:
        return f"{test_id} is none of the tests that judge"
    status = "pass" if test_id in verdict.green_ids else "fail"
    run = TestRun(test_id=test_id, status=status, outcome=result.outcome, blame=result.blame, absent=result.absent)
    return explain_not_red(run, test_id)
