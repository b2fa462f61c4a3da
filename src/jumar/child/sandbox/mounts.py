"""Gives a process its own namespaces and mounts: it sees little of the machine and can change nothing."""

from __future__ import annotations

# pathlib, typing and socket would double what it costs, and it starts once per verification.
# ruff: noqa: PTH102, PTH103, PTH108, PTH112, PTH114, PTH116, PTH120, PTH123, PTH211
import ctypes
import errno
import fcntl
import os
import stat
import struct

from jumar.child.sandbox.locks import LIBC, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
"""CLONE_NEW* of sched.h."""

NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, DEPENDENT = 2, 4, 8, 0x1000, 0x4000, 0x80000
"""MS_* of sys/mount.h."""

MOUNT_SETATTR, WHOLE, READ_ONLY = 442, 0x8000, 1
"""The system call, AT_RECURSIVE and MOUNT_ATTR_RDONLY."""

COVER = "size=256m,mode="
OPEN, SHUT = "1777", "755"
COVERS = {
    "/tmp": OPEN, "/var/tmp": OPEN, "/dev/shm": OPEN, "/run": SHUT, "/home": SHUT, "/root": SHUT,  # noqa: S108
    "/sys": SHUT,
}  # fmt: skip
"""Folders where others leave files, sockets and counters -> the mode of the empty folder in memory that covers it."""


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount *source* at *target*."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    text = None if data is None else os.fsencode(data)
    call(LIBC.mount(*words, ctypes.c_ulong(flags), text), f"mount {target}")


def change(path: str, what: tuple[int, int], reach: int) -> None:
    """Add and remove attributes of the mount at *path*, or of the WHOLE tree of mounts there."""
    attributes = struct.pack("<4Q", *what, 0, 0)
    place = os.fsencode(path)
    call(LIBC.syscall(MOUNT_SETATTR, -100, place, reach, attributes, ctypes.c_size_t(32)), f"mount {path}")


def unshare_namespaces(uid: int | None, *, numbered: bool) -> bool:
    """Unshare network, mounts and shared memory, all or none; return whether this process has its own now.

    One that will not become another user, *uid*, gets a user namespace too, without which it may make none of them.
    If *numbered*, its children will have process numbers of their own.

    Raises:
        OSError: if they were made and cannot be used: a network without its loopback, mounts that get out.
    """
    own, group = os.geteuid(), os.getegid()
    kinds = NEW_MOUNTS | NEW_IPC | NEW_NETWORK | (NEW_USER if uid is None else 0) | (NEW_PROCESSES if numbered else 0)
    if LIBC.unshare(kinds) < 0:
        return False
    if uid is None:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{own} {own} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    mount("none", "/", None, RECURSIVE | DEPENDENT)
    enable_loopback()
    return True


def is_proc_covered() -> bool:
    """Return whether something is mounted over parts of /proc, or it is read only.

    The kernel then mounts no other one in a user namespace.
    """
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounted = [(words[4], words[5].split(",")) for words in map(str.split, file)]
    return any(place.startswith("/proc/") or (place == "/proc" and "ro" in options) for place, options in mounted)


def hide_counters(hidden: Sequence[Sequence[Any]], constant: Mapping[str, bytes]) -> None:
    """Empty all that is *hidden* in /proc, pairs of a path and whether it is a folder, or give it *constant* content.

    They are made in /sys, which is an empty folder of our own by now, and are seen at their places alone.
    """
    for path, folder in hidden:
        if not os.path.lexists(path):
            continue
        if folder:
            mount("tmpfs", path, "tmpfs", NOSUID | NODEV, "size=4k,mode=555")
            continue
        with open("/sys/file", "wb") as file:
            file.write(constant.get(path, b""))
        mount("/sys/file", path, None, BIND)
        os.unlink("/sys/file")


def enable_loopback() -> None:
    """Switch the loopback on: a new network has one, but it is down."""
    anything = call(LIBC.socket(2, 2, 0), "a socket")
    request = struct.pack("16sH14x", b"lo", 0)
    (flags,) = struct.unpack_from("H", fcntl.ioctl(anything, 0x8913, request), 16)  # SIOCGIFFLAGS
    fcntl.ioctl(anything, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP
    os.close(anything)


def is_below(path: str, folder: str) -> bool:
    """Return whether *path* is *folder* or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def find_barrier(paths: Sequence[str], uid: int) -> str:
    """Return outermost folder on the way to the first of *paths* that *uid* cannot reach; empty: it can reach all."""
    for path in paths:
        parts = path.split("/")[1:-1]
        for length in range(1, len(parts) + 1):
            folder = "/" + "/".join(parts[:length])
            found = os.stat(folder) if os.path.isdir(folder) else None
            if found is not None and not found.st_mode & (stat.S_IXUSR if found.st_uid == uid else stat.S_IXOTH):
                return os.path.realpath(folder)
    return ""


def cover_folders(needed: Sequence[str], uid: int | None) -> list[str]:
    """Lay an empty folder over each of `COVERS` and over what *uid* could not pass, with *needed* in it.

    Those in which anybody may write are named.
    """
    laid = [
        folder
        for folder in COVERS
        if os.path.isdir(folder) and not os.path.islink(folder) and not any(is_below(folder, path) for path in needed)
    ]
    for folder in laid:
        lay(folder, COVERS[folder], needed)
    while uid is not None and (closed := find_barrier(needed, uid)):
        if closed in needed:
            raise OSError(errno.EACCES, f"{closed} is to be read, and closed to other users: open it (chmod o+rx)")
        lay(closed, SHUT, needed)
    return [folder for folder in laid if COVERS[folder] == OPEN]


def lay(folder: str, mode: str, needed: Sequence[str]) -> None:
    """Lay an empty folder over *folder*, and show what is *needed* of it in there."""
    inner = [path for path in needed if is_below(path, folder) and os.path.lexists(path)]
    outermost = [p for p in inner if not any(is_below(p, other) for other in inner if other != p)]
    held = [(path, os.open(path, os.O_PATH | os.O_NOFOLLOW)) for path in outermost]
    mount("tmpfs", folder, "tmpfs", NOSUID | NODEV, COVER + mode)
    for path, handle in held:
        show(path, handle)
        os.close(handle)


def show(path: str, handle: int) -> None:
    """Put what *handle* refers to at *path* again, where a cover hides it."""
    kind = os.fstat(handle).st_mode
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISLNK(kind):
        os.symlink(os.readlink("", dir_fd=handle), path)
        return
    if stat.S_ISDIR(kind):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    mount(f"/proc/self/fd/{handle}", path, None, BIND | RECURSIVE)


def mount_terminals() -> list[str]:
    """Mount terminals of our own, with none of anybody else's, and return where they are; empty: nowhere."""
    try:
        mount("devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
        mount("/dev/pts/ptmx", "/dev/ptmx", None, BIND)
    except OSError:
        return []
    return ["/dev/ptmx", "/dev/pts"]


def seal_mounts(writable: Sequence[str], own: Sequence[str]) -> None:
    """Let nothing be changed on any file system, modes included, but at *writable* and at *own*, which we mounted."""
    for path in writable:
        mount(path, path, None, BIND | RECURSIVE)
    try:
        change("/", (READ_ONLY, 0), WHOLE)
    except OSError as fault:
        if fault.errno != errno.ENOSYS:
            raise
        return  # Linux 5.11 or older: then it is another user's rights that protect them
    for path in writable:
        change(path, (0, READ_ONLY), WHOLE)
    for path in own:
        change(path, (0, READ_ONLY), 0)  # not what is shown in it again
