"""Puts the parts of a run together. Whoever judges, judges with the same parts: runs, scores and imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.core.events import Settings
from jumar.core.guard import Guard
from jumar.disk.objects import Store
from jumar.errors import BadInput
from jumar.plugins import load
from jumar.ports import Runner
from jumar.task import Task, guard_of, interpreter, literal, settings_for, spec
from jumar.verify.verifier import TrustedVerifier


class Place(msgspec.Struct, frozen=True):
    """Where a run happens: its directory, what it keeps, and the environment its processes see a little of."""

    folder: Path
    store: Store
    environ: Mapping[str, str]

    @classmethod
    def at(cls, folder: Path, environ: Mapping[str, str]) -> Place:
        """The run directory *folder*."""
        return cls(folder, Store(folder / "objects"), environ)


def runner_of(name: str) -> Runner:
    """The runner adapter called *name*.

    Raises:
        BadInput: if there is none.
    """
    found: Runner = load("runners", name)  # type: ignore[assignment]  # the contract kit checks what a plug-in is
    return found


def tree_of(store: Store, task: Task, folder: Path | None = None) -> str:
    """Keep the task's files (those of *folder* instead of the task's own, if given); the tree's hash.

    What is withheld (the reference, hidden tests, the task file) is no part of it.
    """
    return store.capture(folder or task.root, skip=spec(task.withheld))


def settings_of(task: Task, store: Store, tree: str, python: str | None) -> Settings:
    """What the journal keeps of *task*: its rules, and which of the files in *tree* are its tests."""
    test_files = runner_of(task.suite.runner).test_files(tuple(store.manifest(tree)), task.suite.select)
    return settings_for(task, test_files, interpreter(task, python))


def sealed(settings: Settings, ids: Iterable[str]) -> Settings:
    """*settings* that also protect the files in which the expected *ids* lie, and what could be imported instead."""
    lines: list[str] = []
    for path in dict.fromkeys(i.partition("::")[0] for i in ids):
        stem = path.removesuffix(".py")
        # A package of the same name, or a compiled module, would win over the test file.
        lines += [literal(path), literal(stem) + "/", literal(stem) + ".*"]
    return replace(settings, protected=(*settings.protected, *lines))


def verifier_of(place: Place, settings: Settings, base: str, expected: tuple[str, ...]) -> TrustedVerifier:
    """The verifier of a task whose untouched tree is *base*."""
    guard: Guard = guard_of(settings)
    return TrustedVerifier(
        place.store,
        runner_of(settings.suite.runner),
        settings.suite,
        place.folder,
        expected=expected,
        base=base,
        sources=lambda path: guard.editable(path) and not guard.protected(path),
        environ=place.environ,
    )


async def expected_ids(verifier: TrustedVerifier, task: Task) -> tuple[str, ...]:
    """The ids that will judge: those the task names, else those its suite has.

    Raises:
        BadInput: if there are none, or the tests cannot even be collected.
    """
    found = await verifier.collect(verifier.base)
    if found.anomaly:
        raise BadInput(found.anomaly)
    if not found.ids:
        why = "".join(f"; {path}: {reason.strip().splitlines()[-1]}" for path, reason in found.broken.items() if reason)
        where = f" in {', '.join(task.suite.select)}" if task.suite.select else ""
        raise BadInput(
            f"no tests found{where} in {task.root}{why}; name them with --test, or write one (test_*.py) first"
        )
    return found.ids
