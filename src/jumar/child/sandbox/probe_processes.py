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
from collections.abc import Callable
from functools import partial
from typing import Any

from jumar.child.sandbox.locks import LIBC, call
from jumar.child.sandbox.probe_files import Aims, Probe, name_probes

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
    """Read the environment of any other process: there are keys in some."""
    mark = aims["token"].encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read():
                return f"process {name}"
    return ""


def read_jumar_environ(aims: Aims) -> str:
    """Read jumar's own environment, where the keys of the providers are."""
    with open(f"/proc/{aims['jumar']}/environ", "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    return f"process {aims['jumar']}" if found == aims["environ"] else ""


def keep_secrets(aims: Aims) -> str:
    """Find a key in one's own environment or argv, or in those of the first process that is seen."""
    mark = aims["key"].encode()
    if mark in b"\0".join(os.environb.values()):
        return "its environment"
    for name in ("self/environ", "1/environ", "1/cmdline"):
        with contextlib.suppress(OSError), open(f"/proc/{name}", "rb") as file:
            if mark in file.read():
                return f"/proc/{name}"
    return ""


def read_memory(aims: Aims) -> str:
    """Read the memory of another process."""
    with open(f"/proc/{aims['decoy']}/mem", "rb", buffering=0) as file:
        file.seek(aims["address"])
        return f"process {aims['decoy']}" if file.read(len(aims["token"])) == aims["token"].encode() else ""


def write_memory(aims: Aims) -> str:
    """Change the memory of another process."""
    with open(f"/proc/{aims['decoy']}/mem", "r+b", buffering=0) as file:
        file.seek(aims["scratch"])
        file.write(b"changed")
    return f"process {aims['decoy']}"


def read_memory_at_once(aims: Aims) -> str:
    """Read the memory of another process by a system call that needs no file."""
    size = len(aims["token"])
    held = ctypes.create_string_buffer(size)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(held), size)
    there = (ctypes.c_void_p * 2)(aims["address"], size)
    call(LIBC.process_vm_readv(_find_outside(aims, "decoy"), here, 1, there, 1, 0), "read")
    return f"process {aims['decoy']}" if held.raw == aims["token"].encode() else ""


def trace(aims: Aims) -> str:
    """Steer another process; it is let go when the prober ends."""
    call(LIBC.ptrace(PTRACE_SEIZE, _find_outside(aims, "decoy"), None, None), "trace")
    return f"process {aims['decoy']}"


def take_descriptor(aims: Aims) -> str:
    """Take a file that another process has open."""
    process = call(LIBC.syscall(PIDFD_OPEN, _find_outside(aims, "decoy"), 0), "open")
    taken = call(LIBC.syscall(PIDFD_GETFD, process, aims["descriptor"], 0), "take")
    return "a file" if aims["token"].encode() in os.pread(taken, len(aims["token"]), 0) else ""


def write_descriptor(aims: Aims) -> str:
    """Write to a journal by way of the descriptor that its writer has open."""
    with open(f"/proc/{aims['decoy']}/fd/{aims['journal_descriptor']}", "a", encoding="utf-8") as file:
        file.write("by descriptor")
    return str(aims["journal"])


