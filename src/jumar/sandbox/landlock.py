"""Tier S2, Landlock and seccomp: the process has the person's user and can open few files of the machine.

What lies elsewhere is there, but cannot be opened; modes and times of files are no business of Landlock's, so that an
ordinary user's own files are safe from changes of these only where the user is another one. As root the process
becomes one. Network, shared memory and /tmp are its own where the machine gives it namespaces; elsewhere it has none,
not even a loopback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jumar.child.sandbox import locks
from jumar.sandbox import bpf, launch_order, seccomp, seccomp_shared
from jumar.sandbox.request import Reach, Wrapped


@dataclass(frozen=True, slots=True)
class Landlocked:
    """Confines by Landlock and seccomp (see `ports.Sandbox`)."""

    tier: str = "S2"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Return *argv*, which can open programs and the paths of *reach*, and write in *room* and *private*."""
        what = launch_order.build_order(argv, room, private, reach)
        talks = bool(reach.sockets)
        filters = _build_filters(alone=what.uid is not None, talks=talks)
        return launch_order.wrap_command(argv, msgspec.structs.replace(what, landlock=True, filters=filters))


def explain_missing() -> str:
    """Return why this tier is not available on this machine, and the fix; empty if it may be."""
    if sys.platform != "linux":
        return "Landlock is Linux's: use a Linux machine, a container or a virtual machine"
    if locks.read_landlock_version() < 1:
        return "this kernel has no Landlock: use Linux 5.13 or newer, with landlock in its list of security modules"
    if seccomp.build_filter() is None:
        return f"the system calls of {os.uname().machine} are not known: use x86_64 or aarch64"
    return ""


def _build_filters(*, alone: bool, talks: bool) -> launch_order.Filters:
    """Return the filters of a process, *alone* or not as its user.

    That *talks* to a socket of ours, or to none.

    Landlock (up to version 7) does not see who connects to a socket that is a file: where a process of the person's
    own user could reach theirs, it gets no such socket at all.
    """
    unix = () if talks else (bpf.UNIX,)
    private = (seccomp.build_filter(), None if alone else seccomp_shared.build_filter(families=unix, memory=False))
    shared = (
        seccomp.build_filter(),
        seccomp_shared.build_filter(families=(*unix, bpf.INET, bpf.INET6), memory=True),
    )
    return launch_order.Filters(
        private=tuple(program.hex() for program in private if program is not None),
        shared=tuple(program.hex() for program in shared if program is not None),
    )
