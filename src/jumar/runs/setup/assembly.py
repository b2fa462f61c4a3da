"""Builds the parts of a run that judge (runner, write rules, verifier) and its workspace; scores use them, too."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import count
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar import plugins
from jumar.core.gate.excused_tests import list_passed_over
from jumar.core.gate.grades import refuses_harder
from jumar.core.gate.write_rules import CONFIGURATION, Matches, WriteRules, find_absent, matches_nothing
from jumar.core.state.events import RunStart
from jumar.core.state.settings import Settings
from jumar.core.state.test_policy import Gate
from jumar.core.state.verdict import get_file
from jumar.errors import BadInput
from jumar.languages.gitignore_globs import compile_patterns, escape_path
from jumar.languages.project_kinds import TESTS, suggest_test_command
from jumar.languages.test_annotations import find_test_files, is_slug
from jumar.ports import Collected, Runner, Sandbox, Surroundings
from jumar.process.progress import ProgressPart, Tell, Work, ignore_progress
from jumar.process.warm.starts import NO_WARM, WarmStarts
from jumar.runners._programs import find_command_surroundings, find_runner_surroundings, join_surroundings
from jumar.runs.judging.shared_judging import SharedJudging
from jumar.runs.setup.choose_sandbox import find_weakening
from jumar.runs.setup.large_rooms import choose_room_store
from jumar.runs.setup.shared_ledger import OpenLedger, open_ledger
from jumar.runs.tree.missing_files import refuse_left_out
from jumar.runs.tree.mode_files import add_modes, build_source_filter
from jumar.runs.tree.shadowing import forbid_shadowing
from jumar.runs.tree.task_tree import build_skip, compute_allowed_bytes
from jumar.sandbox.unconfined import Unconfined
from jumar.task.prompt_context import read_context
from jumar.task.task import Task, build_write_rules, find_interpreter, freeze_settings
from jumar.verify.execution import HeldOut
from jumar.verify.naming.written_names import find_names, is_written
from jumar.verify.rounds import is_pytest
from jumar.verify.two_process import find_product_start
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.git_ignored import Ignored
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import OBJECTS, find_objects_folder
from jumar.workspace.workspace import Workspace


class RunPlace(msgspec.Struct, frozen=True):
    """Directory of a run, its object store, and the environment of which its processes see a little."""

    folder: Path
    store: Store
    environ: Mapping[str, str]
    sandbox: Sandbox = Unconfined()
    """Sandbox of its processes."""
    tell: Tell = ignore_progress
    """Is told of progress."""
    judging: SharedJudging = SharedJudging()
    """Cores and verdicts that it shares with other runs."""
    open_ledger: OpenLedger = open_ledger
    """Opens the ledger that the run draws on."""

    @classmethod
    def at(cls, folder: Path, environ: Mapping[str, str], sandbox: Sandbox | None = None) -> RunPlace:
        """Return the run directory *folder*."""
        return cls(folder, Store(find_objects_folder(folder)), environ, sandbox or Unconfined())

    @classmethod
    def passing(cls, folder: Path, environ: Mapping[str, str], sandbox: Sandbox | None = None) -> RunPlace:
        """Return *folder* as one that is removed when trees were judged: nothing there waits for the disk."""
        return cls(folder, Store(folder / OBJECTS, lasting=False), environ, sandbox or Unconfined())


def load_runner(name: str) -> Runner:
    """Return the runner adapter called *name*.

    Raises:
        BadInput: if there is none.
    """
    found: Runner = plugins.load("runners", name)  # type: ignore[assignment]  # the contract kit checks what a plug-in is
    return found


def store_tree(store: Store, task: Task, folder: Path | None = None, tell: Tell = ignore_progress) -> str:
    """Store the task's files (those of *folder* instead, if given); return the tree's hash.

    What is withheld (the reference, hidden tests, the task file) is no part of it, nor is what git ignores.
    """
    tell(Work.COPYING, 0, 0)
    if task.in_place is not None:
        return store.capture(task.root, skip=_count_matches(task.in_place.build_skip(), tell))
    withheld, ignored = compile_patterns(task.withheld), build_skip(task).build_skip()
    return store.capture(folder or task.root, skip=_count_matches(lambda path: withheld(path) or ignored(path), tell))


def _count_matches(skip: Matches, tell: Tell) -> Matches:
    """Return *skip*, which is asked of every path, with a progress report on how many it was asked of."""
    asked = count(1)

    def skips(path: str) -> bool:
        if not path.endswith("/"):
            tell(ProgressPart.FILES, next(asked), 0)
        return skip(path)

    return skips


def build_settings(task: Task, store: Store, tree: str, python: str | None) -> Settings:
    """Return the settings of *task* for the journal: its rules, and which of the files in *tree* are its tests."""
    test_files = load_runner(task.suite.runner).test_files(tuple(store.manifest(tree)), task.suite.select)
    settings = freeze_settings(task, test_files, find_interpreter(task, python), read_context(task))
    return replace(settings, reserved=list_reserved(task))


def list_reserved(task: Task) -> tuple[str, ...]:
    """Return the places that *task* holds for itself: as they are named, and where they really lie."""
    named = (place for place in (task.hidden, task.reference) if place is not None)
    return tuple(dict.fromkeys(str(way) for place in named for way in (place.absolute(), place.resolve())))


def protect_expected_files(settings: Settings, files: Iterable[str]) -> Settings:
    """Return *settings* that also protect the *files* of the expected ids, and what could be imported instead."""
    lines: list[str] = []
    for path in files:
        stem = path.removesuffix(".py")
        # A package of the same name, or a compiled module, would win over the test file.
        lines += [escape_path(path), escape_path(stem) + "/", escape_path(stem) + ".*"]
    return replace(settings, protected=(*settings.protected, *lines))


def find_files_of_tests(ids: Sequence[str], place: RunPlace, tree: str, runner: Runner) -> tuple[str, ...]:
    """Return the files of *tree* that hold the tests *ids*, each once."""
    if not any(map(is_slug, ids)):
        return tuple(dict.fromkeys(i.partition("::")[0] for i in ids))
    manifest = place.store.manifest(tree)
    paths = runner.test_files(tuple(p for p, n in manifest.items() if n.kind is EntryKind.FILE), ())
    return find_test_files(ids, {path: place.store.get(manifest[path].sha256) for path in paths}, runner)


def build_workspace(place: RunPlace, run: RunStart) -> Workspace:
    """Return the workspace for the agent of *run*: a folder of the run's own, or the repository itself."""
    folder, settings = place.folder / "workspace", run.settings
    place.store.limit_bytes = compute_allowed_bytes(settings.tree_bytes)
    if settings.in_place:
        rule = Ignored(settings.skip, settings.tracked, settings.include)
        return Workspace(Path(settings.origin), place.store, rule.build_skip())
    return Workspace(folder, place.store)


