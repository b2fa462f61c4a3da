"""Stores bytes by their sha256; they never change. In a lasting store what `put` or `capture` named is on disk then."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from jumar.errors import BadInput, Infra
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.checkout import Checkout
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.scan import FolderScan
from jumar.workspace.files.stat_cache import StatCache
from jumar.workspace.files.trees import Manifest
from jumar.workspace.store import deltas
from jumar.workspace.store.batch import ObjectBatch, WrittenObjects
from jumar.workspace.store.clone import Cloner
from jumar.workspace.store.lease import PARTS, Lease, list_held_leases

LIMIT_BYTES = 1 << 30
"""Default limit on the bytes of all files of one tree together."""

_HASH = re.compile("[0-9a-f]{64}")


class Store:
    """The objects of one run, or of all runs in a folder. Equal names are equal bytes: any number may read and write.

    What a writer stores while it has its lease is swept by nobody (`jumar.workspace.store.sweep`).
    """

    def __init__(self, root: Path, *, lasting: bool = True) -> None:
        """*lasting*: what is stored outlives a failure of power; false where nobody reads it after this process."""
        self.root = root
        self.limit_bytes = LIMIT_BYTES
        """Most bytes of the files of one tree."""
        self._written = WrittenObjects(Lease(root), lasting=lasting)
        self._cloner = Cloner()

    def put(self, data: bytes) -> str:
        """Store *data* and return its hash.

        Raises:
            Infra: if the disk refuses; nothing half-written has a name.
        """
        return self.put_all([data])[0]

    def put_all(self, many: list[bytes]) -> list[str]:
        """Store several objects under one round of syncs; return their hashes, in order."""
        batch = ObjectBatch(self.root, self._written)
        with explain_disk_faults(f"cannot write to {self.root}"), batch:
            return [batch.put(data) for data in many]

    def get(self, digest: str) -> bytes:
        """Return the bytes named *digest*.

        Raises:
            BadInput: if *digest* is no hash.
            Infra: if the object is missing, unreadable or damaged.
        """
        if not _HASH.fullmatch(digest):
            raise BadInput(f"{digest!r} is not the hash of a tree or file; `jumar log show` names those of a run")
        path = self.root / digest[:2] / digest[2:]
        with explain_disk_faults(f"object {digest} cannot be read from {self.root}"):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                data = self._read_delta(path)
        if sha256(data).hexdigest() != digest:
            raise Infra(f"object {digest} in {self.root} is damaged: its bytes have another hash")
        return data

    def _read_delta(self, path: Path) -> bytes:
        """Return the bytes of a manifest that is stored as a difference.

        Raises:
            OSError: as of a file, if there is none of that name either.
        """
        difference = path.with_name(path.name + deltas.SUFFIX).read_bytes()
        try:
            return deltas.apply_delta(self.manifest(deltas.read_base(difference)), difference)
        except (ValueError, BadInput) as fault:
            raise Infra(f"object {path.parent.name}{path.name} in {self.root} is damaged: {fault}") from fault

    def manifest(self, tree: str) -> Manifest:
        """Return the node at each path of *tree*.

        Raises:
            Infra: if the object is missing, damaged or no manifest.
        """
        if (held := self._written.recent.get(tree)) is not None:
            return held
        data = self.get(tree)
        try:
            manifest = trees.decode(data)
        except ValueError as fault:
            raise Infra(f"object {tree} in {self.root} is no tree: {fault}") from fault
        self._written.recent.add(tree, manifest)
        if self._written.base is None and (self.root / tree[:2] / tree[2:]).exists():
            self._written.base = (tree, manifest)
        return manifest

    def keep(self, manifest: Manifest, *contents: bytes) -> str:
        """Store *manifest*, and the *contents* it names that are not stored yet; return the tree's hash."""
        batch = ObjectBatch(self.root, self._written)
        with explain_disk_faults(f"cannot write to {self.root}"), batch:
            for data in contents:
                batch.put(data)
            return batch.put_tree(manifest)

    def capture(
        self,
        folder: Path,
        limit_bytes: int | None = None,
        skip: Callable[[str], bool] = lambda _: False,
        cache: StatCache | None = None,
    ) -> str:
        """Store all that is in *folder*, but for histories, caches and virtual environments; return the tree's hash.

        Paths that *skip* names (folders with a slash at their end) are not even read; files that the *cache* of this
        folder and store knows are not read again.

        Raises:
            BadInput: if something in it cannot be read, is neither file, folder nor link, or it all weighs too much.
            Infra: if the disk refuses.
        """
        batch = ObjectBatch(self.root, self._written)
        explain = partial(explain_disk_faults, f"cannot write to {self.root}")

        def put(data: bytes) -> str:
            with explain():
                return batch.put(data)

        scan = FolderScan(limit_bytes or self.limit_bytes, skip, put, cache)
        with safe_paths.open_root(folder) as top, explain(), batch:
            tree = batch.put_tree(scan.read(top))
        if cache is not None:
            cache.keep(scan.manifest)
        return tree

    def materialise(self, tree: str, dest: Path) -> None:
        """Lay *tree* out in *dest*, a new or empty folder. It is not synced: the objects can restore it.

        Raises:
            Infra: if *dest* holds something already, or the disk refuses.
        """
        self._lay_out(tree, dest, Checkout(self.get, lambda _: False, self._clone, fresh=True))

    def _lay_out(self, tree: str, dest: Path, aligner: Checkout) -> None:
        with explain_disk_faults(f"cannot lay out a tree in {dest}"):
            dest.mkdir(parents=True, exist_ok=True)
            if any(dest.iterdir()):
                raise Infra(f"cannot lay out a tree in {dest}: it is not empty")
            self._align(dest, self.manifest(tree), aligner)

    def align(
        self,
        folder: Path,
        manifest: Manifest,
        skip: Callable[[str], bool] = lambda _: False,
        now: Manifest | None = None,
    ) -> None:
        """Make *folder* equal to *manifest*, byte for byte. Paths that no tree holds stay with their folders.

        So does what *skip* names (folders with a slash at their end): it is not even read. If *now* is given, which
        the folder is known to hold, only what differs is looked at.

        Raises:
            OSError: if the disk refuses.
            Infra: if the manifest has something beneath what is no folder.
        """
        changed = None if now is None else trees.find_differences(now, manifest)
        if changed is None or changed:
            self._align(folder, manifest, Checkout(self.get, skip, self._clone), changed)

    def _align(
        self, folder: Path, manifest: Manifest, aligner: Checkout, changed: tuple[str, ...] | None = None
    ) -> None:
        try:
            wanted = trees.nest(manifest) if changed is None else trees.nest_part(manifest, changed)
        except ValueError as fault:
            raise Infra(f"{folder} cannot be laid out: {fault}") from fault
        within = None if changed is None else trees.list_by_folder(changed)
        with safe_paths.open_root(folder) as top:
            aligner.align(top, wanted, within=within)

    def _clone(self, digest: str, target: int, size: int) -> bool:
        return self._cloner.clone(self.root / digest[:2] / digest[2:], target, size)

    @property
    def clones(self) -> bool:
        """Return whether laid-out files share their blocks with the objects, without an exception."""
        return self._cloner.works

    def overlay(self, base: str, candidate: str, allowed: Callable[[str], bool]) -> str:
        """Return the tree of *base* with what *candidate* has at *allowed* paths."""
        return self.keep(trees.overlay(self.manifest(base), self.manifest(candidate), allowed))

    def release(self) -> None:
        """Release what was stored: nothing more is written through this store."""
        self._written.lease.end()

    def sweep(self) -> None:
        """Remove the unfinished files of killed writers."""
        living = list_held_leases(self.root)
        for rest in (self.root / PARTS).glob("*"):
            if rest.name.partition("-")[0] not in living:
                rest.unlink(missing_ok=True)
