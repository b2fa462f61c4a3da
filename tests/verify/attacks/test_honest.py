"""Honest suites are never rejected: those of other people's releases and of real tasks, id by id as pytest has them."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from jumar.core.state.settings import Suite
from jumar.errors import Infra
from jumar.process.sandbox_check import find_bubblewrap
from jumar.runners.pytest import PytestRunner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store
from support.judging.downloaded_suites import Upstream, upstream
from support.judging.third_party_suites import CONFIRM, HELD_BACK, Honest, chosen, environment, honest, plainly
from support.processes.sandboxes import ENVIRON, s3

SAMPLE = 3

ALIKE = "1 test comes out alike in one process and in two on the untouched files"

SUSPECTED: Mapping[str, tuple[str, ...]] = defaultdict(
    tuple, {"commit0-cachetools": (ALIKE,), "quixbugs-reverse_linked_list": (ALIKE,)}
)
"""Warnings that say more of an honest solution than is so: what was red in both ways need not come out alike later.

A list that is turned round in place is read by the test node by node, and values cross by copy (ADR 038).
"""


UNREADABLE = """
import os

def test_a_file_without_rights_cannot_be_read(tmp_path):
    file = tmp_path / "file"
    file.touch(mode=0)
    assert not os.access(file, os.R_OK)
"""


@pytest.mark.proof
def test_plain_pytest_has_the_rights_of_a_user_as_our_sandbox_has(tmp_path: Path) -> None:
    s3()
    (tmp_path / "test_rights.py").write_text(UNREADABLE, "utf-8")

    assert list(plainly(tmp_path, Suite()).values()) == ["passed"]


@pytest.mark.proof
def test_a_release_that_needs_nothing_is_accepted(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    cache = request.config.cache.mkdir("suites") if request.config.cache else tmp_path

    async def run() -> Honest:
        (release,) = upstream("xmltodict")
        suite = await release.laid_out(cache, tmp_path / "files")
        return await honest(release.called, tmp_path / "files", suite, 1)

    try:
        done = anyio.run(run)
    except Infra as fault:
        pytest.skip(f"no package index: {fault}")

    assert done.wrong == []
    assert len(done.plain) > 100


@pytest.mark.proof
def test_full_suites_of_other_people_are_accepted_and_come_out_as_in_plain_pytest(
    tmp_path: Path, request: pytest.FixtureRequest, figure: Callable[[str, str], None]
) -> None:
    cache = request.config.cache.mkdir("suites") if request.config.cache else tmp_path
    python = anyio.run(environment, cache)
    done: list[Honest] = []
    for release in chosen():
        done.append(anyio.run(_released, release, tmp_path / release.name, cache, python))
        shutil.rmtree(tmp_path / release.name)
        print(done[-1], *done[-1].wrong[:10], sep="\n    ", flush=True)  # noqa: T201  it takes its time

    assert [wrong for one in done for wrong in one.wrong] == []
    ids = sum(len(one.plain) for one in done)
    assert len(done) >= 15
    assert ids >= 10_000
    grades = sum((one.grades for one in done), Counter[str]())
    told = ", ".join(f"{count} tests at grade {grade}" for grade, count in sorted(grades.items()))
    figure(
        "honest",
        f"{len(done)} suites of other people's releases, {ids:,} tests: none rejected, every outcome as plain pytest "
        f"has it; {told}; not looked at "
        f"while the rules were made: {', '.join(release.name for release in HELD_BACK)}",
    )


async def _released(release: Upstream, folder: Path, cache: Path, python: Path) -> Honest:
    suite = await release.laid_out(cache, folder / "files")
    # The time limits are for a machine that is not busy with much else; what is slow there is not wrong.
    patient = msgspec.structs.replace(suite, python=str(python), timeout_seconds=1800.0, test_timeout_seconds=180.0)
    return await honest(release.called, folder / "files", patient)


@pytest.mark.slow
def test_a_sample_of_the_real_tasks_is_green_with_its_solution(data: Path, tmp_path: Path) -> None:
    tasks = list(_tasks(data))

    for task in tasks[:: len(tasks) // SAMPLE][:SAMPLE]:
        assert anyio.run(_accepted, data, task, tmp_path)[0] == ""


@pytest.mark.proof
def test_every_real_task_is_green_with_its_solution(
    data: Path, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    said = {task["id"]: anyio.run(_accepted, data, task, tmp_path) for task in _tasks(data)}

    assert {name: wrong for name, (wrong, _) in said.items() if wrong} == {}
    grades = Counter(grade for _, grade in said.values())
    figure(
        "green tasks",
        f"{len(said)} of {len(said)} real tasks in Python are accepted as green with their solution: "
        + ", ".join(f"{count} at grade {grade}" for grade, count in sorted(grades.items())),
    )


def _tasks(data: Path) -> Iterator[Mapping[str, Any]]:
    index = json.loads((data / "index.json").read_text("utf-8"))
    yield from (task for task in index["tasks"] if task["language"] == "python")


async def _accepted(data: Path, task: Mapping[str, Any], into: Path) -> tuple[str, str]:
    """Why the solution of *task* is not green, or nothing; and the grade of its verdict."""
    folder, arguments = into / task["id"], task["run"][3:]
    limits = [float(a.partition("=")[2]) for a in arguments if a.startswith("--timeout=")]
    suite = Suite(
        select=tuple(a for a in arguments if not a.startswith("-")), env=task.get("env") or {}, confirm=CONFIRM,
        test_timeout_seconds=limits[0] if limits else 30.0,
    )  # fmt: skip
    shutil.copytree(data / "tasks" / task["id"], folder / "files")
    store = Store(folder / "objects")
    base = store.capture(folder / "files")
    shutil.copytree(data / "solutions" / task["id"], folder / "files", dirs_exist_ok=True)
    tree = store.capture(folder / "files")
    sandbox = await find_bubblewrap(folder, ENVIRON)
    verifier = TrustedVerifier(store, PytestRunner(), suite, folder / "run", base=base, sandbox=sandbox)
    verifier.environ = ENVIRON
    verifier.expected = (*task["F2P"], *task["P2P"])
    verifier.sources = lambda path: path in task["editable"]
    done = await verifier.verify(tree, None, control=base)
    why = done.verdict.void.reason if done.verdict.void else ""
    red = ", ".join(f"{i}: {done.verdict.results[i].outcome}" for i in (*done.verdict.red_ids, *done.verdict.flaky_ids))
    # What is said of the task's tests, and of what nothing proved of them, accuses nobody.
    of_tests = (
        "cannot be falsified",
        "comes to none of its assertions",
        "could be checked neither in two processes nor by changing what is expected",
        *SUSPECTED[task["id"]],
    )
    warned = "; ".join(w for w in done.warnings if not any(said in w for said in of_tests))
    return why or red or warned, done.grade
