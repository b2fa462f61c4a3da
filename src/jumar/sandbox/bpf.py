"""Assembles seccomp filters: classic BPF programs that the kernel runs before each system call (seccomp(2))."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from types import MappingProxyType

Instruction = tuple[int, int, int, int]
"""Code, places to skip if true, places to skip if not, operand."""

MACHINES = MappingProxyType({"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)})
"""Machine -> its place in tables of system calls, and its AUDIT_ARCH."""

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS, ENOPROTOOPT, EOPNOTSUPP, EAFNOSUPPORT = 1, 38, 92, 95, 97
_NUMBER, _ARCHITECTURE = 0, 4
"""Places in `struct seccomp_data`, whose arguments begin at byte 16; of each its lower half counts."""

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
"""Families of sockets."""


def find_machine(machine: str = "") -> tuple[int, int] | None:
    """Return the entry of `MACHINES` for a name of `uname -m`, empty for this machine; None if it is unknown."""
    return MACHINES.get(machine or os.uname().machine)


def load_argument(index: int) -> Instruction:
    """Load the system call's argument *index*, from 0."""
    return (LOAD, 0, 0, 16 + 8 * index)


def fail_with(errno: int) -> Instruction:
    """End the filter: the system call fails with *errno*; 0 lets it succeed without effect."""
    return (RETURN, 0, 0, ERRNO | errno)


def assemble(architecture: int, rules: Iterable[Instruction]) -> bytes:
    """Return *rules* as an array of `struct sock_filter`, for system calls of *architecture* alone; others kill.

    The rules begin with the number of the system call loaded.
    """
    begin = (
        (LOAD, 0, 0, _ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),  # another kind of system call, with numbers of its own
        (LOAD, 0, 0, _NUMBER),
    )
    return b"".join(struct.pack("<HBBI", *rule) for rule in (*begin, *rules))
