"""Lays out rooms as hard links to the objects, for processes that cannot write them, as below an overlay."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from jumar.workspace.files.checkout import Checkout
from jumar.workspace.files.trees import Node
from jumar.workspace.store.object_store import Store


class LinkingStore(Store):
    """Store that lays trees out as hard links, which costs no bytes. These files must not be written in place.

    Who wants another file there removes the link first. Executable files are copies: the bit is one of all names.
    """

    def materialise(self, tree: str, dest: Path) -> None:
        """Lay *tree* out in *dest*, a new or empty folder.

        Raises:
            Infra: as `Store.materialise`.
        """
        self._lay_out(tree, dest, Linker(self.get, lambda _: False, self._clone, fresh=True, root=self.root))


class Linker(Checkout, frozen=True):
    """Makes new folders equal to trees, by links to the objects below *root* if possible."""

    root: Path = Path()

    def _create(self, folder: int, name: str, node: Node, data: bytes) -> None:
        if not node.executable:
            with suppress(OSError):  # another file system, or too many names: then it is a copy
                os.link(self.root / node.sha256[:2] / node.sha256[2:], name, dst_dir_fd=folder, follow_symlinks=False)
                return
        super()._create(folder, name, node, data)