def find_descriptors(aims: Aims) -> str:
    """Find a descriptor that nobody meant to hand on: it was there at the start and is no end of the channel."""
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
    """Signal any process that can be seen, with 0, which nobody notices, while there is none of the prober's own.

    Not all at once: to do nothing to all of them succeeds where nothing may be done to any.
    """
    _find_outside(aims, "jumar")
    for number in (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(number, 0)
            return f"process {number}"
    return ""


def send_signal(send: Callable[[int, int], None], whom: str, number: int, aims: Aims) -> str:
    """Signal *whom*; the decoy waits for it."""
    send(_find_outside(aims, whom), number)
    return f"process {aims[whom]}"


def limit_process(aims: Aims) -> str:
    """Set the limits of another process: some kill it. The decoy is set to the one it has."""
    resource.prlimit(_find_outside(aims, "decoy"), resource.RLIMIT_CORE, (0, 0))
    return f"process {aims['decoy']}"


def join_namespace(aims: Aims) -> str:
    """Join the network of another process."""
    handle = os.open(f"/proc/{aims['decoy']}/ns/net", os.O_RDONLY)
    call(LIBC.setns(handle, NEW_NETWORK), "join")
    return f"that of process {aims['decoy']}"


def attach_memory(aims: Aims) -> str:
    """Attach memory that processes of one user share by number."""
    LIBC.shmat.restype = ctypes.c_void_p
    place = LIBC.shmat(aims["segment"], None, 0o10000)  # SHM_RDONLY
    if place in (None, ctypes.c_void_p(-1).value):
        return ""
    return "a segment" if ctypes.string_at(place, len(aims["token"])) == aims["token"].encode() else ""


def send_udp(aims: Aims) -> str:
    """Send a datagram to a service of this machine, such as its name server; the decoy waits for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
        speaker.sendto(aims["token"].encode(), ("127.0.0.1", aims["udp"]))
    return f"port {aims['udp']}"


def reach_internet(_: Aims) -> str:
    """Find a route to an address that documentation is given; nothing is sent."""
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as speaker:
            speaker.connect((address, 9))
            return address
    return ""


def open_socket(evidence: str, family: int, kind: int, _: Aims) -> str:
    """Open a socket to what is below every protocol, or to the host of a virtual machine."""
    socket.socket(family, kind, 0).close()
    return evidence


def connect_tcp(aims: Aims) -> str:
    """Connect to a service of this machine."""
    return _hear(socket.AF_INET, ("127.0.0.1", aims["tcp"]), aims)


def connect_unix(place: str, aims: Aims) -> str:
    """Connect to a Unix socket; *place* is a path, or an abstract address, that names aims."""
    return _hear(socket.AF_UNIX, place.format_map(aims), aims)


def _hear(family: int, address: Any, aims: Aims) -> str:
    folder, slash, name = address.rpartition("/") if isinstance(address, str) else ("", "", address)
    with socket.socket(family, socket.SOCK_STREAM) as caller, contextlib.chdir(folder if slash else "."):
        caller.settimeout(SECONDS)
        caller.connect(name)  # alone, as an address holds 108 bytes
        return str(address).strip("\0") if aims["token"].encode() in caller.recv(200) else ""


def _find_outside(aims: Aims, whom: str) -> int:
    """Return the number of a process outside, if it means the same process in here."""
    with contextlib.suppress(PermissionError, FileNotFoundError):  # then it may well be the same namespace
        if os.readlink("/proc/self/ns/pid") != aims["processes"]:
            raise ProcessLookupError
    return int(aims[whom])


ALONE = name_probes(
    find_descriptors, signal_everything, see_processes, read_environ, read_jumar_environ, keep_secrets, read_memory,
    write_memory, read_memory_at_once, trace, take_descriptor, write_descriptor, limit_process, join_namespace,
    attach_memory, connect_tcp, send_udp, reach_internet,
)  # fmt: skip

PROBES: dict[str, Probe] = {
    **ALONE,
    "signal_jumar": partial(send_signal, os.kill, "jumar", 0),
    "signal_process": partial(send_signal, os.kill, "decoy", signal.SIGUSR1),
    "signal_group": partial(send_signal, os.killpg, "decoy", signal.SIGUSR2),
    "connect_abstract": partial(connect_unix, "\0{abstract}"),
    "connect_path": partial(connect_unix, "{socket}"),
    "connect_home": partial(connect_unix, "{home_socket}"),
    "open_raw": partial(open_socket, "a packet socket", PACKET, socket.SOCK_RAW),
    "open_vsock": partial(open_socket, "a socket", VSOCK, socket.SOCK_STREAM),
}
