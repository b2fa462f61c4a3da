"""The envoy of a confined command: it alone holds the channel, and says with which status the command ended.

A standalone script, standard library only, outside the sandbox. Its config names the argv, which begins with
bubblewrap. A command that could not be confined was not started: then there is no goodbye.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
from pathlib import Path

SIGNALLED = 128
"""Shells report a death by signal n as this plus n."""


def main() -> None:
    """Start the command, wait for it, report."""
    config, send, _ = runpy.run_path(str(Path(__file__).with_name("channel.py")))["join"]()
    # Where memory runs out, the kernel shall take it from the command.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    told, tells = os.pipe()
    os.set_inheritable(tells, True)  # noqa: FBT003  # its only argument
    program, *arguments = config["argv"]
    pid = os.posix_spawn(program, [program, "--json-status-fd", str(tells), *arguments], os.environ)
    os.close(tells)
    send(["hello"])
    with os.fdopen(told, "rb") as stream:
        ended = [document["exit-code"] for document in map(json.loads, stream) if "exit-code" in document]
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if ended or code < 0:
        code = ended[0] if ended else SIGNALLED - code
        send(["end", code])
    os._exit(code)


if __name__ == "__main__":
    main()
