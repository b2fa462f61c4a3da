"""Encodes a tree in runs of entries: an edit encodes its own run anew, and is hashed from there on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from hashlib import sha256
from itertools import groupby
from typing import Any

import msgspec

from jumar.workspace.files import trees
from jumar.workspace.files.trees import Manifest

RUN = 32
"""Entries of a run when it is made; one that grows to more than twice as many is parted."""


class _Run(msgspec.Struct, frozen=True):
    """Neighbours in a tree."""

    paths: tuple[str, ...]
    """Sorted."""
    data: bytes
    """Their entries, with a comma between two."""
    hashed: Any
    """State of the hash after it, which is copied before it is fed."""


class TreeText:
    """Canonical bytes of a tree, and their hash."""

    def __init__(self, runs: list[_Run]) -> None:
        self._runs = runs

    @classmethod
    def build(cls, manifest: Manifest) -> TreeText:
        """Encode *manifest*; see `trees.encode`."""
        return cls(_append([], manifest, sorted(manifest)))

    def change(self, manifest: Manifest, changed: Collection[str]) -> TreeText:
        """Encode *manifest*, which differs from this tree at the paths *changed* at most."""
        if not self._runs:
            return TreeText.build(manifest)
        firsts = [run.paths[0] for run in self._runs]
        news = {
            place: {*self._runs[place].paths, *paths}
            for place, paths in groupby(sorted(changed), lambda path: max(0, bisect_right(firsts, path) - 1))
        }
        start = min(news, default=len(self._runs))
        runs = self._runs[:start]
        for place, run in enumerate(self._runs[start:], start):
            if place in news:
                _append(runs, manifest, sorted(path for path in news[place] if path in manifest))
            else:
                runs.append(_Run(run.paths, run.data, _hash_on(runs, run.data)))
        return TreeText(runs)

    @property
    def tree(self) -> str:
        """Return the hash of the tree."""
        state = self._runs[-1].hashed.copy() if self._runs else sha256(b"[")
        state.update(b"]")
        return str(state.hexdigest())

    @property
    def data(self) -> bytes:
        """Return the canonical bytes."""
        return b"[%b]" % b",".join([run.data for run in self._runs])


def _append(runs: list[_Run], manifest: Manifest, paths: list[str]) -> list[_Run]:
    """Append the entries of *paths* to *runs*."""
    size = RUN if len(paths) > 2 * RUN else len(paths)
    for start in range(0, len(paths), size or 1):
        part = paths[start : start + size]
        data = b",".join([trees.encode_node(path, manifest[path]) for path in part])
        runs.append(_Run(tuple(part), data, _hash_on(runs, data)))
    return runs


def _hash_on(runs: list[_Run], data: bytes) -> Any:
    """Return the state of the hash after *data*, which follows *runs*."""
    if not runs:
        return sha256(b"[" + data)
    state = runs[-1].hashed.copy()
    state.update(b"," + data)
    return state
