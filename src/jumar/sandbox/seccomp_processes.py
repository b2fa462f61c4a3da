"""Seccomp filter for a process that starts no other one: it can make threads, and no process or program.

It comes on top of other filters: the kernel follows the strictest answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jumar.sandbox import bpf
from jumar.sandbox.bpf import ALLOW, ANY_BIT, AT_LEAST, ENOSYS, EPERM, EQUAL, RETURN

_REFUSED: Mapping[str, tuple[int | None, int | None]] = MappingProxyType({
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
})  # fmt: skip
"""System call -> its number on x86_64 and on aarch64; None: there is none."""

_CLONE, _CLONE3 = (56, 220), (435, 435)
_THREAD, _X32 = 0x10000, 0x40000000


def build_filter(machine: str = "") -> bytes | None:
    """Return the filter, as an array of `struct sock_filter`; None for a *machine* whose numbers are not known here.

    *machine* is what `uname -m` says; empty is this one.
    """
    known = bpf.find_machine(machine)
    if known is None:
        return None
    place, architecture = known
    refuse, allow = bpf.fail_with(EPERM), (RETURN, 0, 0, ALLOW)
    numbers = [number for calls in _REFUSED.values() if (number := calls[place]) is not None]
    rules = (
        *((AT_LEAST, 0, 1, _X32), refuse),
        *(rule for number in numbers for rule in ((EQUAL, 0, 1, number), refuse)),
        # A C library that hears this uses clone, whose flags can be seen.
        *((EQUAL, 0, 1, _CLONE3[place]), bpf.fail_with(ENOSYS)),
        *((EQUAL, 0, 3, _CLONE[place]), bpf.load_argument(0), (ANY_BIT, 1, 0, _THREAD), refuse),
        allow,
    )
    return bpf.assemble(architecture, rules)
