"""Tier S1, another user: an unprivileged user in a network of its own, who sees only files that all users may see.

Only root can become another user. It reads what everybody may read, and writes where everybody may write, but for
/tmp and the like, which are its own. Where the machine's system calls are known, seccomp refuses some of them as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jumar.errors import BadInput
from jumar.sandbox import launch_order, seccomp
from jumar.sandbox.request import Reach, Wrapped


@dataclass(frozen=True, slots=True)
class AnotherUser:
    """Runs as another user, in a network of its own (see `ports.Sandbox`)."""

    tier: str = "S1"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:
        """Return *argv*, as a user who owns only *room*, *private* and the writable paths of *reach*.

        Raises:
            BadInput: if this is not root, who alone can become another user.
        """
        what = launch_order.build_order(argv, room, private, reach)
        if what.uid is None:  # the same user in namespaces of its own would be something else
            raise BadInput(f"sandbox S1 cannot be had: {explain_missing()}")
        program = seccomp.build_filter()
        filters = launch_order.Filters(private=(program.hex(),) if program else ())
        return launch_order.wrap_command(argv, msgspec.structs.replace(what, namespaces=True, filters=filters))


def explain_missing() -> str:
    """Return why this tier is not available on this machine, and the fix; empty if it may be."""
    if sys.platform != "linux":
        return "namespaces are Linux's: use a Linux machine, a container or a virtual machine"
    if os.geteuid() != 0:
        return "only root can become another user: run jumar as root, or install bubblewrap, which needs none"
    return ""
