"""Writes a batch of objects to disk: written first, synced together, named last, so that no object is torn."""

from __future__ import annotations

import os
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from jumar.errors import Infra
from jumar.workspace.files import safe_paths
from jumar.workspace.files.disk_faults import name_path
from jumar.workspace.files.trees import Manifest
from jumar.workspace.store import deltas
from jumar.workspace.store.lease import PARTS, Lease
from jumar.workspace.store.recent_trees import RecentTrees

_BATCH = 256
"""Files written before they are synced together: far below the usual limit of open descriptors."""


class WrittenObjects:
    """Objects that one store of this process has written or found, and its lease."""

    def __init__(self, lease: Lease, *, lasting: bool = True) -> None:
        """*lasting* as in `Store`."""
        self.lease, self.lasting = lease, lasting
        self.known: set[str] = set()
        self.base: tuple[str, Manifest] | None = None
        """A tree whose manifest is kept whole."""
        self.recent = RecentTrees()


class ObjectBatch:
    """Objects that are stored together: all of them last when the block ends, or none may be relied on."""

    def __init__(self, root: Path, written: WrittenObjects) -> None:
        self._root, self._written = root, written
        self._held = ExitStack()
        self._open: dict[str, tuple[Path, int]] = {}
        self._folders: set[Path] = set()
        self._seen: set[str] = set()

    def __enter__(self) -> None:
        new = not self._root.is_dir()
        self._written.lease.take()
        if new and self._written.lasting:
            safe_paths.sync(self._root.parent)
        (self._root / PARTS).mkdir(exist_ok=True)
        self._held.enter_context(self._written.lease.hold_off_sweep())

    def __exit__(self, kind: object, *_: object) -> None:
        with self._held:
            if kind is not None:
                self._drop()
                return
            try:
                self._name_parts()
                if self._written.lasting:
                    safe_paths.sync_together(safe_paths.sync, self._folders)
            except OSError:
                self._drop()
                raise
            self._written.known |= self._seen

    def put(self, data: bytes) -> str:
        """Store *data* and return its hash."""
        digest = sha256(data).hexdigest()
        if not self._is_known(digest) and (size := self._find_length(digest)) is None:
            self._write(digest, data)
        elif not self._is_known(digest) and size != len(data):
            raise Infra(f"object {digest} in {self._root} is damaged: it is {size} bytes long, not {len(data)}")
        self._seen.add(digest)
        return digest

    def put_tree(self, manifest: Manifest) -> str:
        """Store *manifest*, whole or as a difference; return the tree's hash."""
        tree, manifest, text = self._written.recent.encode(manifest)
        if not self._is_known(tree) and not self._store_delta(tree, manifest):
            self.put(text.data)
            self._written.base = (tree, manifest)
        self._seen.add(tree)
        return tree

    def _store_delta(self, digest: str, manifest: Manifest) -> bool:
        """Store *manifest* as a difference, if it is not stored whole; return whether it is stored as one now."""
        base, name = self._written.base, digest + deltas.SUFFIX
        difference = deltas.encode_delta(*base, manifest) if base is not None else None
        if difference is None or base is None or self._find_length(digest) is not None:
            return False
        if self._find_length(name) is not None:
            known = deltas.read_base((self._root / name[:2] / name[2:]).read_bytes())
            return self._find_length(known) is not None  # what it begins from is wanted as long as it is
        if not self._is_known(base[0]):
            if self._find_length(base[0]) is None:
                return False
            self._seen.add(base[0])
        self._write(name, difference)
        return True

    def _is_known(self, digest: str) -> bool:
        return digest in self._written.known or digest in self._seen

    def _find_length(self, name: str) -> int | None:
        """Return the length of the object *name*, or None if missing. Its ctime is renewed: it is needed still."""
        folder = self._root / name[:2]
        path = folder / name[2:]
        try:
            found = path.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        except FileNotFoundError:
            return None
        # Whoever named it may have been killed before its folder was synced.
        self._folders.add(folder)
        return found.st_size

    def _write(self, name: str, data: bytes) -> None:
        path = self._root / PARTS / f"{self._written.lease.name}-{uuid4().hex}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._open[name] = (path, fd)
        with name_path(path):
            safe_paths.write_all(fd, data)
        if len(self._open) >= _BATCH:
            self._name_parts()

    def _name_parts(self) -> None:
        if self._written.lasting:
            safe_paths.sync_together(os.fsync, [fd for _, fd in self._open.values()])
        for name, (path, fd) in list(self._open.items()):
            folder = self._root / name[:2]
            if folder not in self._folders and not folder.is_dir():
                folder.mkdir(exist_ok=True)
                self._folders.add(self._root)
            path.rename(folder / name[2:])
            self._folders.add(folder)
            del self._open[name]
            os.close(fd)

    def _drop(self) -> None:
        for path, fd in self._open.values():
            os.close(fd)
            path.unlink(missing_ok=True)
        self._open.clear()
