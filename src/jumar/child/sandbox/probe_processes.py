"""Probes of other processes and of the network, as `probe_files.py` has them for files.

A number of a process says something only where it is the same process's inside and outside: in a process namespace of
its own, the prober does not try its luck on whoever has that number there.
"""

from __future__ import annotations

# ruff: noqa: PTH115, PTH123, PTH208
import contextlib
import ctypes
import hashlib
import os
import resource
import signal
import socket
from typing import Any

Aims = dict[str, Any]

LIBC = ctypes.CDLL(None, use_errno=True)

PTRACE_SEIZE = 0x4206
PIDFD_OPEN, PIDFD_GETFD = 434, 438
NEW_NETWORK = 0x40000000
VSOCK, PACKET = 40, 17
SECONDS = 1.0
NUMBERS = 4096
"""Descriptors are looked for below this one: a jumar that is at much at once hands on high numbers."""


def see_processes(aims: Aims) -> str:
    """Read the command line of another process."""
    with open(f"/proc/{aims['decoy']}/cmdline", "rb") as file:
        return f"process {aims['decoy']}" if aims["started_as"].encode() in file.read() else ""


def read_environ(aims: Aims) -> str:
    """Probe: the environment of any other process: there are keys in some."""
    mark = aims["token"].encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read():
                return f"process {name}"
    return ""


def read_jumar_environ(aims: Aims) -> str:
    """Probe: jumar's own environment, where the keys of the providers are."""
    with open(f"/proc/{aims['jumar']}/environ", "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    return f"process {aims['jumar']}" if found == aims["environ"] else ""


def keep_secrets(aims: Aims) -> str:
    """Probe: a key in one's own environment or argv, or in those of the first process that is seen."""
    mark = aims["key"].encode()
    if mark in b"\0".join(os.environb.values()):
        return "its environment"
    for name in ("self/environ", "1/environ", "1/cmdline"):
        with contextlib.suppress(OSError), open(f"/proc/{name}", "rb") as file:
            if mark in file.read():
                return f"/proc/{name}"
    return ""


def read_memory(aims: Aims) -> str:
    """Probe: the memory of another process."""
    with open(f"/proc/{aims['decoy']}/mem", "rb", buffering=0) as file:
        file.seek(aims["address"])
        return f"process {aims['decoy']}" if file.read(len(aims["token"])) == aims["token"].encode() else ""


def write_memory(aims: Aims) -> str:
    """Probe: the memory of another process, changed."""
    with open(f"/proc/{aims['decoy']}/mem", "r+b", buffering=0) as file:
        file.seek(aims["scratch"])
        file.write(b"changed")
    return f"process {aims['decoy']}"


def read_memory_at_once(aims: Aims) -> str:
    """Probe: the memory of another process, by a system call that needs no file."""
    size = len(aims["token"])
    held = ctypes.create_string_buffer(size)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(held), size)
    there = (ctypes.c_void_p * 2)(aims["address"], size)
    _checked(LIBC.process_vm_readv(_there(aims, "decoy"), here, 1, there, 1, 0))
    return f"process {aims['decoy']}" if held.raw == aims["token"].encode() else ""


def trace(aims: Aims) -> str:
    """Probe: steer another process; it is let go when the prober ends."""
    _checked(LIBC.ptrace(PTRACE_SEIZE, _there(aims, "decoy"), None, None))
    return f"process {aims['decoy']}"


def take_descriptor(aims: Aims) -> str:
    """Probe: a file that another process has open."""
    process = _checked(LIBC.syscall(PIDFD_OPEN, _there(aims, "decoy"), 0))
    taken = _checked(LIBC.syscall(PIDFD_GETFD, process, aims["descriptor"], 0))
    return "a file" if aims["token"].encode() in os.pread(taken, len(aims["token"]), 0) else ""


def write_descriptor(aims: Aims) -> str:
    """Probe: a journal, by way of the descriptor that its writer has open."""
    with open(f"/proc/{aims['decoy']}/fd/{aims['journal_descriptor']}", "a", encoding="utf-8") as file:
        file.write("by descriptor")
    return str(aims["journal"])


def find_descriptors(aims: Aims) -> str:
    """Probe: a descriptor that nobody meant to hand on: it was there at the start and is no end of the channel."""
    found = sorted(list_descriptors() & aims["inherited"] - {0, 1, 2, aims["terminal"]})
    return f"descriptors {found}" if found else ""


def list_descriptors() -> set[int]:
    """Return the numbers of the descriptors that are open."""
    found = set()
    for number in range(NUMBERS):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.add(number)
    return found