def build_verifier(
    place: RunPlace, settings: Settings, base: str, expected: tuple[str, ...], own: Matches = matches_nothing
) -> TrustedVerifier:
    """Return the verifier of a task with the untouched tree *base*; *own* are tests that a candidate wrote."""
    guard: WriteRules = build_write_rules(settings)
    runner = load_runner(settings.suite.runner)
    warm = WarmStarts() if runner.name == "pytest" and not place.environ.get(NO_WARM) else None
    way = find_product_start(runner.verification(settings.suite, place.folder, ()), warm) if warm else None
    return TrustedVerifier(
        choose_room_store(place.store, place.sandbox, settings),
        runner,
        settings.suite,
        place.folder,
        expected=expected,
        base=base,
        sources=lambda path: guard.editable(path) and not guard.protected(path),
        environ=place.environ,
        around=_build_surroundings(runner, settings, place.environ),
        own=own,
        sandbox=place.sandbox,
        tell=place.tell,
        weakened=lambda: find_weakening(place.sandbox, place.folder, place.environ, way),
        held_out=HeldOut(settings.hidden, settings.held_out, refuses_harder(settings.min_grade)),
        warm=warm,
    )


def _build_surroundings(runner: Runner, settings: Settings, environ: Mapping[str, str]) -> Surroundings:
    """Return the needs of a task's processes beside its tree; its commands may start any program."""
    known = find_runner_surroundings(runner, Path(settings.origin), environ, settings.reserved)
    if not (settings.verify or settings.suite.single):
        return known
    return join_surroundings(known, find_command_surroundings(Path(settings.origin), environ), settings.suite.python)


async def find_expected_ids(verifier: TrustedVerifier, task: Task) -> tuple[str, ...]:
    """Return the ids of `find_expected`."""
    return (await find_expected(verifier, task)).ids


