"""Diff of a run's best tree against its first tree: compared, counted, written onto the original."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from jumar.core.gate.write_rules import CONFIGURATION
from jumar.core.state import events as ev
from jumar.core.state.run_state import Phase, RunState
from jumar.errors import BadInput
from jumar.journal.writer import read_journal
from jumar.languages.gitignore_globs import compile_patterns
from jumar.runs.setup.assembly import build_guard, load_runner
from jumar.runs.setup.marks import TrustedRun
from jumar.runs.setup.result import build_no_event_fault, replay_state
from jumar.workspace.files.disk_faults import explain_output_faults
from jumar.workspace.patch import DiffStat, count_changed_lines, make_best_patch
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder
from jumar.workspace.write_back import apply

BINARY = b"GIT binary patch"


class Changes(msgspec.Struct, frozen=True):
    """Changes that a run made."""

    run: str
    base: str
    best: str
    files: tuple[DiffStat, ...]
    patch: bytes
    """For `git apply`."""

    @property
    def text(self) -> str:
        """The patch for people: files that are not text are only named."""
        return _format_patch(self.patch)


def read_changes(folder: Path) -> Changes:
    """Return the changes that the run in *folder* made.

    Raises:
        BadInput: if there is no run, its objects are not there, or git is not.
        Infra: if an object is missing or damaged.
    """
    state = _load_state(folder, read_journal(folder))
    store, base, best = Store(find_objects_folder(folder)), state.run.tree, find_best_tree(state)
    counted = count_changed_lines(store, base, best)
    return Changes(state.run.run, base, best, counted, make_best_patch(store, base, best) if counted else b"")


def read_patch_text(folder: Path) -> str:
    """Return the patch of the run in *folder* for people, made of its objects: `best.patch` is only a copy.

    Raises:
        BadInput: if there is no run, its objects are not there, or git is not.
        Infra: if an object is missing or damaged.
    """
    state = _load_state(folder, read_journal(folder))
    base, best = state.run.tree, find_best_tree(state)
    return _format_patch(make_best_patch(Store(find_objects_folder(folder)), base, best)) if base != best else ""


def _format_patch(patch: bytes) -> str:
    return strip_binary(patch).decode("utf-8", "backslashreplace")


def find_best_tree(state: RunState) -> str:
    """Return the tree that a run ended with; of one that has not ended, the best so far."""
    if state.phase is Phase.ENDED:
        return state.tree
    return state.best.tree if state.best else state.run.tree


def find_origin(run: TrustedRun) -> Path:
    """Return the folder that `apply_best` writes to, absolute.

    Raises:
        BadInput: if there is no run.
    """
    return Path(_load_state(run.folder, read_journal(run.folder)).run.settings.origin).absolute()


def apply_best(run: TrustedRun) -> tuple[str, ...]:
    """Write the best tree of *run* onto the folder its task came from; return the paths written.

    Files that were changed there since the run began are merged.

    Raises:
        BadInput: if one cannot be merged, or is a test of the task's own, or that folder is gone; nothing is written.
        Infra: if the disk refuses.
    """
    entries = read_journal(run.folder)
    state = _load_state(run.folder, entries)
    store, origin = Store(find_objects_folder(run.folder)), Path(state.run.settings.origin)
    if not origin.is_dir():
        raise BadInput(
            f"{origin}, which the task came from, is no folder any more; where it was moved to, "
            f"`jumar diff {run.folder} | git apply` writes the changes"
        )
    written = frozenset(entry.event.path for entry in entries if isinstance(entry.event, ev.Write))
    return apply(store, state.run.tree, find_best_tree(state), origin, _build_closed(state, store, written))


def lay_out(folder: Path, to: Path) -> None:
    """Write the whole best tree of the run in *folder* into *to*, a new or empty folder.

    Raises:
        BadInput: if there is no run, *to* holds something already, or it cannot be made.
        Infra: if the disk refuses.
    """
    state = _load_state(folder, read_journal(folder))
    with explain_output_faults(to, "--to"):
        if os.path.lexists(to) and not (to.is_dir() and not any(to.iterdir())):
            raise BadInput(f"{to} is there and is no empty folder; name a new one with --to")
        to.mkdir(parents=True, exist_ok=True)
    Store(find_objects_folder(folder)).materialise(find_best_tree(state), to)


def _load_state(folder: Path, entries: tuple[ev.Entry, ...]) -> RunState:
    state = replay_state(entries)
    if state.start is None:
        raise build_no_event_fault(folder)
    return state


def _build_closed(state: RunState, store: Store, written: frozenset[str]) -> Callable[[str], bool]:
    """Return a predicate for paths: true for a test of the task's own that no admitted edit of the run named."""
    settings = state.run.settings
    guard = build_guard(settings, load_runner(settings.suite.runner), store.manifest(state.run.tree))
    tests = compile_patterns(line for line in settings.protected if line not in CONFIGURATION)
    return lambda path: tests(path) and path not in written and not guard.authorable(path)


def strip_binary(patch: bytes) -> bytes:
    """Return *patch* with one line in the place of each piece that is no text."""
    kept: list[bytes] = []
    hidden = False
    for line in patch.splitlines(keepends=True):
        if line.startswith(b"diff --git "):
            hidden = False
        if line.startswith(BINARY):
            hidden = True
            kept.append(b"(binary)\n")
        if not hidden:
            kept.append(line)
    return b"".join(kept)
