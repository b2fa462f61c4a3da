"""Reads the files that a run changed, as they are and as they were."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jumar.core.state.run_state import RunState
from jumar.languages.syntax import find_language
from jumar.scorers.scars.search import LARGEST_BYTES
from jumar.workspace.files.trees import EntryKind, Manifest, find_differences
from jumar.workspace.store.object_store import Store
from jumar.workspace.store.shared import find_objects_folder


class ChangedFiles(NamedTuple):
    """Files that a run changed, path -> content, and the same files before; deleted files are in neither."""

    after: Mapping[str, bytes]
    before: Mapping[str, bytes]
    large: tuple[str, ...]
    """Source files that the run made too large to be searched."""


def read_changed_files(folder: Path, state: RunState) -> ChangedFiles:
    """Return the files that the run in *folder* changed or made, but for links and very large files."""
    store = Store(find_objects_folder(folder))
    base, best = store.manifest(state.run.tree), store.manifest(state.tree)
    paths = tuple(path for path in find_differences(base, best) if path in best)
    (before, was_large), (after, is_large) = (_read(store, manifest, paths) for manifest in (base, best))
    return ChangedFiles(
        after, before, tuple(path for path in is_large if path not in was_large and find_language(path))
    )


def _read(store: Store, manifest: Manifest, paths: tuple[str, ...]) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of those of *paths* that are files, and the paths of those that are too large."""
    files = [path for path in paths if path in manifest and manifest[path].kind is EntryKind.FILE]
    contents = {path: store.get(manifest[path].sha256) for path in files}
    small = {path: data for path, data in contents.items() if len(data) <= LARGEST_BYTES}
    return small, [path for path in files if path not in small]
