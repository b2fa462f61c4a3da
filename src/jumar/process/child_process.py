"""Runs confined processes: sends a config, receives authenticated records, and kills all that is left.

The only way to a process.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import to_thread

from jumar.child.channel import ENDLESS, Reader
from jumar.child.supervisor import process_tree
from jumar.child.supervisor.cgroup import Cgroup
from jumar.core.state.verdict import Ended
from jumar.ports import Invocation, Record
from jumar.process.launch import Confinement, Role, StartedProcess, Supervisor, start_confined
from jumar.process.output import read_output
from jumar.process.room import discard
from jumar.workspace.files.disk_faults import explain_disk_faults

GRACE_SECONDS = 0.8
"""After its deadline a reaper has this long to answer, or to be at work; if it was stopped, jumar does the killing."""

WORKING_SECONDS = process_tree.KILL_SECONDS + 1.0
"""After its deadline, one that is at work has this long."""

SAID = 300
"""Characters of what a sandbox said that belong in one sentence."""

FORGETTING: list[Supervisor] = []
"""Supervisors that have reported, and still make the kernel give up what it keeps for a run. No other starts before."""

STAYED = "did not end by itself: its output says what goes on"


class Child:
    """A confined process. `ended`, `detail` and `anomalies` are final after `receive` has returned None."""

    def __init__(self, invocation: Invocation, confinement: Confinement, started: StartedProcess) -> None:
        self.ended = Ended.EXIT
        self.detail = "still running"
        self.is_disk_full = False
        """True if it was killed as a disk was nearly full."""
        self._argv, self._seconds, self._output = invocation.argv, confinement.seconds, confinement.output
        self._invocation, self._confinement = invocation, confinement
        self._pipes, self._reaper, self._signalled, self._forked = started
        self._heard = confinement.heard
        self._reader = Reader(self._pipes.key)
        self._records: collections.deque[Record] = collections.deque()
        self._deadline = time.monotonic() + self._seconds + GRACE_SECONDS
        self._last = time.monotonic() + self._seconds + WORKING_SECONDS
        self._status = b""
        self._faults: list[str] = []
        self._greeted = False
        self.is_failed_fork = False
        """True if it was forked and ended by itself before the tests: if it is run again, it is started."""
        self._goodbye: object = None
        self._over = False

    @property
    def anomalies(self) -> tuple[str, ...]:
        """Records that the channel should not have carried, and faults of the supervisor."""
        return (*self._faults, *self._reader.anomalies)

    @property
    def family(self) -> tuple[str, int]:
        """Mark of the process tree in its environment, and the process that all others are below."""
        return self._pipes.nonce, self._reaper.pid

    async def receive(self) -> Record | None:
        """Return the next authenticated record, or None when the process and its descendants are gone."""
        while not self._records and not self._over:
            await self._wait()
        return self._records.popleft() if self._records else None

    async def send(self, request: object) -> None:
        """Give *request* to the process as one JSON line. If it is gone, `receive` will report that."""
        line = memoryview(json.dumps(request).encode() + b"\n")
        with suppress(BrokenPipeError):
            while line:
                try:
                    line = line[os.write(self._pipes.requests, line) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._pipes.requests)

    async def close(self) -> None:
        """Kill the process and its descendants, if that has not happened yet; this takes at most about a second."""
        self._pipes.cut()
        self._deadline = min(self._deadline, time.monotonic() + GRACE_SECONDS)
        self._last = min(self._last, time.monotonic() + WORKING_SECONDS)
        while not self._over:
            await self._wait()
        if not (self._forked and self._status):  # one that has reported is on its way out, and the zygote's to bury
            await to_thread.run_sync(self._reaper.wait)
        elif self._confinement.sandbox.tier != "S0":  # as in the order that it got
            FORGETTING.append(self._reaper)
        self._pipes.close()

    def end(self) -> None:
        """Kill the process and its descendants, and wait for that; for callers without an event loop."""
        self._pipes.cut()
        if process_tree.is_stopped(self._reaper.pid):
            self._kill_tree(self._reaper.pid)
        self._reaper.wait()
        self._pipes.close()

    async def _wait(self) -> None:
        with anyio.move_on_after(self._deadline - time.monotonic()) as patience:
            await anyio.wait_readable(self._pipes.selector)
        if patience.cancelled_caught:
            if time.monotonic() < self._last and not process_tree.is_stopped(self._reaper.pid):
                self._deadline = min(self._last, time.monotonic() + GRACE_SECONDS)
                return
            await to_thread.run_sync(self._kill_tree, self._reaper.pid)
            self._conclude({"how": "stopped"})
            return
        ready = {key.fd for key, _ in self._pipes.selector.select(0)}
        if self._pipes.records in ready:
            self._read()
        if self._pipes.status in ready:
            piece = os.read(self._pipes.status, 1 << 16)
            self._status += piece
            if not piece:
                await self._settle()

    def _read(self) -> bool:
        """Read the record pipe; return whether it held anything."""
        try:
            data = os.read(self._pipes.records, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            with suppress(KeyError):
                self._pipes.selector.unregister(self._pipes.records)
        records = self._reader.feed(data)
        self._heard(records)
        for record in records:
            if record[0] == "imported":
                self._pass_on_modules(record)
                continue
            self._greeted = self._greeted or record[0] == "hello"
            if record[0] == "end":
                self._goodbye = record[1]
            self._records.append(record)
        return bool(data)

    def _pass_on_modules(self, record: Record) -> None:
        """Pass on the modules that the process names; only their names are trusted."""
        names = record[1] if len(record) > 1 and isinstance(record[1], list) else []
        if self._confinement.warm and self._confinement.role is Role.UNTOUCHED:
            self._confinement.warm.learn(self._invocation, self._confinement, [n for n in names if type(n) is str])

    async def _settle(self) -> None:
        """Handle the supervisor's report, or its sudden end: then its killer must not survive it."""
        if not self._status:
            await to_thread.run_sync(self._kill_tree, None)
        while self._read():
            pass
        self._conclude(json.loads(self._status or b'{"how": "killed"}'))

    def _kill_tree(self, root: int | None) -> None:
        process_tree.destroy(self._pipes.nonce, root)
        self._reaper.kill()
        process_tree.destroy(self._pipes.nonce, None)
        Cgroup(self._pipes.nonce).sweep()

    def _conclude(self, status: Mapping[str, object]) -> None:
        self._over = True
        self.ended, self.detail = self._decide_end(status)
        self.is_disk_full = status["how"] == "space"
        if self.ended is Ended.NORMAL:
            self._reader.close()
        if status["how"] in ("killed", "stopped"):
            self._faults.append(self.detail)
        if status.get("survivors"):
            self._faults.append(f"{status['survivors']} processes could not be killed")
        if not self._greeted:
            if self.ended is not Ended.UNSTARTED:
                why = f"{self._argv[0]} did not get to the tests: {self.detail}"
                self.ended, self.detail = Ended.UNSTARTED, why + self._get_setup_message()
            self.is_failed_fork = self._forked and status["how"] in ("exit", "unstarted")
        if self.is_failed_fork and self._confinement.warm:
            self._confinement.warm.give_up(f"a forked process ended before the tests: {self.detail}")

    def _get_setup_message(self) -> str:
        """Return the message of a sandbox that could not be set up."""
        if not self._signalled or self._output is None:
            return ""
        with explain_disk_faults(f"cannot read {self._output}"):
            lines = read_output(self._output).strip().splitlines()
        return f" ({lines[-1][:SAID]})" if lines else ""

    def _decide_end(self, status: Mapping[str, object]) -> tuple[Ended, str]:  # noqa: PLR0911  # one line per end
        match status:
            case {"how": "unstarted", "error": error}:
                return Ended.UNSTARTED, f"cannot start {self._argv[0]}: {error}"
            case {"how": "timeout"}:
                return Ended.TIMEOUT, f"killed after {self._seconds:g} s"
            case {"how": "memory" | "processes" | "space", "why": why}:
                return Ended.CRASH, f"killed: {why}"
            case {"how": "lifeline"}:
                return Ended.EXIT, "stopped by jumar"
            case {"how": "exit", "code": code} if code == self._goodbye:
                return Ended.NORMAL, ""
            case {"how": "exit", "code": int(code)} if code < 0 or 0 < self._signalled < code:
                return Ended.CRASH, f"killed by {_name_signal(-code if code < 0 else code - self._signalled)}"
            case {"how": "exit", "code": code} if self._goodbye is None:
                return Ended.EXIT, f"left with status {code} and without a goodbye"
            case {"how": "exit", "code": code}:
                left = STAYED if code == ENDLESS else f"left with {code}"
                return Ended.EXIT, f"announced status {self._goodbye} and {left}"
            case {"how": how}:
                return Ended.CRASH, f"the supervisor of the process was {how}"
        raise TypeError(f"not a status: {status}")


