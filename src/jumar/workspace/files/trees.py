"""Trees as values: paths and the entry at each. Equal hashes mean equal bytes, names and executable bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

import msgspec

SKIPPED = frozenset({
    ".git", ".hg", ".svn",
    "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", "node_modules",
    ".jumar",
})  # fmt: skip
"""Names that are never part of a tree: histories, caches and runs. Virtual environments are known by `VENV`."""

VENV = "pyvenv.cfg"
"""A folder (other than the root) that holds this file is a virtual environment, and no part of a tree."""


class EntryKind(StrEnum):
    """Kind of the entry at a path."""

    FILE = "file"
    LINK = "link"
    DIR = "dir"
    """A folder with nothing in it; others are implied by what they hold."""


class Node(msgspec.Struct, frozen=True):
    """One path of a tree."""

    kind: EntryKind
    sha256: str = ""
    """Of a file's bytes or a link's text."""
    executable: bool = False

    @property
    def mode(self) -> str:
        """The mode as git writes it."""
        if self.kind is EntryKind.FILE:
            return "100755" if self.executable else "100644"
        return "120000" if self.kind is EntryKind.LINK else "040000"


Manifest = Mapping[str, Node]
"""Path (relative, with forward slashes; bytes that are no UTF-8 stand as lone surrogates) -> node."""

Folder = dict[str, "Node | Folder"]
"""A manifest by its levels: name -> node, or the folder's own names."""

EMPTY = Node(EntryKind.DIR)


def is_ignored(path: str) -> bool:
    """Return whether *path* is never part of a tree, by its names alone."""
    *folders, name = path.split("/")
    return any(map(_skipped, (*folders, name))) or (bool(folders) and name == VENV)


def _skipped(name: str) -> bool:
    return name in SKIPPED or name.endswith(".pyc") or is_leftover(name)


def is_leftover(name: str) -> bool:
    """Return whether *name* is one of jumar's temporary names, left behind by a kill."""
    return name.startswith(".jumar-") and name.endswith(".tmp")


def encode(manifest: Manifest) -> bytes:
    """Return the canonical bytes of *manifest*: their sha256 is the tree's hash.

    JSON in ASCII, sorted by path, so that names which are no UTF-8 survive and the hash does not depend on the writer.
    """
    nodes = [
        {"path": path, "kind": node.kind, "mode": node.mode, "sha256": node.sha256}
        for path, node in sorted(manifest.items())
    ]
    return json.dumps(nodes, separators=(",", ":"), ensure_ascii=True).encode()


def decode(data: bytes) -> dict[str, Node]:
    """Return the manifest that `encode` wrote.

    Raises:
        ValueError: if *data* is no manifest.
    """
    try:
        found = {n["path"]: Node(EntryKind(n["kind"]), n["sha256"], n["mode"] == "100755") for n in json.loads(data)}
    except (TypeError, KeyError) as fault:
        raise ValueError(f"no manifest: {fault}") from fault
    if encode(found) != data or any(part in ("", ".", "..") for path in found for part in path.split("/")):
        raise ValueError("no manifest: it is not as one is written, or a path in it leads outside")
    return found


def list_parents(path: str) -> Iterator[str]:
    """Yield the folders that hold *path*, the nearest first, without the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def add_folders(manifest: Manifest) -> dict[str, Node]:
    """Return *manifest* with every implied folder named too."""
    return {folder: EMPTY for path in manifest for folder in list_parents(path)} | dict(manifest)


def nest(manifest: Manifest) -> Folder:
    """Return *manifest* as nested folders."""
    top: Folder = {}
    for path, node in manifest.items():
        *way, name = path.split("/")
        here = top
        for step in way:
            below = here.setdefault(step, {})
            if not isinstance(below, dict):
                raise ValueError(f"no manifest: {path!r} lies beneath something that is no folder")  # noqa: TRY004  a value, not a type, is wrong
            here = below
        if node.kind is EntryKind.DIR:
            here.setdefault(name, {})
        else:
            here[name] = node
    return top


def find_differences(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Return the paths at which two trees differ, sorted."""
    return tuple(sorted(p for p in old.keys() | new.keys() if old.get(p) != new.get(p)))


def put(manifest: Manifest, path: str, node: Node | None) -> dict[str, Node]:
    """Return *manifest* with *node* at *path*, or nothing there; folders that fill or empty are kept track of."""
    after = dict(manifest)
    if node is not None:
        for folder in list_parents(path):
            after.pop(folder, None)
        after[path] = node
    elif after.pop(path, None) is not None:
        folder = path.rpartition("/")[0]
        if folder and not any(other.startswith(folder + "/") for other in after):
            after[folder] = EMPTY
    return after


def overlay(base: Manifest, candidate: Manifest, allowed: Callable[[str], bool]) -> dict[str, Node]:
    """Return *base*, except that what stands at allowed paths comes from *candidate*: new, changed and deleted.

    Where the two cannot both be (one's file is the other's folder), *base* stands: what is not allowed never differs.
    """
    kept = {path: node for path, node in base.items() if not allowed(path)}
    folders = {folder for path in kept for folder in list_parents(path)}
    theirs = {
        path: node
        for path, node in candidate.items()
        if allowed(path) and path not in folders and not any(_solid(kept.get(folder)) for folder in list_parents(path))
    }
    merged = kept | theirs
    filled = {folder for path in merged for folder in list_parents(path)}
    return {path: node for path, node in merged.items() if path not in filled}


def _solid(node: Node | None) -> bool:
    return node is not None and node.kind is not EntryKind.DIR
