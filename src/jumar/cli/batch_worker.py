"""Worker process of `jumar batch`; see `jumar.campaigns.worker`. Nobody calls it by hand."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

import anyio
import msgspec

from jumar.campaigns.messages import Report
from jumar.campaigns.worker import Worker, load_parts
from jumar.cli.parameters.environment import read_environment
from jumar.runs.setup.marks import Trust


def main(folder: str, cores: str, lock: str, *trusted: str) -> None:
    """Carry out the orders on standard input, as a worker of the campaign in *folder*."""
    fcntl.fcntl(
        int(lock), fcntl.F_SETFD, fcntl.FD_CLOEXEC
    )  # the lock is for this process, not for the tests that it starts
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who runs the campaign says when to stop
    reports = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever else is printed is no report

    def tell(report: Report) -> None:
        line = memoryview(msgspec.json.encode(report) + b"\n")
        try:
            while line:
                line = line[reports.write(line) :]
        except BrokenPipeError:
            return

    trust = Trust(read_environment(), anyone=bool(trusted))
    worker = Worker(load_parts(Path(folder), trust, int(cores)), trust, tell)
    anyio.run(worker.serve, anyio.wrap_file(sys.stdin.buffer))


if __name__ == "__main__":
    main(*sys.argv[1:])
