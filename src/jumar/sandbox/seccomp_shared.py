"""Seccomp filter for a process that shares its user or its network with jumar.

A second filter beside `jumar.sandbox.seccomp`'s, for what own namespaces and an own user make needless. Of several
filters, the kernel follows the strictest answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jumar.sandbox import bpf
from jumar.sandbox.bpf import ALLOW, EQUAL, RETURN

_SHARED: Mapping[str, tuple[int, int]] = MappingProxyType({
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
})  # fmt: skip
"""System calls that reach memory, semaphores and queues of every process of the same user."""

_SOCKET, _PRLIMIT = (41, 198), (302, 261)


def build_filter(*, families: tuple[int, ...], memory: bool, machine: str = "") -> bytes | None:
    """Return the filter, as an array of `struct sock_filter`; None for a machine whose numbers are not known here.

    Args:
        families: of sockets that cannot be made. Pairs of connected ones can always be.
        memory: whether memory and queues that are shared with other processes of the user are refused.
        machine: what `uname -m` says; empty is this one.
    """
    known = bpf.find_machine(machine)
    if known is None:
        return None
    place, architecture = known
    allow = (RETURN, 0, 0, ALLOW)
    refused = [
        rule
        for numbers in (_SHARED.values() if memory else ())
        for rule in ((EQUAL, 0, 1, numbers[place]), bpf.fail_with(bpf.ENOSYS))
    ]
    kinds = [rule for family in families for rule in ((EQUAL, 0, 1, family), bpf.fail_with(bpf.EAFNOSUPPORT))]
    rules = (
        *refused,
        # Limits of another process: with a few of them one kills jumar. Its own a process changes as process 0.
        *((EQUAL, 0, 4, _PRLIMIT[place]), bpf.load_argument(0), (EQUAL, 1, 0, 0), bpf.fail_with(bpf.EPERM)),
        allow,
        *((EQUAL, 0, len(kinds) + 1, _SOCKET[place]), bpf.load_argument(0), *kinds),
        allow,
    )
    return bpf.assemble(architecture, rules)
