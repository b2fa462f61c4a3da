"""Rooms: a tree laid out afresh for one process and removed afterwards, with all that the process left."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread


class TreeStore(Protocol):
    """Store from which the files of a tree are read."""

    def materialise(self, tree: str, dest: Path) -> None:
        """Write the files of *tree* into the new directory *dest*."""
        ...


@asynccontextmanager
async def lay_out(store: TreeStore, tree: str, rooms: Path) -> AsyncIterator[Path]:
    """Yield a fresh directory below *rooms* with the files of *tree*, removed on leaving."""
    room = _make_absolute(rooms) / secrets.token_hex(4)
    try:
        await to_thread.run_sync(store.materialise, tree, room)
        yield room
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard, room)


def _make_absolute(path: Path) -> Path:
    return path.absolute()


def discard(directory: Path) -> None:
    """Remove *directory*, with files that a process made unreadable; files that cannot be removed stay."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for parent, folders, _ in os.walk(directory):
            for folder in folders:
                with suppress(OSError):
                    Path(parent, folder).chmod(0o700, follow_symlinks=False)
        shutil.rmtree(directory, ignore_errors=True)


def make_links(room: Path, links: Mapping[str, Path]) -> None:
    """Make *links* in *room*: path there -> target. Existing paths stay."""
    for path, target in links.items():
        place = room / path
        real = room.joinpath(*Path(path).parent.parts).resolve() == room.resolve().joinpath(*Path(path).parent.parts)
        if real and not os.path.lexists(place):  # a link in the tree must not lead us out of the room
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)


def replace_files(room: Path, files: Mapping[str, bytes]) -> None:
    """Write *files* over those of *room*."""
    for path, content in files.items():
        place = room / path
        place.unlink(missing_ok=True)
        place.write_bytes(content)


def list_paths(room: Path) -> list[str]:
    """Return the files in *room*, the fresh copy of a tree for one verification, in order."""
    return sorted(path.relative_to(room).as_posix() for path in room.rglob("*") if path.is_file())
