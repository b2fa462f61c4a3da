"""Keeps the newest trees of a store in memory: an edit is stored as its difference from one of them."""

from __future__ import annotations

from jumar.workspace.files import trees
from jumar.workspace.files.trees import Manifest
from jumar.workspace.store.tree_text import TreeText

TREES, PATHS = 4, 50_000
"""Most trees that are kept, and most paths in them."""

LEAST = 2
"""Trees that stay, however large: the one that is edited, and the edited one."""

FEW = 64
"""Most changed paths for which the text of a tree is made from that of another one."""


class RecentTrees:
    """Manifests by the hash of their tree, with texts where one was asked for. The least recently used ones go."""

    def __init__(self) -> None:
        self._held: dict[str, Manifest] = {}
        self._texts: dict[str, TreeText] = {}

    def add(self, tree: str, manifest: Manifest) -> None:
        """Keep the *manifest* of *tree* as the newest."""
        # An equal manifest that is here already has others that were made from it.
        self._held[tree] = self._held.pop(tree, manifest)
        while len(self._held) > LEAST and (len(self._held) > TREES or sum(map(len, self._held.values())) > PATHS):
            oldest = next(iter(self._held))
            self._held.pop(oldest)
            self._texts.pop(oldest, None)

    def get(self, tree: str) -> Manifest | None:
        """Return the manifest of *tree*, which becomes the newest; None: it is not kept."""
        held = self._held.get(tree)
        if held is not None:
            self.add(tree, held)
        return held

    def encode(self, manifest: Manifest) -> tuple[str, Manifest, TreeText]:
        """Return the tree of *manifest*, which becomes the newest, the manifest itself, and its text.

        Both are derived from a near newest tree if there is one.
        """
        text = None
        if self._held:
            newest, near = next(reversed(self._held.items()))
            changed = trees.find_differences(near, manifest)
            if len(changed) <= FEW:
                manifest = trees.derive(near, {path: manifest.get(path) for path in changed}) if changed else near
                text = (self._texts.get(newest) or TreeText.build(near)).change(manifest, changed)
        text = text or TreeText.build(manifest)
        tree = text.tree
        self.add(tree, manifest)
        self._texts[tree] = text
        return tree, manifest, text