def _name_signal(number: int) -> str:
    """Return the name of a signal; real-time signals have none."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


async def read_records(invocation: Invocation, confinement: Confinement) -> tuple[list[Record], Child]:
    """Run *invocation* to its end, as `run_confined` does; return its records and the process."""
    async with run_confined(invocation, confinement) as child:
        records: list[Record] = []
        while (record := await child.receive()) is not None:
            records.append(record)
    if child.is_failed_fork:
        return await read_records(invocation, confinement)
    return records, child


@asynccontextmanager
async def run_confined(invocation: Invocation, confinement: Confinement) -> AsyncIterator[Child]:
    """Run *invocation* as *confinement* says; leaving the block kills it and its descendants.

    Its config reaches the process through `verify.channel.join`. A private home and temporary directory lie beside the
    room for as long.

    Raises:
        Infra: if the machine cannot start a process (no descriptors, no space); a program that is not there is no
            such fault but an end (`Ended.UNSTARTED`), and so is a sandbox that cannot be set up.
        BadInput: if the sandbox cannot show what it is asked to.
    """
    if confinement.warm:
        await confinement.warm.prepare(invocation, confinement)
    for supervisor in FORGETTING[:]:
        await to_thread.run_sync(supervisor.wait)
        with suppress(ValueError):  # another run has waited for it, too
            FORGETTING.remove(supervisor)
    try:
        with explain_disk_faults("cannot start a process for the tests"):
            child = Child(invocation, confinement, start_confined(invocation, confinement))
        try:
            yield child
        finally:
            with anyio.CancelScope(shield=True):
                await child.close()
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard, confinement.private)
