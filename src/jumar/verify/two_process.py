"""Runs the tests in one process and the code under test in another; neither can see the other's memory or files.

The tests' process imports proxies in place of the product's modules (`import_hook`), the product's process serves them
(`product_process`), over two pipes that jumar made. The product has no channel for records, no file of the tests and
no frame of theirs; what it says are values, to be compared elsewhere. A suite that cannot run that way comes out red.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from jumar.child import programs, start
from jumar.languages.python_options import list_python_options
from jumar.ports import Invocation, Record
from jumar.process.child_process import Child, run_confined
from jumar.process.launch import Confinement, Role, WarmStart
from jumar.process.room import TreeStore, lay_out, replace_files
from jumar.process.script import ScriptStart
from jumar.sandbox import seccomp_processes
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store

PATTERNS = ("test_*.py", "*_test.py")

TESTING = frozenset(("test", "tests", "testing", "conftest.py", "__pycache__"))
"""Names of what belongs to tests, wherever it lies."""


APART = ("S3", "S2")
"""Tiers in which a process cannot reach another one: below them two processes are one."""

LEAST_PATIENCE, SLOWER = 1.5, 20.0
"""Seconds that any test may take in two processes, and times as long as it took in one."""

MOST_LOAD = 4.0
"""Times as long as on an idle machine that a test may take in two processes on a busy one."""

UNTIMED_PATIENCE = 8.0
"""Seconds for one that no run has timed, a held-out one: `hypothesis` takes up to three to know all characters."""


class TwoProcessTrial(NamedTuple):
    """Tree, tests and processes of a run in two processes."""

    store: TreeStore
    tree: str
    product: Callable[[str], bool]
    """Predicate: paths of the tree that are modules of the code under test."""
    confinement: Callable[[Path, Path | None], Confinement]
    """Builds the confinement of a process, given its room and the file of its output."""
    invocation: Callable[[Path], Invocation]
    """Builds the invocation of the asked tests, given their room."""
    rooms: Path
    output: Path
    files: Mapping[str, bytes]
    """Contents that replace files of the tests, in their room alone."""
    known: Callable[[str], bool]
    """Predicate: paths of the untouched tree. What a candidate adds makes no folder a package of the product."""
    product_tree: str = ""
    """Tree that the product's room is made from: without held-out tests; empty: `tree`."""


class SeparatedPaths(NamedTuple):
    """Paths of a tree of which two rooms were made."""

    product: list[str]
    """Modules of the code under test."""
    shared: list[str]
    """Other files of its packages, which are in both rooms."""


_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE | re.ASCII)


def find_imports(store: Store, tree: str, product: Callable[[str], bool]) -> frozenset[str]:
    """Return the names of the modules that the product's files in *tree* seem to import, by their lines."""
    names: set[str] = set()
    for path, node in store.manifest(tree).items():
        if product(path) and path.endswith(".py") and node.kind is EntryKind.FILE:
            for one, several in _IMPORT.findall(store.get(node.sha256)):
                names.update(words[0] for part in (one or several).decode().split(",") if (words := part.split()))
    return frozenset(names)


async def run_two_processes(question: TwoProcessTrial) -> tuple[list[Record], Child]:
    """Run the tests in one process and the product in another; what the tests' process reported.

    Raises:
        Infra: if the machine cannot start a process.
    """
    records, child, served = await _run_once(question)
    if child.is_failed_fork or served.is_failed_fork:
        records, child, _ = await _run_once(question)
    return records, child


async def _run_once(question: TwoProcessTrial) -> tuple[list[Record], Child, Child]:
    async with _lay_out_rooms(question) as (ours, theirs, paths):
        invocation = question.invocation(ours)
        (asked, asks), (answers, answered) = os.pipe(), os.pipe()
        ends = [asked, asks, answers, answered]
        try:
            product = _build_product_invocation(invocation, (asked, answered))
            tests = _build_tests_invocation(invocation, (answers, asks), paths)
            within = replace(question.confinement(ours, question.output), fds=(answers, asks))
            # Its copies of files of the tests lie where those do (`child/two_process/wire/files/shared_files.py`).
            place = ours if within.sandbox.tier == "S3" else None
            served_in = replace(question.confinement(theirs, None), fds=(asked, answered), beside=place)
            async with run_confined(product, served_in) as served, run_confined(tests, within) as child:
                while ends:
                    os.close(ends.pop())
                return await _receive_records(child, served), child, served
        finally:
            while ends:
                os.close(ends.pop())


async def _receive_records(child: Child, served: Child) -> list[Record]:
    """Return records of the tests' process. Those of the product's are read, so that it can end, and mean nothing."""
    records: list[Record] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drain, served)
        while (record := await child.receive()) is not None:
            records.append(record)
        tasks.cancel_scope.cancel()
    return records


async def _drain(served: Child) -> None:
    while await served.receive() is not None:
        pass


