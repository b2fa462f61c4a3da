"""Runs one shell command in the room and exits with its status: for required commands, and for those of a model.

What the command leaves running, or lets hold its output, is not waited for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jumar.child.runner_bridge import serve

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALLED = 128
"""Shells report a death by signal n as this plus n."""


def run_job(config: dict[str, Any], send: Callable[[list[object]], None]) -> int:
    """Run the command of the config; its exit status."""
    send(["hello"])
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", *config["command"]], os.environ)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else SIGNALLED - status


def main() -> None:
    """Run the command that one order on standard input names."""
    serve(run_job)
