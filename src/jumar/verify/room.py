"""A room is a tree laid out afresh for one process, and gone afterwards, whatever that process left in it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread


class Store(Protocol):
    """Where trees lie."""

    def materialise(self, tree: str, dest: Path) -> None:
        """Write the files of *tree* into the new directory *dest*."""
        ...


@asynccontextmanager
async def laid_out(store: Store, tree: str, rooms: Path) -> AsyncIterator[Path]:
    """A fresh directory below *rooms* with the files of *tree*, removed on leaving."""
    room = _absolute(rooms) / secrets.token_hex(4)
    try:
        await to_thread.run_sync(store.materialise, tree, room)
        yield room
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard, room)


def _absolute(path: Path) -> Path:
    return path.absolute()


def discard(directory: Path) -> None:
    """Remove *directory*, including what a process below made unreadable; what cannot be removed stays."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for parent, folders, _ in os.walk(directory):
            for folder in folders:
                with suppress(OSError):
                    Path(parent, folder).chmod(0o700, follow_symlinks=False)
        shutil.rmtree(directory, ignore_errors=True)
