"""Cache of crates from registries: a room's target folder starts as a copy of what cargo built of them.

Crates of the room are never kept. Cargo finds those that are by the hash in their names and by fingerprints that bear
their version, features, profile and compiler, so that one which does not fit is built again; a room only ever has
copies, so that nothing it does to them is seen by another. The first tree that builds makes the seed: the task's own
one, which is judged before any candidate.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

SEEDS = 8
"""Number of caches kept, the most recently used ones."""

NAMED = re.compile(r"(.+)-[0-9a-f]{16}")
"""A folder of cargo's that belongs to a package."""


class BuildCache:
    """The crates from elsewhere that the workspace in the folder *root* is built with."""

    def __init__(self, store: str, root: str, target: str) -> None:
        self._target = Path(target)
        files = (
            [Path(root, "Cargo.lock")] if Path(root, "Cargo.lock").is_file() else sorted(Path(root).rglob("Cargo.toml"))
        )
        digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files))
        self._place = Path(store, digest.hexdigest()[:32]) if store else None

    def restore(self) -> None:
        """Begin the target folder with the seed, if there is one."""
        if self._place is not None and self._place.is_dir():
            with contextlib.suppress(OSError):
                os.utime(self._place)
            with contextlib.suppress(OSError, shutil.Error):
                shutil.copytree(self._place, self._target, symlinks=True, dirs_exist_ok=True)

    def keep(self, packages: Collection[str], files: Iterable[str]) -> None:
        """Make a seed, where there is none, of the folders of *packages* and of *files*, which are theirs."""
        if self._place is None or not packages or self._place.exists():
            return
        with contextlib.suppress(OSError, shutil.Error):
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = tempfile.mkdtemp(dir=self._place.parent)
            try:
                self._copy(Path(new), packages, files)
                Path(new).rename(self._place)
            finally:
                shutil.rmtree(new, ignore_errors=True)
            self._forget()

    def _copy(self, new: Path, packages: Collection[str], files: Iterable[str]) -> None:
        for folder in [f for kind in ("build", ".fingerprint") for f in self._target.glob(f"*/{kind}/*")]:
            named = NAMED.fullmatch(folder.name)
            if named and named[1] in packages:
                shutil.copytree(folder, new / folder.relative_to(self._target), symlinks=True)
        for file in (path for name in files for path in _list_family(Path(name))):
            place = new / file.relative_to(self._target)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)

    def _forget(self) -> None:
        """Remove seeds that nobody used for long."""
        if self._place is not None:
            seeds = sorted(self._place.parent.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
            for old in seeds[SEEDS:]:
                shutil.rmtree(old, ignore_errors=True)


def _list_family(file: Path) -> list[Path]:
    """Return a built file, and the list of what it was built from, which cargo looks for beside it."""
    listed = file.with_name(f"{file.stem.removeprefix('lib')}.d")
    return [path for path in (file, listed) if path.is_file() and path.parent.name == "deps"]
