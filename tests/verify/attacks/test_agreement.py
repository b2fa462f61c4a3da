"""What the runner reports agrees with the lists of real tasks, before and after their reference solutions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumar.core.state.settings import Suite
from jumar.runners.pytest import PytestRunner
from jumar.verify.verifier import TrustedVerifier
from jumar.workspace.store.object_store import Store

SAMPLE = 3


@pytest.mark.slow
def test_a_sample_of_the_tasks_agrees(data: Path, tmp_path: Path) -> None:
    tasks = list(_tasks(data))

    for task in tasks[:: len(tasks) // SAMPLE][:SAMPLE]:
        assert anyio.run(_disagreements, data, task, tmp_path) == []


@pytest.mark.proof
def test_every_task_agrees(data: Path, tmp_path: Path, figure: Callable[[str, str], None]) -> None:
    found = {task["id"]: anyio.run(_disagreements, data, task, tmp_path) for task in _tasks(data)}

    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    figure(
        "agreement", f"{len(found)} of {len(found)} real tasks: every id as its index says, before and after the fix"
    )


def _tasks(data: Path) -> Iterator[Mapping[str, Any]]:
    index = json.loads((data / "index.json").read_text("utf-8"))
    yield from (task for task in index["tasks"] if task["language"] == "python")


def _suite(task: Mapping[str, Any]) -> Suite:
    """The suite that the task's own command line describes: `python -m pytest OPTIONS PATHS`."""
    arguments = task["run"][3:]
    limits = [float(a.partition("=")[2]) for a in arguments if a.startswith("--timeout=")]
    return Suite(
        select=tuple(a for a in arguments if not a.startswith("-")),
        env=task.get("env") or {},
        test_timeout_seconds=limits[0] if limits else 30.0,
    )


async def _disagreements(data: Path, task: Mapping[str, Any], into: Path) -> list[str]:
    """The ids that came out otherwise than the index says."""
    folder = into / task["id"]
    shutil.copytree(data / "tasks" / task["id"], folder / "start")
    store = Store(folder / "objects")
    before = store.capture(folder / "start")
    shutil.copytree(data / "solutions" / task["id"], folder / "start", dirs_exist_ok=True)
    after = store.capture(folder / "start")
    verifier = TrustedVerifier(store, PytestRunner(), _suite(task), folder, base=before)
    verifier.expected = (*task["F2P"], *task["P2P"])
    red, green = (await verifier.verify(before, None)).verdict, (await verifier.verify(after, None)).verdict
    verifier.expected = ()
    known = {form for i in (await verifier.collect(before)).ids for form in (i, i.partition("[")[0])}
    return [
        *(f"red after: {i}" for i in _ids(task) if i not in green.green_ids),
        *(f"green before: {i}" for i in task["F2P"] if i in red.green_ids),
        *(f"red before: {i}" for i in task["P2P"] if i not in red.green_ids),
        *(f"not collected: {i}" for i in _ids(task) if not known & {i, i.partition("[")[0]}),
    ]


def _ids(task: Mapping[str, Any]) -> list[str]:
    """All ids of *task*."""
    return [*task["F2P"], *task["P2P"]]
