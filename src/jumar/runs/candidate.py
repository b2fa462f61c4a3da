"""Finds the candidate tree to score: that of a folder, the task's reference over its own files, or that of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jumar.core.state.events import RunStart
from jumar.errors import BadInput
from jumar.journal.writer import EVENTS
from jumar.runs.setup.assembly import RunPlace, store_tree
from jumar.task.task import Task
from jumar.workspace.files.trees import Node, find_differences
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder

SHOWN = 3
"""Names that a sentence lists."""


def is_reference(task: Task, folder: Path) -> bool:
    """Return whether *folder* is the reference of *task*, which may hold some of its files alone."""
    return task.reference is not None and task.reference.resolve() == folder.resolve()


def store_candidate(task: Task, where: Path, place: RunPlace, base: str) -> str:
    """Store the tree in *where*, a folder or the directory of a run, for *task* with the tree *base*; return its hash.

    Raises:
        BadInput: if it is a run of another task.
    """
    if (where / EVENTS).is_file():
        folder = place.folder / "candidate"
        _lay_out_run(task, where, base, folder)
        return store_tree(place.store, task, folder, place.tell)
    if is_reference(task, where):
        return lay_over(place.store, base, where)
    return store_tree(place.store, task, where, place.tell)


def lay_over(store: Store, base: str, folder: Path) -> str:
    """Return the tree *base* with the files of *folder* over it; none is removed."""
    return store.keep({**store.manifest(base), **store.manifest(store.capture(folder))})


def _lay_out_run(task: Task, run: Path, base: str, folder: Path) -> None:
    """Lay out in *folder* the present tree of the run in *run*."""
    from jumar.runs.setup.result import read_state  # noqa: PLC0415  it imports all that reads journals

    state = read_state(run)
    if state.start is not None:
        _refuse_other_task(task, run, base, state.start)
    Store(find_objects_folder(run)).materialise(state.tree, folder)


def _refuse_other_task(task: Task, run: Path, base: str, start: RunStart) -> None:
    """Refuse a run that began on another tree than *base*, in another folder, under another name than those of *task*.

    A task that was renamed, moved or changed has one of the three.
    """
    origin = start.settings.origin
    if start.tree == base or start.task == task.name or (origin and Path(origin).resolve() == task.root.resolve()):
        return
    place = start.settings.origin or "no known folder"
    raise BadInput(
        f"{run} is a run of the task {start.task!r} in {place}, and {task.root} is the task {task.name!r}, with other "
        f"files: score it by its own task (`jumar rescore {run} --task {task.root}` judges it by this one)"
    )


def describe_ignored(taken: Mapping[str, Node], given: Mapping[str, Node], own: Mapping[str, Node]) -> Iterator[str]:
    """Yield a line on each file of *given* that was not *taken*, as the task's *own* judge, and on those it has not."""
    absent = []
    for path in find_differences(taken, given):
        if path not in given:
            absent.append(path)
        elif path in own:
            yield f"{path} differs from the task's own and was not taken: it is not editable"
        else:
            yield f"{path} is no file of the task and was not taken: it is not editable"
    if absent:
        more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
        yield f"not in that tree, so the task's own were used: {', '.join(absent[:SHOWN])}{more}"
