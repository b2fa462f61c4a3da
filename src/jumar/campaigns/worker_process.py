"""Starts a worker process, passes orders to it, and receives its reports."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self, cast

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from jumar.campaigns.messages import Order, Report
from jumar.errors import Infra

PROGRAM = "jumar.cli.batch_worker"

OUTPUT = "output"
"""Name in a campaign's folder: what worker processes print beside their reports."""

LONGEST_LINE = 1 << 26
"""Bytes of the longest report: a result names every flaky test and every warning."""


class WorkerSettings(NamedTuple):
    """Settings of all worker processes of a campaign."""

    folder: Path
    environ: Mapping[str, str]
    cores: int
    """Runs that all workers together judge at once."""
    lock: int
    """A descriptor that holds the campaign's lock: every worker keeps it until it has ended."""
    trust: bool = False
    """True if plans and runs of anyone are believed."""


class WorkerProcess:
    """One worker process. It leads a session of its own, so that Ctrl-C reaches the campaign alone."""

    def __init__(self, process: Process) -> None:
        self._process = process
        # Both are pipes, see `start`.
        self._orders, self._reports = cast("ByteSendStream", process.stdin), cast("ByteReceiveStream", process.stdout)
        self.active: set[str] = set()
        """Rollouts that it works on."""

    @classmethod
    async def start(cls, settings: WorkerSettings, number: int) -> Self:
        """Return a new worker; its output beside the reports goes to a file named after its *number*.

        Raises:
            Infra: if no process can be started.
        """
        argv = [sys.executable, "-P", "-m", PROGRAM, str(settings.folder), str(settings.cores), str(settings.lock)]
        argv += ["--trust"] if settings.trust else []
        try:
            with (settings.folder / OUTPUT / f"worker-{number}.txt").open("ab") as stderr:
                process = await anyio.open_process(
                    argv, stderr=stderr, env=settings.environ, start_new_session=True, pass_fds=(settings.lock,)
                )
        except OSError as error:
            raise Infra(f"cannot start a worker process: {error.strerror}") from None
        return cls(process)

    async def give(self, rollout: str) -> None:
        """Order the process to work on *rollout*. A dead one is noticed by `reports`."""
        self.active.add(rollout)
        await self._send(Order(rollout=rollout))

    async def stop(self, why: str) -> None:
        """Order the process to halt its runs."""
        await self._send(Order(stop=why))

    async def _send(self, order: Order) -> None:
        try:
            await self._orders.send(msgspec.json.encode(order) + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def dismiss(self) -> None:
        """Close the input of the process: it ends when it has nothing to do any more."""
        await self._orders.aclose()

    async def reports(self) -> AsyncIterator[Report]:
        """Yield the reports of the process until it has ended.

        Raises:
            Infra: if it says what no worker says.
        """
        stream = BufferedByteReceiveStream(self._reports)
        while True:
            try:
                line = await stream.receive_until(b"\n", LONGEST_LINE)
            except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
                break
            report: Report = _decode(line)
            self.active.discard(report.rollout)
            yield report
        await self._process.wait()

    def kill(self) -> None:
        """Kill the process; its runs can be resumed from their journals."""
        if self._process.returncode is None:
            os.kill(self._process.pid, 9)


def _decode(line: bytes) -> Report:
    try:
        return msgspec.json.decode(line, type=Report)  # type: ignore[no-any-return]  # a union is no type to mypy
    except msgspec.MsgspecError as error:
        raise Infra(f"a worker process of the campaign says what none does: {error}") from None
