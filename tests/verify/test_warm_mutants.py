"""Mutants of other people's libraries come out the same by forks and by started processes, whole and in part."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from support.judging.downloaded_suites import Upstream, upstream
from support.judging.mutated_suites import Figures, Subject
from support.processes.sandboxes import s3

LIBRARIES = ("semver", "xmltodict", "cachetools", "tinydb", "toolz")
MUTANTS = 400
"""Of each library; about two seconds each."""


async def judge_mutants(release: Upstream, folder: Path, cache: Path, count: int) -> Figures:
    """Judge *count* mutants of *release*; what came of them."""
    subject = Subject(release, folder, s3(), random.Random(1))
    await subject.prepare(cache)
    for _ in range(count):
        await subject.judge()
    return subject.figures


@pytest.mark.proof
@pytest.mark.parametrize("name", LIBRARIES)
def test_two_thousand_mutants_come_out_the_same_by_forks(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, figure: Callable[[str, str], None]
) -> None:
    cache = request.config.cache.mkdir("suites") if request.config.cache else tmp_path
    s3()  # it is looked for in an event loop of its own
    (release,) = upstream(name)

    found = anyio.run(judge_mutants, release, tmp_path.resolve(), cache, MUTANTS)

    figure(f"warm_mutants_{name}", str(found))
    assert found.mutants == MUTANTS
    assert (found.differing, found.wrong) == ([], [])
    assert 100 * len(found.overturned) <= found.kept