def signal_everything(aims: Aims) -> str:
    """Probe: any process that can be seen: signal 0, which nobody notices.

    Tried while there is none of the prober's own.

    Not all at once: to do nothing to all of them succeeds where nothing may be done to any.
    """
    _there(aims, "jumar")
    for number in (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(number, 0)
            return f"process {number}"
    return ""


def signal_jumar(aims: Aims) -> str:
    """Probe: Jumar itself: signal 0, which nobody notices."""
    os.kill(_there(aims, "jumar"), 0)
    return f"process {aims['jumar']}"


def signal_process(aims: Aims) -> str:
    """Probe: another process; the decoy waits for it."""
    os.kill(_there(aims, "decoy"), signal.SIGUSR1)
    return f"process {aims['decoy']}"


def signal_group(aims: Aims) -> str:
    """Probe: a group of processes; the decoy leads one."""
    os.killpg(_there(aims, "decoy"), signal.SIGUSR2)
    return f"group {aims['decoy']}"


def limit_process(aims: Aims) -> str:
    """Probe: the limits of another process: some kill it. The decoy is set to the one it has."""
    resource.prlimit(_there(aims, "decoy"), resource.RLIMIT_CORE, (0, 0))
    return f"process {aims['decoy']}"


def join_namespace(aims: Aims) -> str:
    """Probe: the network of another process."""
    handle = os.open(f"/proc/{aims['decoy']}/ns/net", os.O_RDONLY)
    _checked(LIBC.setns(handle, NEW_NETWORK))
    return f"that of process {aims['decoy']}"


def attach_memory(aims: Aims) -> str:
    """Probe: memory that processes of one user share by number."""
    LIBC.shmat.restype = ctypes.c_void_p
    place = LIBC.shmat(aims["segment"], None, 0o10000)  # SHM_RDONLY
    if place in (None, ctypes.c_void_p(-1).value):
        return ""
    return "a segment" if ctypes.string_at(place, len(aims["token"])) == aims["token"].encode() else ""


def connect_abstract(aims: Aims) -> str:
    """Probe: a Unix socket that is no file."""
    return _heard(socket.AF_UNIX, "\0" + aims["abstract"], aims)


def connect_path(aims: Aims) -> str:
    """Probe: a Unix socket that is a file everybody may open, such as those of many services."""
    return _heard(socket.AF_UNIX, aims["socket"], aims)


def connect_home(aims: Aims) -> str:
    """Probe: a Unix socket in the person's home, such as that of an agent which holds keys."""
    return _heard(socket.AF_UNIX, aims["home_socket"], aims)


def connect_tcp(aims: Aims) -> str:
    """Probe: a service of this machine."""
    return _heard(socket.AF_INET, ("127.0.0.1", aims["tcp"]), aims)


def send_udp(aims: Aims) -> str:
    """Probe: a datagram to a service of this machine, such as its name server; the decoy waits for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
        speaker.sendto(aims["token"].encode(), ("127.0.0.1", aims["udp"]))
    return f"port {aims['udp']}"


def reach_internet(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a route to an address that documentation is given; nothing is sent."""
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as speaker:
            speaker.connect((address, 9))
            return address
    return ""


def open_raw(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Open a raw socket, which shows what others send, below every protocol."""
    socket.socket(PACKET, socket.SOCK_RAW, 0).close()
    return "a packet socket"


def open_vsock(aims: Aims) -> str:  # noqa: ARG001  # as the others
    """Probe: a socket to the host of a virtual machine: no network namespace holds it back."""
    socket.socket(VSOCK, socket.SOCK_STREAM, 0).close()
    return "a socket"


def _heard(family: int, address: Any, aims: Aims) -> str:
    folder, slash, name = address.rpartition("/") if isinstance(address, str) else ("", "", address)
    with socket.socket(family, socket.SOCK_STREAM) as caller, contextlib.chdir(folder if slash else "."):
        caller.settimeout(SECONDS)
        caller.connect(name)  # alone, as an address holds 108 bytes
        return str(address).strip("\0") if aims["token"].encode() in caller.recv(200) else ""


def _there(aims: Aims, whom: str) -> int:
    """Return the number of a process outside, if it means the same process in here."""
    with contextlib.suppress(PermissionError, FileNotFoundError):  # then it may well be the same namespace
        if os.readlink("/proc/self/ns/pid") != aims["processes"]:
            raise ProcessLookupError
    return int(aims[whom])


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


PROBES = (
    find_descriptors, signal_everything, see_processes, read_environ, read_jumar_environ, keep_secrets, read_memory,
    write_memory, read_memory_at_once, trace, take_descriptor, write_descriptor, signal_jumar, signal_process,
    signal_group, limit_process, join_namespace, attach_memory, connect_abstract, connect_path, connect_home,
    connect_tcp, send_udp, reach_internet, open_raw, open_vsock,
)  # fmt: skip
APART = (trace, join_namespace)
