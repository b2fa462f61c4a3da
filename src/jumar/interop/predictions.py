"""Writes SWE-bench predictions: one patch for each instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jumar.errors import BadInput
from jumar.interop.stored_runs import AGENT_NAME, StoredRun
from jumar.workspace.patch import make_best_patch
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder


class Predictions(NamedTuple):
    """Rows of a file of predictions, and the runs that are not in it."""

    rows: tuple[dict[str, str], ...]
    left: tuple[str, ...]
    """Names of further rollouts of a task that has its prediction."""


def build_predictions(runs: Iterable[StoredRun]) -> Predictions:
    """Return the prediction of the first rollout of each task, by the names of runs; its result plays no part.

    SWE-bench reads one patch for each instance, and of two it takes the later one without a word. A patch is empty
    where the run changed nothing.

    Raises:
        BadInput: if a patch cannot be written as JSON.
        Infra: if files of a run are gone.
    """
    chosen: dict[str, StoredRun] = {}
    left: list[str] = []
    for run in runs:
        if run.start.task in chosen:
            left.append(run.start.run)
        else:
            chosen[run.start.task] = run
    return Predictions(tuple(_predict(run) for run in chosen.values()), tuple(left))


def _predict(run: StoredRun) -> dict[str, str]:
    store = Store(find_objects_folder(run.folder))
    patch = make_best_patch(store, run.start.tree, run.tree) if run.tree != run.start.tree else b""
    try:
        text = patch.decode()
    except UnicodeDecodeError:
        raise BadInput(
            f"the patch of {run.start.run} changes a file that is no UTF-8, which JSON cannot hold; leave this run out"
        ) from None
    return {
        "instance_id": run.start.task,
        "model_name_or_path": f"{AGENT_NAME}-{run.start.agent}/{run.model}",
        "model_patch": text,
    }
