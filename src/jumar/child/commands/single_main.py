"""Runs a separate command for each asked test, one after the other; its exit status decides, its output does not."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Any

from jumar.child import runner_bridge

SHOWN = 1 << 16
"""Bytes of what one command printed that go to the output, of its start and of its end."""


def main() -> None:
    """Serve one request: report the outcomes of the requested tests."""
    runner_bridge.serve(run_job)


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """Run the commands, send the records."""
    send(["hello", {}])
    runner_bridge.collect(send, [test_id for test_id, _ in config["commands"]])
    for test_id, argv in config["commands"]:
        if why := judge_test(test_id, argv, " ".join(argv), config["limit"], send):
            send(["unusable", f"cannot run [tests] command_for {argv[0]}: {why}"])
            return 0
    return 0


def judge_test(test_id: str, argv: Sequence[str], shown: str, limit: float, send: runner_bridge.Send) -> str:
    """Run *argv*, called *shown* in the output, and send how the test *test_id* came out; why it cannot be started."""
    send(["start", test_id])
    begun = time.monotonic()
    try:
        status, said = run_command(argv, limit)
    except (OSError, ValueError) as error:
        return str(error.args[-1])
    sys.stdout.write(f"$ {shown}\n{said}\n")
    ms = int(1000 * (time.monotonic() - begun))
    send(["result", test_id, *parse_status(status, ms, runner_bridge.normalise_text(said), limit)])
    return ""


def parse_status(status: int | None, ms: int, said: str, limit: float) -> Sequence[object]:
    """Return the outcome for a status: the rest of a `result`. A status that is not 0 does not tell the cause."""
    if status == 0:
        return "passed", ms, "", "", ""
    if status is None:
        return "timeout", ms, f"{said}\nthe command ran longer than {limit:g} s".lstrip(), "code", ""
    if status < 0:
        return "error", ms, f"{said}\nthe command was killed by {signal.Signals(-status).name}".lstrip(), "code", ""
    return "failed", ms, f"{said}\nthe command left with status {status}".lstrip(), "", ""


def run_command(argv: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Return the exit status of *argv* and what it printed; None if it had to be ended after *limit* seconds.

    What it leaves behind in its process group ends with it.

    Raises:
        OSError: if it cannot be started.
    """
    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(  # noqa: S603  a command of the task's, without a shell
            list(argv), stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(limit)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return status, read_output(sink)


def read_output(sink: IO[bytes]) -> str:
    """Return the start and the end of what lies in *sink*."""
    size = sink.seek(0, os.SEEK_END)
    sink.seek(0)
    text = sink.read(SHOWN)
    if size > SHOWN:
        sink.seek(max(size - SHOWN, SHOWN))
        text += (b"\n[...]\n" if size > 2 * SHOWN else b"") + sink.read()
    return text.decode("utf-8", "replace").strip()
