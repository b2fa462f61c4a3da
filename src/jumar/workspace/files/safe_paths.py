"""Opens paths without leaving the root: step by step by descriptor, without following links or blocking."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from jumar.errors import BadInput
from jumar.workspace.files.disk_faults import name_path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_OWNER = 0o700
_SYNCS = 8

T = TypeVar("T")


def split_path(path: str) -> tuple[str, ...]:
    """Return the parts of a relative *path*.

    Raises:
        ValueError: if it is empty, absolute, or has an empty, `.` or `..` part, or a part no disk can name.
    """
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{path!r} is not a path beneath the workspace: give it relative, without . or ..")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as fault:
        raise ValueError(f"{path!r} is not a name that a disk can hold") from fault
    return parts


@contextmanager
def open_root(folder: Path) -> Iterator[int]:
    """Yield a descriptor of *folder* itself; the person named it, so links on the way to it are followed.

    Raises:
        BadInput: if it is not a folder that can be opened.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as fault:
        raise BadInput(
            f"{str(folder)!r} cannot be opened as a folder: {fault.strerror}; name one that exists"
        ) from fault
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def open_inside(folder: int, name: str, *, unlock: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder *name* in *folder*; with *unlock* its owner's rights are restored.

    Raises:
        OSError: ENOTDIR if it is no folder, or a link to one.
    """
    fd = _open_unlocked(folder, name) if unlock else os.open(name, FOLDER, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _open_unlocked(folder: int, name: str) -> int:
    # O_PATH needs no permission on the folder itself, and chmod through /proc cannot be led astray by a swapped name.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & _OWNER != _OWNER:
            Path(f"/proc/self/fd/{handle}").chmod(mode | _OWNER)
    finally:
        os.close(handle)
    return os.open(name, FOLDER, dir_fd=folder)


@contextmanager
def open_parent(
    top: int, path: str, *, create: bool = False, unlock: bool = False, enter: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the folder that holds *path* beneath *top*, and the last part of *path*.

    With *create* missing folders on the way are made; with *unlock* see `open_inside`. *enter* is called with each
    folder on the way, and may refuse it.

    Raises:
        ValueError: if *path* is not a path beneath.
        OSError: ENOENT, or ENOTDIR where a step is a file or a link.
    """
    *way, name = split_path(path)
    fd = os.dup(top)
    try:
        for step in way:
            if create and lstat(fd, step) is None:
                os.mkdir(step, dir_fd=fd)
            below = _open_unlocked(fd, step) if unlock else os.open(step, FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
            enter(fd)
        yield fd, name
    finally:
        os.close(fd)


def lstat(folder: int, name: str) -> os.stat_result | None:
    """Return the status of *name* in *folder*, without following a link; None if it is missing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def list_names(folder: int) -> list[str]:
    """Return the names in *folder*, sorted."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def read(folder: int, name: str, limit_bytes: int | None = None) -> tuple[bytes, bool]:
    """Return the bytes of the regular file *name* in *folder*, and whether its owner may execute it.

    Raises:
        OSError: if it cannot be read, or is no regular file (EINVAL), or is larger than *limit_bytes* (EFBIG).
    """
    with open_file(folder, name) as fd:
        data, found = read_whole(fd, limit_bytes)
    return data, bool(found.st_mode & stat.S_IXUSR)


@contextmanager
def open_file(folder: int, name: str) -> Iterator[int]:
    """Yield a descriptor of *name* in *folder*, open for reading; it follows no link and never blocks."""
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def read_whole(fd: int, limit_bytes: int | None) -> tuple[bytes, os.stat_result]:
    """Return all bytes of the file *fd*, and its stat before they were read.

    Raises:
        OSError: as `read`.
    """
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if limit_bytes is not None and found.st_size > limit_bytes:
        raise OSError(errno.EFBIG, "it is too large")
    with open(fd, "rb", buffering=0, closefd=False) as file:
        return file.read(), found


def link(folder: int, name: str) -> bytes:
    """Return the text of the link *name* in *folder*."""
    return os.readlink(os.fsencode(name), dir_fd=folder)


def create(folder: int, name: str, data: bytes, *, executable: bool = False) -> None:
    """Create the regular file *name* in *folder*; nothing may be there yet, so nothing is written through."""
    make(folder, name, lambda fd: write_all(fd, data), executable=executable)


def make(folder: int, name: str, fill: Callable[[int], None], *, executable: bool = False) -> None:
    """Create a file as `create` does, with the content that *fill* writes to the open file."""
    fd = os.open(name, _NEW, 0o777 if executable else 0o666, dir_fd=folder)
    try:
        fill(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of *data*, however short the single writes are."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def replace_file(path: Path, data: bytes) -> None:
    """Write *data* to *path*, whole or not at all: the old file stays if the disk refuses.

    Raises:
        OSError: if the disk refuses.
    """
    new = path.with_name(f".jumar-{uuid4().hex}.tmp")
    try:
        with name_path(path):
            new.write_bytes(data)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def sync(folder: Path) -> None:
    """Sync the names in *folder*."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_together(sync_one: Callable[[T], None], many: Collection[T]) -> None:
    """Sync *many* at once: a file system serves several syncs at a time with one commit."""
    if len(many) < _SYNCS:
        for one in many:
            sync_one(one)
        return
    with ThreadPoolExecutor(_SYNCS) as pool:
        for _ in pool.map(sync_one, many):
            pass


def remove(folder: int, name: str) -> None:
    """Remove *name* from *folder*: a file, a link, a device, or a folder with all that is in it, locked or not.

    Folders are lifted out of each other first: however deep the nesting, it costs neither descriptors nor stack.
    """
    found = lstat(folder, name)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    due = [name]
    while due:
        with open_inside(folder, due[-1], unlock=True) as fd:
            lifted = [_lift(fd, inner, folder) for inner in list_names(fd)]
        os.rmdir(due.pop(), dir_fd=folder)
        due += [inner for inner in lifted if inner]


def _lift(fd: int, name: str, folder: int) -> str:
    """Return the new name of the folder *name* of *fd* in *folder*; empty if it was no folder and was removed."""
    found = lstat(fd, name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=fd)
        return ""
    new = make_temporary_name()
    with open_inside(fd, name, unlock=True):
        os.rename(name, new, src_dir_fd=fd, dst_dir_fd=folder)
    return new


def make_temporary_name() -> str:
    """Return a name for a file that is not complete yet.

    Should a kill leave it behind, it is part of no tree (`trees.leftover`).
    """
    return f".jumar-{uuid4().hex}.tmp"
