"""Bytes are named by their sha256 and never change. What `put` or `capture` named is on the disk before it returns."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from jumar.disk import beneath, trees
from jumar.disk.align import Aligner
from jumar.disk.trees import Kind, Manifest, Node
from jumar.disk.walk import Walk
from jumar.errors import BadInput, Infra

LIMIT_BYTES = 1 << 30
"""What the files of one tree may weigh together."""

_BATCH = 256
"""Files written before they are synced together: far below the usual limit of open descriptors."""

_HASH = re.compile("[0-9a-f]{64}")


class Store:
    """The objects of one run. Any number of readers; writers may share it, since equal names are equal bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        """Keep *data*; its hash.

        Raises:
            Infra: if the disk refuses; nothing half-written has a name.
        """
        return self.put_all([data])[0]

    def put_all(self, many: list[bytes]) -> list[str]:
        """Keep several objects under one round of syncs; their hashes, in order."""
        batch = _Batch(self.root, self._known)
        with beneath.disk(f"cannot write to {self.root}"), batch:
            return [batch.put(data) for data in many]

    def get(self, digest: str) -> bytes:
        """The bytes named *digest*.

        Raises:
            BadInput: if *digest* is no hash.
            Infra: if the object is missing, unreadable or damaged.
        """
        if not _HASH.fullmatch(digest):
            raise BadInput(f"{digest!r} is not the hash of a tree or file; `jumar log show` names those of a run")
        with beneath.disk(f"object {digest} cannot be read from {self.root}"):
            data = (self.root / digest[:2] / digest[2:]).read_bytes()
        if sha256(data).hexdigest() != digest:
            raise Infra(f"object {digest} in {self.root} is damaged: its bytes have another hash")
        return data

    def manifest(self, tree: str) -> Manifest:
        """What stands at each path of *tree*.

        Raises:
            Infra: if the object is missing, damaged or no manifest.
        """
        try:
            return trees.decode(self.get(tree))
        except ValueError as fault:
            raise Infra(f"object {tree} in {self.root} is no tree: {fault}") from fault

    def keep(self, manifest: Manifest, *contents: bytes) -> str:
        """Keep *manifest*, and the *contents* it names that are not kept yet; the tree's hash."""
        return self.put_all([*contents, trees.encode(manifest)])[-1]

    def capture(
        self, folder: Path, limit_bytes: int = LIMIT_BYTES, skip: Callable[[str], bool] = lambda _: False
    ) -> str:
        """Keep all that is in *folder*, but for histories, caches and virtual environments; the tree's hash.

        Paths that *skip* names (folders with a slash at their end) are not even read.

        Raises:
            BadInput: if something in it cannot be read, is neither file, folder nor link, or it all weighs too much.
            Infra: if the disk refuses.
        """
        manifest: dict[str, Node] = {}
        batch = _Batch(self.root, self._known)
        with beneath.root(folder) as top, beneath.disk(f"cannot write to {self.root}"), batch:
            for found in Walk(limit_bytes, skip).through(top):
                digest = "" if found.kind is Kind.DIR else batch.put(found.data)
                manifest[found.path] = Node(found.kind, digest, found.executable)
            return batch.put(trees.encode(manifest))

    def materialise(self, tree: str, dest: Path) -> None:
        """Lay *tree* out in *dest*, a new or empty folder. It is not synced: the objects are, and can do it again.

        Raises:
            Infra: if *dest* holds something already, or the disk refuses.
        """
        with beneath.disk(f"cannot lay out a tree in {dest}"):
            dest.mkdir(parents=True, exist_ok=True)
            if any(dest.iterdir()):
                raise Infra(f"cannot lay out a tree in {dest}: it is not empty")
            self.align(dest, self.manifest(tree))

    def align(self, folder: Path, manifest: Manifest, skip: Callable[[str], bool] = lambda _: False) -> None:
        """Make *folder* equal to *manifest*, byte for byte. What is never part of a tree stays where its folder does.

        So does what *skip* names (folders with a slash at their end): it is not even read.

        Raises:
            OSError: if the disk refuses.
            Infra: if the manifest has something beneath what is no folder.
        """
        try:
            wanted = trees.levels(manifest)
        except ValueError as fault:
            raise Infra(f"{folder} cannot be laid out: {fault}") from fault
        with beneath.root(folder) as top:
            Aligner(self.get, skip).align(top, wanted)

    def overlay(self, base: str, candidate: str, allowed: Callable[[str], bool]) -> str:
        """The tree of *base*, except that what stands at *allowed* paths comes from *candidate*."""
        return self.keep(trees.overlay(self.manifest(base), self.manifest(candidate), allowed))

    def sweep(self) -> None:
        """Remove what a killed writer left half-written. Only the holder of the run's journal may call it."""
        for rest in (self.root / "tmp").glob("*"):
            rest.unlink(missing_ok=True)


class _Batch:
    """Objects on their way to the disk: written apart, synced together, named last, so that a name is never torn."""

    def __init__(self, root: Path, known: set[str]) -> None:
        self._root, self._known = root, known
        self._open: dict[str, tuple[Path, int]] = {}
        self._folders: set[Path] = set()
        self._seen: set[str] = set()

    def __enter__(self) -> None:
        if not self._root.is_dir():
            self._root.mkdir(parents=True)
            beneath.sync(self._root.parent)
        (self._root / "tmp").mkdir(exist_ok=True)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._drop()
            return
        try:
            self._land()
            beneath.together(beneath.sync, self._folders)
        except OSError:
            self._drop()
            raise
        self._known |= self._seen

    def put(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        if digest in self._known or digest in self._seen:
            return digest
        self._seen.add(digest)
        folder = self._root / digest[:2]
        try:
            size = (folder / digest[2:]).stat().st_size
        except FileNotFoundError:
            self._write(digest, data)
        else:
            if size != len(data):
                raise Infra(f"object {digest} in {self._root} is damaged: it is {size} bytes long, not {len(data)}")
            # Whoever named it may have been killed before its folder was synced.
            self._folders.add(folder)
        return digest

    def _write(self, digest: str, data: bytes) -> None:
        path = self._root / "tmp" / uuid4().hex
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        self._open[digest] = (path, fd)
        beneath.write_all(fd, data)
        if len(self._open) >= _BATCH:
            self._land()

    def _land(self) -> None:
        beneath.together(os.fsync, [fd for _, fd in self._open.values()])
        for digest, (path, fd) in list(self._open.items()):
            folder = self._root / digest[:2]
            if folder not in self._folders and not folder.is_dir():
                folder.mkdir(exist_ok=True)
                self._folders.add(self._root)
            path.rename(folder / digest[2:])
            self._folders.add(folder)
            del self._open[digest]
            os.close(fd)

    def _drop(self) -> None:
        for path, fd in self._open.values():
            os.close(fd)
            path.unlink(missing_ok=True)
        self._open.clear()
