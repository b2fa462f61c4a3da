"""Maps expected ids to the runner's names of tests, and back; reads the files that hold the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Blame, Outcome, Report, TestResult, get_function
from jumar.languages.test_annotations import HINT, Aliases, collect_aliases
from jumar.ports import Collected, Runner
from jumar.process.room import list_paths
from jumar.workspace.files.trees import EntryKind
from jumar.workspace.store.object_store import Store

SHARED = "conftest.py"
"""Name of pytest's files for fixtures, which it rewrites as it does tests."""


class IdMapping:
    """The ids of one verification in one tree: as they were asked for, and as its runner knows them."""

    def __init__(self, ids: Sequence[str], names: Aliases, wrong: str = "") -> None:
        both = {i: names.get_native(i) for i in ids}
        self._wrong = wrong
        self.natives = {i: native for i, native in both.items() if native and native != i}
        """Of the ids that annotations give: what the runner calls the test."""
        self.asked = tuple(dict.fromkeys(native for native in both.values() if native))
        """Names that the runner is asked for."""
        self._unborne = [i for i, native in both.items() if not native]
        self._ids: dict[str, list[str]] = {}
        for i, native in both.items():
            self._ids.setdefault(native, []).append(i)

    def map_report(self, report: Report) -> Report:
        """Return *report* under the ids that were asked for; results without an annotation stay as they are."""
        if not self.natives and not self._unborne:
            return report
        results = [replace(result, id=i) for result in report.results for i in self._find_asked(result.id)]
        told = {i for result in results for i in (result.id, get_function(result.id))}
        for i, native in self.natives.items():
            broken = report.broken.get(native.partition("::")[0])
            if broken is not None and i not in told:
                found = TestResult(i, Outcome.IMPORT_ERROR, 0, broken.why, broken.blame, broken.absent)
                results.append(found)
        for i in self._unborne:
            why = self._wrong or f"no test of this tree has the annotation test-id={i.partition('[')[0]}"
            results.append(TestResult(i, Outcome.ERROR if self._wrong else Outcome.MISSING, 0, why, Blame.TEST))
        return replace(report, results=tuple(results))

    def _find_asked(self, native: str) -> Iterable[str]:
        """Return the ids that were asked for and that *native* answers; itself where none was."""
        name, bracket, parameters = native.partition("[")
        exact = self._ids.get(native, [])
        family = [i + bracket + parameters for i in self._ids.get(name, [])] if bracket else []
        return dict.fromkeys(exact + family or [native])


def read_names(runner: Runner, room: Path, paths: Iterable[str], select: Sequence[str]) -> Aliases:
    """Return the annotated tests of the tree in *room*.

    Raises:
        BadInput: if an annotation is not right, or stands twice.
    """
    files: dict[str, bytes] = {}
    for path in runner.test_files(paths, select):
        place = room / path
        if not place.is_symlink() and HINT in (source := place.read_bytes()):
            files[path] = source
    return collect_aliases(files, runner) if files else Aliases()


def read_test_files(store: Store, tree: str, runner: Runner, suite: Suite) -> Mapping[str, bytes]:
    """Return the test files in *tree*, by their hashes; none where it is empty."""
    nodes = store.manifest(tree) if tree else {}
    shared = [path for path in nodes if PurePosixPath(path).name == SHARED]
    files = [nodes[path] for path in (*runner.test_files(nodes, suite.select), *shared)]
    return {node.sha256: store.get(node.sha256) for node in files if node.kind is EntryKind.FILE}


def map_collected(found: Collected, names: Aliases) -> Collected:
    """Return *found* under the ids that a run knows the tests by."""
    return replace(found, ids=tuple(dict.fromkeys(map(names.get_known, found.ids)))) if names.slugs else found


def complete_collected(found: Collected, room: Path, runner: Runner, select: Sequence[str]) -> Collected:
    """Return *found* in *room*, with ids of what could not be collected; a broken folder stands for its files."""
    paths = list_paths(room)
    broken = {
        path: why
        for where, why in found.broken.items()
        for path in (*runner.test_files(paths, select), *((where,) if where in paths else ()))
        if not where or path == where or path.startswith(where + "/")
    }
    known = {*found.ids, *(get_function(i) for i in found.ids)}
    static = [site.id for path in broken for site in runner.sites(path, (room / path).read_bytes())]
    missing = [i for i in static if i not in known and _is_selected(select, i)]
    # Without a single id, how the process ended tells nothing that the broken files do not tell better.
    anomaly = "" if missing and not found.ids else found.anomaly
    return Collected(ids=(*found.ids, *missing), broken=broken, passed_over=found.passed_over, anomaly=anomaly)


def _is_selected(select: Sequence[str], test_id: str) -> bool:
    """Return whether *test_id* is within *select*, as far as ids are named there."""
    path = test_id.partition("::")[0]
    named = [s for s in select if s.startswith(path + "::")]
    return path in select or not named or any(test_id == s or test_id.startswith((s + "::", s + "[")) for s in named)