async def find_expected(verifier: TrustedVerifier, task: Task) -> Collected:
    """Return the tests that will judge: those the task names, else those its suite has.

    There are none where the gate can do without.

    Raises:
        BadInput: if there are none and only they could judge, or the tests cannot even be collected.
    """
    verifier.tell(Work.COLLECTING, 0, 0)
    await refuse_unknown_expected(verifier, verifier.base)
    found = await verifier.collect(verifier.base)
    if found.anomaly:
        raise BadInput(found.anomaly)
    refuse_left_out(task, verifier.store.manifest(verifier.base), (broken.why for broken in found.broken.values()))
    untested = not found.ids and not found.broken and not task.suite.select
    if not found.ids and not (task.gate is not Gate.OFF and (untested or task.verify)):
        why = "".join(
            f"; {path}: {b.why.strip().splitlines()[-1]}" for path, b in found.broken.items() if b.why.strip()
        )
        why += "".join(f"; {line}" for line in list_passed_over(found.passed_over))
        where = f" in {', '.join(task.suite.select)}" if task.suite.select else ""
        raise BadInput(
            f"no tests found{where} in {task.root}{why}: nothing could judge the work; name the tests with --test, or "
            f"what runs them with --test-command '{suggest_test_command(task.root)}', or let the driver write the "
            "first failing test: --agent driver --gate strict -i '...'"
        )
    return found


async def refuse_unknown_expected(verifier: TrustedVerifier, tree: str) -> None:
    """Refuse a test that is expected of a file in *tree* which has none of that name: no edit could turn it green.

    The files are collected only where the text of one does not tell. One of which tests are made by code, or inherited,
    may have others with another tree; one that cannot be loaded says nothing.

    Raises:
        BadInput: naming the test, and the nearest that the file has.
    """
    manifest = verifier.store.manifest(tree)
    ids = [i for i in verifier.expected if is_pytest(verifier) and not is_slug(i) and get_file(i) in manifest]
    words = {path: find_names(verifier.store.get(manifest[path].sha256)) for path in map(get_file, ids)}
    unknown = [i for i in ids if not is_written(i, words[get_file(i)])]
    if not unknown:
        return
    judge = copy.copy(verifier)
    judge.expected, judge.suite = (), replace(verifier.suite, select=tuple(dict.fromkeys(map(get_file, unknown))))
    found = await judge.collect(tree)
    for test_id in unknown:
        path = get_file(test_id)
        there = [i for i in found.ids if get_file(i) == path]
        if path not in found.broken and there and all(is_written(i, words[path]) for i in there):
            (near,) = get_close_matches(test_id, there, 1, 0.0)
            raise BadInput(
                f"[tests] expected names {test_id}, and {path} has no such test, which nothing may change; the nearest "
                f"is {near}"
            )


def build_guard(settings: Settings, runner: Runner, first: Iterable[str]) -> WriteRules:
    """Return the write rules of a run whose first tree had the files *first*.

    New test files may be written under a gate.

    What the task itself closes stays closed; only the general rule that tests are read-only is for those it came with.
    """
    came, guard = frozenset(first), build_write_rules(settings)
    closed = compile_patterns(line for line in settings.protected if line not in TESTS or line in CONFIGURATION)

    def authorable(path: str) -> bool:
        return path not in came and bool(runner.test_files((path,), ())) and not closed(path)

    return forbid_shadowing(add_modes(replace(guard, authorable=authorable), settings, runner), settings, came)


def build_judges(run: RunStart, place: RunPlace) -> tuple[Runner, WriteRules, TrustedVerifier]:
    """Build the judges of *run*: its runner, write rules, and the verifier that knows which tests the run may write."""
    settings = run.settings
    runner = load_runner(settings.suite.runner)
    guard = build_guard(settings, runner, place.store.manifest(run.tree))
    # A test command knows no files: it has to see those that the run wrote, or they could not turn it red.
    own = matches_nothing if run.gate is Gate.OFF or settings.suite.single else guard.authorable
    verifier = build_verifier(place, settings, run.tree, run.expected, own)
    verifier.sources = build_source_filter(guard, settings, run.gate)
    return runner, guard, verifier


def find_targets(settings: Settings, files: Iterable[str]) -> tuple[str, ...]:
    """Return those of *files* that may be edited, and the files named as editable by the task that do not exist yet."""
    guard, there = build_write_rules(settings), set(files)
    both = sorted(there.union(find_absent(settings.editable, there)))
    return tuple(p for p in both if guard.editable(p) and not guard.protected(p))
