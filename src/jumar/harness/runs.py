"""Starts a run and resumes one. A run directory is all that a run needs."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from math import isfinite
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from jumar import ports
from jumar.core import events as ev
from jumar.core.budget import Budget, exhausted
from jumar.core.policy import TestPolicy
from jumar.core.run import Phase, RunState
from jumar.core.state import replay
from jumar.core.stop import StopReason
from jumar.disk.apply import apply
from jumar.disk.patch import best_patch
from jumar.errors import BadInput, Infra
from jumar.globs import literal
from jumar.harness.answering import answering, offline, prepared
from jumar.harness.assembly import (
    Place,
    agent_of,
    commands_of,
    expected_ids,
    sealed,
    settings_of,
    targets_of,
    tree_of,
    verifier_of,
)
from jumar.harness.result import Result, result_of, state_in, state_of
from jumar.journal import Journal
from jumar.kernel import Kernel
from jumar.ledger import Caps, Ledger
from jumar.models.router import keys_in
from jumar.options import flag
from jumar.parts import Parts, Unshared, at_once
from jumar.shell import Shell
from jumar.task import Task, guard_of, interpreter
from jumar.workspace import Workspace

Begun = Callable[[Kernel], None]
"""Is handed the kernel before it runs: to watch it, or to halt it on a signal."""


def _unattended(_kernel: Kernel) -> None:
    """Nobody watches."""


async def start(
    task: Task, runs: Path, *, python: str | None = None, environ: Mapping[str, str], begun: Begun = _unattended
) -> Result:
    """Run *task* in a new directory under *runs*, from start to a typed stop reason.

    Raises:
        BadInput: if it cannot be run as asked; nothing was run and nothing is left behind.
        Infra: if the machine failed before the end could be written down; the journal and the best tree are intact.
    """
    interpreter(task, python)  # refused before anything is made
    ready = prepared(task, environ)
    task = _without(ready.task, runs, task.model)
    new = not runs.exists()  # noqa: ASYNC240  one look, before anything runs
    place = Place.at(_fresh(runs, task.name), environ)
    with ExitStack() as held:
        try:
            for name, data in ready.kept.items():
                (place.folder / name).write_bytes(data)
            first = await _first_event(task, place, python)
            journal = held.enter_context(Journal.create(place.folder))
            state = replay(journal.append((first,), time.time()))
            kernel = await _kernel(place, journal, state, held, task.caps)
        except BaseException:
            held.close()
            shutil.rmtree(place.folder, ignore_errors=True)
            if new:
                _leave_no_trace(runs)
            raise
        begun(kernel)
        return await _finished(kernel, place, journal)


async def resume(
    folder: Path, *, limits: Mapping[str, float] | None = None, environ: Mapping[str, str], begun: Begun = _unattended
) -> Result:
    """Go on with the run in *folder*, after a crash, an interrupt or a cap; *limits* raises caps by name.

    Raises:
        BadInput: if there is no run, another process writes it, or its journal is damaged.
        Infra: as `start`.
    """
    place = Place.at(folder, environ)
    with Journal.open(folder) as journal, ExitStack() as held:
        state = state_of(journal.entries)
        if state.start is None:
            raise BadInput(f"the run in {folder} was killed before its first event; start it again")
        if state.phase is Phase.ENDED and state.end and state.end.stop is StopReason.GREEN:
            return result_of(state, folder, journal.mark)
        raised = _raised(state, limits or {})  # refused before anything is touched
        kernel = await _kernel(place, journal, state, held)
        shutil.rmtree(folder / "rooms", ignore_errors=True)
        place.store.sweep()
        kernel.record((*raised, ev.Resume(from_seq=journal.entries[-1].seq)))
        Workspace(folder / "workspace", place.store).reset(kernel.state.tree)
        begun(kernel)
        return await _finished(kernel, place, journal)


def apply_best(folder: Path) -> tuple[str, ...]:
    """Write the tree that the run in *folder* ended with onto the folder its task came from; the paths written.

    Raises:
        BadInput: if a file there changed since the run began; nothing is written.
    """
    state = state_in(folder)
    place = Place.at(folder, {})
    return apply(place.store, state.run.tree, state.tree, Path(state.run.settings.origin))


OWN = ".jumar"
"""The folder that is made for the runs where nobody chose another."""


def _leave_no_trace(runs: Path) -> None:
    """Take *runs* away again, and `.jumar` with it, unless others keep their runs there by now."""
    with suppress(OSError):
        if [p.name for p in runs.iterdir()] == [".gitignore"]:
            (runs / ".gitignore").unlink()
        runs.rmdir()
        if runs.parent.name == OWN:
            runs.parent.rmdir()


def _without(task: Task, runs: Path, model: str) -> Task:
    """*task*, whose tree holds neither the runs nor the files of its model and ledger, wherever they are kept."""
    inside = runs.resolve()
    if inside.is_relative_to(task.root) and runs.exists() and not (runs / ".gitignore").is_file():
        raise BadInput(f"--runs {runs} is a folder of the task's own; name one that is not there yet, or one elsewhere")
    answers = Path(model.partition(":")[2]) if model.startswith(("script:", "replay:")) else None
    files = [p.resolve() for p in (answers, task.record, task.ledger) if p is not None]
    files += [p.with_name(f"{p.name}-journal") for p in files[-1:] if task.ledger]
    lines = [literal(p.relative_to(task.root).as_posix()) for p in files if p.is_relative_to(task.root)]
    if inside.is_relative_to(task.root):
        lines.append(literal(inside.relative_to(task.root).as_posix()) + "/")
    return replace(task, withheld=(*task.withheld, *lines))


def _fresh(runs: Path, name: str) -> Path:
    """A new run directory. Git is told to leave the runs alone where they lie inside a repository."""
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in name)[:48]
    folder = runs.absolute() / f"{time.strftime('%Y%m%d-%H%M%S')}-{slug}-{secrets.token_hex(3)}"
    try:
        if not runs.exists():
            runs.mkdir(parents=True)
            (runs / ".gitignore").write_text("*\n")
        folder.mkdir()
    except OSError as error:
        raise BadInput(f"cannot make {folder}: {error.strerror}; choose another place with --runs") from None
    return folder


async def _first_event(task: Task, place: Place, python: str | None) -> ev.RunStart:
    """Copy the task, find the ids that will judge it, and say so."""
    tree = tree_of(place.store, task)
    settings = settings_of(task, place.store, tree, python)
    expected = await expected_ids(verifier_of(place, settings, tree, task.expected), task)
    settings = sealed(settings, expected)
    if not targets_of(settings, place.store.manifest(tree)):
        raise BadInput(f"no file of {task.root} may be edited: [files] editable names none that is not a test")
    Workspace(place.folder / "workspace", place.store).reset(tree)
    return ev.RunStart(
        run=place.folder.name,
        task=task.name,
        agent=task.agent,
        model=task.model,
        test_policy=task.test_policy,
        gate=task.gate,
        budget=task.budget,
        expected=expected,
        tree=tree,
        settings=settings,
    )


async def _kernel(
    place: Place, journal: Journal, state: RunState, held: ExitStack, caps: Budget | None = None
) -> Kernel:
    """The run in *place*, ready to go; *held* closes what it holds. What is made for others to find is made last."""
    run = state.run
    agent, commands = agent_of(run, place), await commands_of(run, place)
    parts = Parts(
        workspace=Workspace(place.folder / "workspace", place.store),
        verifier=verifier_of(place, run.settings, run.tree, run.expected),
        agent=agent,
        guard=guard_of(run.settings),
        clock=time.time,
        commands=commands,
        sleep=at_once if offline(place) else anyio.sleep,
        ledger=_drawing(run, place, journal, held, caps),
        route=answering(state, place),
        secrets=keys_in(run.settings, place.environ),
    )
    return Kernel(journal, Shell(parts), agent, state)


def _drawing(run: ev.RunStart, place: Place, journal: Journal, held: ExitStack, caps: Budget | None) -> ports.Ledger:
    """What the run draws on beside its own budget; what it had set aside when it died is put right."""
    if not run.settings.ledger:
        return Unshared()
    drawing = held.enter_context(opened(Path(run.settings.ledger), caps)).drawn_by(run.run, place.folder)
    drawing.recover_own(journal.entries)
    return drawing


def opened(path: Path, caps: Budget | None = None) -> Ledger:
    """The ledger in *path*, made with *caps* if it is not there.

    Raises:
        BadInput: as `Ledger.open`.
    """
    return Ledger.open(path, Caps(usd=caps.usd, tokens=caps.tokens, seconds=caps.seconds) if caps else None)


def _raised(state: RunState, limits: Mapping[str, float]) -> tuple[ev.Limit, ...]:
    """The caps that change, as events.

    Raises:
        BadInput: if a new cap is below what is spent already.
    """
    for name, new in limits.items():
        if not isfinite(new):
            raise BadInput(f"{flag(name)} must be a number, not {new:g}; leave it out to keep the cap")
        if new <= getattr(state.spend, name):
            used = getattr(state.spend, name)
            raise BadInput(f"{flag(name)} {new:g} is used up already ({used:g}); give a higher cap")
    budget = replace(state.run.budget, **limits)
    over = exhausted(budget, state.spend, names=("attempts", "turns", "test_runs"))
    if over and state.end is not None and state.run.test_policy is TestPolicy.ON_FINAL:
        raise BadInput(
            f"the cap on {over} is used up, and going on takes one more test run: raise it with {flag(over)}"
        )
    budget = state.run.budget
    return tuple(ev.Limit(name=n, old=getattr(budget, n), new=new, by="resume") for n, new in limits.items())


async def _finished(kernel: Kernel, place: Place, journal: Journal) -> Result:
    """Run to the end, and leave beside the journal what people and tools look for first."""
    state = await kernel.run()
    shutil.rmtree(place.folder / "rooms", ignore_errors=True)
    result = result_of(state, place.folder, journal.mark)
    try:
        (place.folder / "best.patch").write_bytes(best_patch(place.store, state.run.tree, state.tree))
        (place.folder / "result.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    except OSError as error:
        raise Infra(f"the run has ended, but {place.folder} cannot be written: {error.strerror}") from error
    return result
