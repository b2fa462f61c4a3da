"""Impacted tests first: a wrong edit of a library, judged by a part of its tests in forks, and by all of them anew.

Run as `make bench ONLY=selection`. The libraries come from the package registry, pinned. Each edit makes one function
return None that a few tests run; what the map of lines costs is the time of the suite with it against the suite alone.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from frame import Figure, Skipped, Way, interleave, median_of, ratio_of
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Outcome
from jumar.errors import BadInput, Infra
from jumar.importing.from_pypi import Release, fetch_archive, unpack_archive
from jumar.importing.make_task import find_python_path, write_tree
from jumar.process.warm.starts import WarmStarts
from jumar.runners.pytest import PytestRunner
from jumar.sandbox.unconfined import Unconfined
from jumar.verify.selection import Selection, record_coverage
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

LIBRARIES = (("toolz", "1.0.0", "toolz"), ("boltons", "26.2.0", "tests"))
"""Name, version, and where the tests are."""

EDITS = 5
FEW = 4
"""Most tests that run the function that is edited."""


@dataclass
class Subject:
    """A library, ready to be judged in both ways."""

    store: Store
    base: str
    cold: TrustedVerifier
    warm: TrustedVerifier
    accepted: Mapping[str, Outcome]

    async def find_edits(self) -> list[tuple[str, str]]:
        """Trees with one wrong edit, each with a test that it turns red."""
        found: list[tuple[str, str]] = []
        manifest = self.store.manifest(self.base)
        for path, ran in sorted(self.warm.selection.ran.items()):
            lines = self.store.get(manifest[path].sha256).splitlines(keepends=True)
            for number in sorted(frozenset[int]().union(*ran.tests.values())):
                tests = sorted(test for test, own in ran.tests.items() if number in own)
                head, word, _ = lines[number - 1].partition(b"return ")
                if len(tests) <= FEW and word and not head.strip() and len(found) < EDITS:
                    text = b"".join([*lines[: number - 1], head + b"return None\n", *lines[number:]])
                    node = replace(manifest[path], sha256=self.store.put(text))
                    tree = self.store.keep({**manifest, path: node})
                    if (await self.judge_part(tree, tests[0])) > 0:
                        found.append((tree, tests[0]))
                        break
        return found

    async def judge_part(self, tree: str, first: str) -> int:
        """Judge *tree* by a part of the tests, in forks; how many that were."""
        done = await self.warm.verify(tree, self.accepted, control=self.base, first=(first,))
        return done.selected

    async def judge_all(self, tree: str) -> None:
        """Judge *tree* by all tests, in processes that are started."""
        await self.cold.verify(tree, self.accepted, control=self.base)

    async def record(self) -> None:
        """Record the lines of the untouched tree in a process that is started."""
        await record_coverage(self.cold, Selection(), self.base)


async def prepare(folder: Path, name: str, version: str, select: str) -> Subject:
    """Fetch a library, judge it as it is, and record its lines."""
    try:
        files = unpack_archive(await fetch_archive(Release(name, version), folder / "cache"))
    except (BadInput, Infra) as missing:
        raise Skipped(f"{name} cannot be fetched: {missing}") from missing
    write_tree(files, folder / name)
    paths = find_python_path(files)
    env = {"PYTHONPATH": paths} if paths else {}
    suite = Suite(select=(select,), env=env, timeout_seconds=600.0, python=sys.executable, confirm=0)
    store = Store(folder / "objects")
    base = store.capture(folder / name)
    build = partial(TrustedVerifier, store, PytestRunner(), suite, base=base, sandbox=Unconfined(), sources=is_source)
    cold, warm = build(folder / f"{name}.cold"), build(folder / f"{name}.warm", warm=WarmStarts())
    cold.expected = warm.expected = (await cold.collect(base)).ids
    for _ in range(2):  # the zygote learns from the first
        first = await warm.verify(base, None)
    warm.selection.least_ms, warm.selection.after = 0, 0
    await record_coverage(warm, warm.selection, base)
    return Subject(store, base, cold, warm, {i: r.outcome for i, r in first.verdict.results.items()})


def is_source(path: str) -> bool:
    """Return whether *path* is a module of the library."""
    return path.endswith(".py") and not {"tests", "docs", "setup.py", "conftest.py"}.intersection(Path(path).parts)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the ratio of both ways, and the price of the map, for each library."""
    with tempfile.TemporaryDirectory() as folder:
        for name, version, select in LIBRARIES:
            subject = anyio.run(prepare, Path(folder).resolve(), name, version, select)
            yield from measure_library(f"{name}, {len(subject.cold.expected)} tests", subject, rounds)


def measure_library(name: str, subject: Subject, rounds: int) -> Iterator[Figure]:
    """Measure one library."""
    edits: Sequence[tuple[str, str]] = anyio.run(subject.find_edits)
    every: dict[str, list[float]] = {"all": [], "part": []}
    for tree, first in edits:
        ways: dict[str, Way] = {
            "all": partial(anyio.run, subject.judge_all, tree),
            "part": partial(anyio.run, subject.judge_part, tree, first),
        }
        for way, seconds in interleave(ways, max(1, rounds // len(edits)), warm=0).items():
            every[way] += seconds
    yield median_of(f"{name}: all, started", every["all"], "s")
    yield median_of(f"{name}: a part, forked", every["part"], "s")
    yield ratio_of(f"{name}: all and started against a part and forked", every["all"], every["part"], better="more")
    ways = {"plain": partial(anyio.run, subject.judge_all, subject.base), "map": partial(anyio.run, subject.record)}
    taken = interleave(ways, max(1, rounds // EDITS), warm=0)
    yield ratio_of(f"{name}: with a map of lines against without", taken["map"], taken["plain"])
