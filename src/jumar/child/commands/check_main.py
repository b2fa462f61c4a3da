"""Runs one shell command in the room and exits with its status: for required commands, and for those of a model.

What the command leaves running, or lets hold its output, is not waited for.
"""

from __future__ import annotations

import os
from typing import Any

from jumar.child import runner_bridge


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """Run the command of the config; its exit status."""
    send(["hello"])
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", *config["command"]], os.environ)
    return runner_bridge.build_shell_status(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def main() -> None:
    """Run the command that one order on standard input names."""
    runner_bridge.serve(run_job)
