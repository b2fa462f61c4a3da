"""Seccomp filter for a process that shares its user or its network with jumar.

A second filter beside `jumar.sandbox.seccomp`'s, for what own namespaces and an own user make needless. Of several
filters, the kernel follows the strictest answer.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from types import MappingProxyType

UNIX, INET, INET6 = 1, 2, 10

_MACHINES = MappingProxyType({"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)})
"""Machine -> its place in the tables, and its AUDIT_ARCH."""

_SHARED: Mapping[str, tuple[int, int]] = MappingProxyType({
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
})  # fmt: skip
"""System calls that reach memory, semaphores and queues of every process of the same user."""

_SOCKET, _PRLIMIT = (41, 198), (302, 261)

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS, _EAFNOSUPPORT = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50061


def build_filter(*, families: tuple[int, ...], memory: bool, machine: str = "") -> bytes | None:
    """The filter, as an array of `struct sock_filter`; None for a machine whose numbers are not known here.

    Args:
        families: of sockets that cannot be made. Pairs of connected ones can always be.
        memory: whether memory and queues that are shared with other processes of the user are refused.
        machine: what `uname -m` says; empty is this one.
    """
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    place, architecture = known
    refused = [
        rule
        for numbers in (_SHARED.values() if memory else ())
        for rule in ((_EQUAL, 0, 1, numbers[place]), (_RETURN, 0, 0, _ENOSYS))
    ]
    kinds = [rule for family in families for rule in ((_EQUAL, 0, 1, family), (_RETURN, 0, 0, _EAFNOSUPPORT))]
    rules = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        *refused,
        # Limits of another process: with a few of them one kills jumar. Its own a process changes as process 0.
        *((_EQUAL, 0, 4, _PRLIMIT[place]), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _EPERM)),
        (_RETURN, 0, 0, _ALLOW),
        *((_EQUAL, 0, len(kinds) + 1, _SOCKET[place]), (_LOAD, 0, 0, 16), *kinds),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *rule) for rule in rules)
