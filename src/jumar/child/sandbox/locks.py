"""Locks that a process puts on itself for good: another user, Landlock, seccomp."""

from __future__ import annotations

# ruff: noqa: PTH208
import ctypes
import errno
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

LIBC = ctypes.CDLL(None, use_errno=True)

SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Landlock's system calls; the same on every machine."""

NEWEST = 7
"""Version of Landlock's interface; what later ones know is not asked for."""

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER, MAKE_CHAR, MAKE_BLOCK = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
FIRST = (1 << 13) - 1
SINCE = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEVICE}
"""Landlock's rights over files, and the version that knows each (linux/landlock.h)."""

TCP, TCP_SINCE = 3, 4
SCOPES, SCOPES_SINCE = 3, 6
"""Abstract sockets and signals."""

READING = EXECUTE | READ_FILE | READ_FOLDER
EVERYTHING = (FIRST | REFER | TRUNCATE) & ~(MAKE_CHAR | MAKE_BLOCK)
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
TERMINAL = READING | WRITE_FILE | IOCTL_DEVICE
FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE


def lose_ctypes() -> dict[str, ModuleType]:
    """Take the `ctypes` that is used here out of the interpreter's table, and return what was taken.

    Code under test may look whether it imports it itself; when it does, it gets one of its own. One that others have
    imported meanwhile, by another table, stays.
    """
    mine = sys.modules.get("ctypes") is ctypes
    return {name: sys.modules.pop(name) for name in ("ctypes", "ctypes._endian") if mine and name in sys.modules}


def call(result: int, what: str) -> int:
    """Return *result* of a function of C, unless it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def give(name: str, uid: int, owners: Sequence[int], folder: int | None = None) -> None:
    """Give *name* (in *folder*) and all below it to *uid*, as far as it belongs to one of *owners*.

    Nothing is followed, and a file with two names is left alone: the other one may be anywhere.
    """
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        found, itself = os.fstat(handle), f"/proc/self/fd/{handle}"
        inside = os.listdir(itself) if stat.S_ISDIR(found.st_mode) else None
        single = found.st_nlink == 1 and not stat.S_ISLNK(found.st_mode)
        if found.st_uid in owners and (inside is not None or single):
            os.chown(itself, uid, uid)
        for inner in inside or ():
            give(inner, uid, owners, handle)
    finally:
        os.close(handle)


def become(uid: int) -> None:
    """Become user *uid*, in no group but its own."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def set_no_new_privileges() -> None:
    """Let no program that this process becomes have more rights than it has."""
    call(LIBC.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def read_landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none."""
    return min(max(int(LIBC.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)), 0), NEWEST)


def apply_landlock(allowed: Mapping[str, int], *, network: bool, reading: bool = True) -> None:
    """Forbid every file but those *allowed* (path -> rights), foreign signals, and, unless *network*, TCP.

    Without *reading*, the others can be read as before.
    """
    known = read_landlock_version()
    rights = FIRST | sum(right for since, right in SINCE.items() if known >= since)
    rights &= -1 if reading else ~(READ_FILE | READ_FOLDER | IOCTL_DEVICE)
    fields = [rights]
    fields += [0 if network else TCP] if known >= TCP_SINCE else []
    fields += [SCOPES] if known >= SCOPES_SINCE else []
    attributes = struct.pack(f"<{len(fields)}Q", *fields)
    rules = call(LIBC.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "Landlock")
    for path, granted in allowed.items():
        allow(rules, path, granted & rights)
    call(LIBC.syscall(RESTRICT_SELF, rules, 0), "Landlock")
    os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    """Add a rule for *path* and all below it; what does not exist needs none."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as fault:
        if fault.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            return
        raise
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= FOR_FILES
    call(LIBC.syscall(ADD_RULE, rules, 1, struct.pack("<Qi", rights, handle), 0), f"Landlock, {path}")
    os.close(handle)


def install_filter(program: bytes) -> None:
    """Let the kernel ask *program*, an array of `struct sock_filter`, before each system call."""
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    call(LIBC.prctl(SET_SECCOMP, FILTER, described, 0, 0), "seccomp")
