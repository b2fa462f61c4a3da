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
from typing import Any

Aims = dict[str, Any]

LIBC = ctypes.CDLL(None, use_errno=True)

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
TIOCSCTTY, TIOCSTI = 0x540E, 0x5412
GET_NO_NEW_PRIVS = 39
IO_URING_SETUP = 425
NUMBERS = {
    "x86_64": {"add_key": 248, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "init_module": 175},
    "aarch64": {"add_key": 217, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "init_module": 105},
}
SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/binfmt_misc/register", "/sys/power/state",
)  # fmt: skip
GROUPS = ("cgroup.procs", "*/cgroup.procs", "tasks", "*/tasks", "release_agent", "*/release_agent")
FOREIGN_PROGRAMS = ("su", "sudo", "mount", "passwd", "newgrp", "chsh", "pkexec", "fusermount3")


def type_into_terminal(aims: Aims) -> str:
    """Probe: a character into the input of a terminal that was handed on, as if the person had typed it."""
    with contextlib.suppress(OSError):
        os.setsid()
        fcntl.ioctl(aims["terminal"], TIOCSCTTY, 0)
    fcntl.ioctl(aims["terminal"], TIOCSTI, b" ")
    return "a terminal"


def become_root_in_namespace(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a user namespace, in which one is root and may mount."""
    _checked(LIBC.unshare(NEW_USER | NEW_MOUNTS))
    return "a user namespace"


def mount(aims: Aims) -> str:
    """Probe: something else at the place of the room; in mounts of the probe's own."""
    _checked(LIBC.unshare(NEW_MOUNTS))
    _checked(LIBC.mount(b"none", aims["room"].encode(), b"tmpfs", ctypes.c_ulong(0), None))
    return "the room"


def change_root(aims: Aims) -> str:
    """Probe: another root, which one gets out of when one holds a folder outside."""
    os.chroot(aims["room"])
    return "the room"


def use_keyring(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a key in a ring that the kernel holds, here the prober's own."""
    _checked(_call("add_key", b"user", b"jumar-probe", b"x", 1, -2))
    return "a key"


def use_io_uring(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: files and sockets by a queue that no filter of system calls looks into."""
    _checked(LIBC.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)))
    return "a queue"


def load_bpf(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a map for programs that run in the kernel."""
    attributes = ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 4, 1), 128)
    _checked(_call("bpf", 0, attributes, 128))
    return "a map"


def watch_performance(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: read performance counters of the processor."""
    event = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", 1, 64, 0, 0, 0, 0, 0b1100001), 128)
    _checked(_call("perf_event_open", event, 0, -1, -1, 0))
    return "a counter"


def catch_page_faults(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: page faults, which makes races in the kernel winnable."""
    _checked(_call("userfaultfd", 1))
    return "a descriptor"


def make_device(aims: Aims) -> str:
    """Probe: a device, in the room."""
    path = os.path.join(aims["room"], "device")
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.unlink(path)
    return "a device"


def open_by_handle(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a file by its number, past all paths."""
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 136)
    _checked(LIBC.name_to_handle_at(-100, b"/", handle, ctypes.byref(ctypes.c_int()), 0))
    _checked(LIBC.open_by_handle_at(os.open("/", os.O_RDONLY), handle, os.O_RDONLY))
    return "the root of a file system"


def load_module(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: code in the kernel: nothing at all, which it refuses for another reason where it may be."""
    ctypes.set_errno(0)
    _call("init_module", None, ctypes.c_ulong(0), b"")
    return "a module" if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES) else ""


def run_setuid(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a program that makes one root: one is there, and would."""
    if LIBC.prctl(GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1:
        return ""
    for path in (os.path.join(folder, name) for folder in ("/usr/bin", "/bin") for name in FOREIGN_PROGRAMS):
        with contextlib.suppress(OSError):
            mode, mounted = os.stat(path).st_mode, os.statvfs(path).f_flag
            if mode & stat.S_ISUID and not mounted & os.ST_NOSUID and os.access(path, os.X_OK):
                return path
    return ""


def hold_capabilities(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: use capabilities that root has."""
    with open("/proc/self/status", encoding="ascii") as file:
        held = [line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm", "CapAmb"))]
    return f"capabilities {held[0]}" if any(int(each, 16) for each in held) else ""


def raise_limits(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a limit that was lowered for good."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if most == resource.RLIM_INFINITY:
        return "none is set"
    with contextlib.suppress(ValueError):  # the interpreter's word for a refusal
        resource.setrlimit(resource.RLIMIT_CORE, (0, most + 1))
        return "the size of core files"
    return ""


def change_kernel(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: settings of the kernel, such as what it starts when a process crashes; opened, nothing is written."""
    return _openable(SETTINGS, os.O_WRONLY)


def read_kernel_log(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Read the log of the kernel, addresses among it."""
    held = ctypes.create_string_buffer(64)
    if LIBC.klogctl(3, held, 64) >= 0:
        return "its log"
    return _openable(("/dev/kmsg", "/proc/kmsg"), os.O_RDONLY | os.O_NONBLOCK)


def leave_group(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a control group with other bounds, or a program that the kernel starts for one.

    Opened, nothing is written.
    """
    return _openable([path for name in GROUPS for path in glob.glob(f"/sys/fs/cgroup/{name}")], os.O_WRONLY)


def rename_machine(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: the name of the machine, to what it is."""
    socket.sethostname(socket.gethostname())
    return "its name"


def _openable(paths: Any, flags: int) -> str:
    for path in paths:
        with contextlib.suppress(OSError):
            os.close(os.open(path, flags))
            return str(path)
    return ""


def _call(name: str, *arguments: Any) -> int:
    return int(LIBC.syscall(NUMBERS[os.uname().machine][name], *arguments))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


PROBES = (
    type_into_terminal, become_root_in_namespace, mount, change_root, use_keyring, use_io_uring, load_bpf,
    watch_performance, catch_page_faults, make_device, open_by_handle, load_module, run_setuid, hold_capabilities,
    raise_limits, change_kernel, read_kernel_log, leave_group, rename_machine,
)  # fmt: skip
APART = (type_into_terminal, become_root_in_namespace, mount, change_root, raise_limits)
