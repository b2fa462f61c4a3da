"""Keeps the newest trees of a store in memory: an edit is stored as its difference from one of them."""

from __future__ import annotations

from jumar.workspace.files import trees
from jumar.workspace.files.trees import Manifest

TREES, BYTES = 4, 8_000_000
"""Most trees that are kept, and most bytes of their manifests."""

LEAST = 2
"""Trees that stay, however large: the one that is edited, and the edited one."""

FEW = 64
"""Most changed paths for which the bytes of a manifest are made from those of another one."""


class RecentTrees:
    """Manifests by the hash of their tree, each with its canonical bytes. The least recently used ones go."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Manifest, bytes]] = {}

    def add(self, tree: str, manifest: Manifest, data: bytes) -> None:
        """Keep the *manifest* of *tree*, whose canonical bytes are *data*, as the newest."""
        # An equal manifest that is here already has others that were made from it.
        self._held[tree] = self._held.pop(tree, (manifest, data))
        while len(self._held) > LEAST and (len(self._held) > TREES or self._count_bytes() > BYTES):
            self._held.pop(next(iter(self._held)), None)

    def get(self, tree: str) -> Manifest | None:
        """Return the manifest of *tree*, which becomes the newest; None: it is not kept."""
        held = self._held.get(tree)
        if held is None:
            return None
        self.add(tree, *held)
        return held[0]

    def encode(self, manifest: Manifest) -> tuple[Manifest, bytes]:
        """Return *manifest* and its canonical bytes, both derived from a near newest tree if there is one."""
        if self._held:
            near, data = next(reversed(self._held.values()))
            changed = trees.find_differences(near, manifest)
            if len(changed) <= FEW:
                near = trees.derive(near, {path: manifest.get(path) for path in changed}) if changed else near
                return near, trees.encode_changed(data, near, changed)
        return manifest, trees.encode(manifest)

    def _count_bytes(self) -> int:
        return sum(len(data) for _, data in self._held.values())