@asynccontextmanager
async def _lay_out_rooms(question: TwoProcessTrial) -> AsyncIterator[tuple[Path, Path, SeparatedPaths]]:
    """Lay out two rooms of the tree, one without the product, one with it alone; yield them and its paths."""
    async with (
        lay_out(question.store, question.tree, question.rooms) as ours,
        lay_out(question.store, question.product_tree or question.tree, question.rooms) as theirs,
    ):
        paths = await to_thread.run_sync(separate_product, ours, theirs, question.product, question.known)
        await to_thread.run_sync(replace_files, ours, question.files)
        yield ours, theirs, paths


def separate_product(
    ours: Path, theirs: Path, product: Callable[[str], bool], known: Callable[[str], bool]
) -> SeparatedPaths:
    """Take the product out of *ours*, and what is not its own out of *theirs*; its paths.

    What belongs to the packages of the product stays in both, tests excepted: nobody but the task wrote it. For what is
    *known* to the untouched tree, modules that a candidate adds make no folder a package.
    """
    files = {path.relative_to(ours).as_posix(): path for path in ours.rglob("*") if path.is_file() or path.is_symlink()}
    chosen = [name for name in sorted(files) if product(name) and name.endswith(".py") and (theirs / name).exists()]
    before = frozenset(filter(known, files))
    packages = _find_packages(chosen, files)
    known_packages = _find_packages(before.intersection(chosen), before)
    shared = []
    for name, path in files.items():
        if name in chosen:
            path.unlink()
        elif _is_packaged(PurePosixPath(name), known_packages if name in before else packages):
            shared += [name] if (theirs / name).exists() else []
        else:
            (theirs / name).unlink(missing_ok=True)
    for place in sorted((p for p in theirs.rglob("*") if p.is_dir() and not p.is_symlink()), reverse=True):
        if not any(place.iterdir()):
            place.rmdir()
    return SeparatedPaths(chosen, shared)


def _find_packages(modules: Iterable[str], files: Collection[str]) -> set[PurePosixPath]:
    """Return the outermost package around each of *modules* that the *files* make."""
    around = ([f for f in PurePosixPath(name).parents if f"{f}/__init__.py" in files] for name in modules)
    return {folders[-1] for folders in around if folders}


def _is_packaged(path: PurePosixPath, packages: set[PurePosixPath]) -> bool:
    """Return whether *path*, no module of the product, belongs to one of its packages, and to no test."""
    tests = TESTING.intersection(path.parts) or any(fnmatch(path.name, pattern) for pattern in PATTERNS)
    return not tests and any(folder in packages for folder in path.parents)


def _build_tests_invocation(invocation: Invocation, pipes: tuple[int, int], paths: SeparatedPaths) -> Invocation:
    told = {
        "pipes": pipes,
        **paths._asdict(),
        "filter": (seccomp_processes.build_filter() or b"").hex(),
        "in_place": invocation.config.get("in_place", False),
    }
    argv = (*invocation.argv[:-2], *start.build_command(programs.TESTS))
    return msgspec.structs.replace(invocation, argv=argv, config={**invocation.config, "apart": told})


def _build_product_invocation(invocation: Invocation, pipes: tuple[int, int]) -> Invocation:
    config = {"pipes": pipes, "paths": invocation.config.get("paths", ())}
    return find_product_start(invocation).build_invocation(programs.PRODUCT, config)


def list_confirming(tests: Invocation, confinement: Confinement) -> list[tuple[Invocation, Confinement]]:
    """Return the kinds of processes that confirm a green: that of *tests*, and the product's, as all beside it."""
    confirming = replace(confinement, role=Role.CONFIRMING)
    return [(tests, confirming), (find_product_start(tests).build_invocation(programs.PRODUCT, {}), confirming)]


def find_product_start(tests: Invocation, warm: WarmStart | None = None) -> ScriptStart:
    """Return the way in which the product's process is started beside *tests*.

    So are scripts that run beside it, which can then be forked from the same zygote.
    """
    env = {name: value for name, value in tests.env.items() if not name.startswith("PYTEST")}
    return ScriptStart((tests.argv[0], "-I", "-B", *list_python_options(env)), env, warm, Role.CONFIRMING)


def measure_load() -> float:
    """Return how much longer all takes on this machine now, as processes wait for a core: 1 to `MOST_LOAD`."""
    return min(MOST_LOAD, max(1.0, round(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1)))


def estimate_patience(
    ids: Iterable[str], took: Mapping[str, int], load: float = 1.0
) -> tuple[float, Mapping[str, float]]:
    """Return the seconds that a test gets in two processes, and those of each that gets more; it *took* milliseconds.

    Each call of the code under test takes longer there. Of a test that hangs or calls it many thousand times nothing is
    learnt by waiting for long: it is judged in one process. What it took was measured under the same *load*.
    """
    least = LEAST_PATIENCE * load
    times = {i: SLOWER * took[i] / 1000 if i in took else UNTIMED_PATIENCE for i in ids}
    return least, {i: seconds for i, seconds in times.items() if seconds > least}
