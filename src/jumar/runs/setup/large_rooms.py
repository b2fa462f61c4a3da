"""Lays out the rooms of large trees by hard links to the shared objects instead of copies, if that is safe."""

from __future__ import annotations

from jumar.core.state.settings import Settings
from jumar.ports import Sandbox
from jumar.workspace.store.linking import LinkingStore
from jumar.workspace.store.object_store import Store

LINKED_BYTES = 16 << 20
"""Rooms of smaller trees are copies: they cost little."""

UNTIMED = ("pytest", "vitest", "jest")
"""Runners that do not tell by the time of a file whether it has to be built again."""


def choose_room_store(store: Store, sandbox: Sandbox, settings: Settings) -> Store:
    """Return the store that lays out the rooms.

    By links, where the tree is large and no process can write the room's own files.

    Not for runners that compare times: a link has the time of its object.
    """
    below_an_overlay = getattr(sandbox, "layered", False)  # which only one kind of sandbox can say
    if below_an_overlay and settings.tree_bytes > LINKED_BYTES and settings.suite.runner in UNTIMED:
        return LinkingStore(store.root)
    return store
