"""Probes of the kernel's own powers, as `probe_files.py` has them for files.

Nothing is changed outside: what succeeds happens to a process of the probe's own, which then ends.
"""

from __future__ import annotations

# ruff: noqa: PTH118, PTH123, PTH207, PTH108, PTH116
import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import resource
import socket
import stat
import struct
from functools import partial

from jumar.child.sandbox.locks import LIBC, call
from jumar.child.sandbox.probe_files import Aims, Probe, name_probes

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
TIOCSCTTY, TIOCSTI = 0x540E, 0x5412
GET_NO_NEW_PRIVS = 39
NUMBERS = {
    "x86_64": {"add_key": 248, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425},
    "aarch64": {"add_key": 217, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425},
}
SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/binfmt_misc/register", "/sys/power/state",
)  # fmt: skip
"""Files by which the kernel is told what to do, such as what it starts when a process crashes."""
INIT_MODULE = {"x86_64": 175, "aarch64": 105}
BPF_MAP = ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 4, 1), 128)
EVENT = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", 1, 64, 0, 0, 0, 0, 0b1100001), 128)
GROUPS = tuple(
    f"/sys/fs/cgroup/{folder}{name}" for name in ("cgroup.procs", "tasks", "release_agent") for folder in ("", "*/")
)
"""Files by which one goes to a control group with other bounds, or has the kernel start a program for one."""
FOREIGN_PROGRAMS = ("su", "sudo", "mount", "passwd", "newgrp", "chsh", "pkexec", "fusermount3")


def call_kernel(evidence: str, name: str, *arguments: object) -> str:
    """Make the system call *name* with all of *arguments* but the last one, the aims."""
    call(LIBC.syscall(NUMBERS[os.uname().machine][name], *arguments[:-1]), name)
    return evidence


def open_any(patterns: tuple[str, ...], flags: int, _: Aims) -> str:
    """Open one of the files that *patterns* stand for; nothing is written."""
    for path in (path for pattern in patterns for path in glob.glob(pattern)):
        with contextlib.suppress(OSError):
            os.close(os.open(path, flags))
            return path
    return ""


def type_into_terminal(aims: Aims) -> str:
    """Put a character into the input of a terminal that was handed on, as if the person had typed it."""
    with contextlib.suppress(OSError):
        os.setsid()
        fcntl.ioctl(aims["terminal"], TIOCSCTTY, 0)
    fcntl.ioctl(aims["terminal"], TIOCSTI, b" ")
    return "a terminal"


def become_root_in_namespace(_: Aims) -> str:
    """Make a user namespace, in which one is root and may mount."""
    call(LIBC.unshare(NEW_USER | NEW_MOUNTS), "unshare")
    return "a user namespace"


def mount(aims: Aims) -> str:
    """Mount something else at the place of the room, in mounts of the probe's own."""
    call(LIBC.unshare(NEW_MOUNTS), "unshare")
    call(LIBC.mount(b"none", aims["room"].encode(), b"tmpfs", ctypes.c_ulong(0), None), "mount")
    return "the room"


def change_root(aims: Aims) -> str:
    """Take another root, which one gets out of when one holds a folder outside."""
    os.chroot(aims["room"])
    return "the room"


def make_device(aims: Aims) -> str:
    """Make a device in the room."""
    path = os.path.join(aims["room"], "device")
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.unlink(path)
    return "a device"


def open_by_handle(_: Aims) -> str:
    """Open a file by its number, past all paths."""
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 136)
    call(LIBC.name_to_handle_at(-100, b"/", handle, ctypes.byref(ctypes.c_int()), 0), "handle")
    call(LIBC.open_by_handle_at(os.open("/", os.O_RDONLY), handle, os.O_RDONLY), "open")
    return "the root of a file system"


def load_module(_: Aims) -> str:
    """Load code into the kernel: nothing at all, which it refuses for another reason where it may be."""
    ctypes.set_errno(0)
    LIBC.syscall(INIT_MODULE[os.uname().machine], None, ctypes.c_ulong(0), b"")
    return "a module" if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES) else ""


def run_setuid(_: Aims) -> str:
    """Find a program that makes one root: one is there, and would."""
    if LIBC.prctl(GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1:
        return ""
    for path in (os.path.join(folder, name) for folder in ("/usr/bin", "/bin") for name in FOREIGN_PROGRAMS):
        with contextlib.suppress(OSError):
            mode, mounted = os.stat(path).st_mode, os.statvfs(path).f_flag
            if mode & stat.S_ISUID and not mounted & os.ST_NOSUID and os.access(path, os.X_OK):
                return path
    return ""


def hold_capabilities(_: Aims) -> str:
    """Look for capabilities that root has."""
    with open("/proc/self/status", encoding="ascii") as file:
        held = [line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm", "CapAmb"))]
    return f"capabilities {held[0]}" if any(int(each, 16) for each in held) else ""


def raise_limits(_: Aims) -> str:
    """Raise a limit that was lowered for good."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if most == resource.RLIM_INFINITY:
        return "none is set"
    with contextlib.suppress(ValueError):  # the interpreter's word for a refusal
        resource.setrlimit(resource.RLIMIT_CORE, (0, most + 1))
        return "the size of core files"
    return ""


def read_kernel_log(aims: Aims) -> str:
    """Read the log of the kernel, addresses among it."""
    held = ctypes.create_string_buffer(64)
    if LIBC.klogctl(3, held, 64) >= 0:
        return "its log"
    return open_any(("/dev/kmsg", "/proc/kmsg"), os.O_RDONLY | os.O_NONBLOCK, aims)


def rename_machine(_: Aims) -> str:
    """Set the name of the machine, to what it is."""
    socket.sethostname(socket.gethostname())
    return "its name"


ALONE = name_probes(
    type_into_terminal, become_root_in_namespace, mount, change_root, make_device, open_by_handle, load_module,
    run_setuid, hold_capabilities, raise_limits, read_kernel_log, rename_machine,
)  # fmt: skip

PROBES: dict[str, Probe] = {
    **ALONE,
    "use_keyring": partial(call_kernel, "a key", "add_key", b"user", b"jumar-probe", b"x", 1, -2),
    "use_io_uring": partial(call_kernel, "a queue", "io_uring_setup", 1, ctypes.create_string_buffer(120)),
    "load_bpf": partial(call_kernel, "a map", "bpf", 0, BPF_MAP, 128),
    "watch_performance": partial(call_kernel, "a counter", "perf_event_open", EVENT, 0, -1, -1, 0),
    "catch_page_faults": partial(call_kernel, "a descriptor", "userfaultfd", 1),
    "change_kernel": partial(open_any, SETTINGS, os.O_WRONLY),
    "leave_group": partial(open_any, GROUPS, os.O_WRONLY),
}
