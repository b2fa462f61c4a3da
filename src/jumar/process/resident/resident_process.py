"""A process that is kept for many orders: one sandbox, one room, one supervisor; it dies with jumar.

What it answers is worth less than what a fresh process says: code under test has run beside it before.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from jumar.ports import Invocation, Record
from jumar.process.child_process import Child
from jumar.process.launch import Confinement, start_confined
from jumar.process.resident.marked_output import MarkedOutput
from jumar.process.room import discard
from jumar.workspace.files.disk_faults import explain_disk_faults

LIFE_SECONDS = 4 * 3600.0
"""Time limit of the whole process; an order has its own."""

OWN = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  in the sandbox they are its own
"""Folders beside the room that a process in S3 can write to."""


class Answer(NamedTuple):
    """Answer to one order."""

    records: list[Record]
    held: frozenset[str]
    """Files that no later order may edit."""


class Refusal(NamedTuple):
    """The process did not carry out an order, and is gone."""

    why: str
    lasting: bool = False
    """True if no process would, whatever the order."""


class ResidentProcess:
    """A confined process that takes orders one after the other. After a refusal it is gone."""

    def __init__(self, invocation: Invocation, confinement: Confinement) -> None:
        own = OWN if confinement.sandbox.tier == "S3" else ()
        invocation = Invocation(argv=invocation.argv, config={**invocation.config, "own": own}, env=invocation.env)
        self._confinement = replace(confinement, seconds=LIFE_SECONDS, heard=lambda _: None)
        self._printed = MarkedOutput(confinement.output)
        self._hello: Record | None = None
        self._pending = False
        """True while it looks for what the last order left."""
        with explain_disk_faults("cannot start a process for the tests"):
            self._child: Child | None = Child(
                invocation, self._confinement, start_confined(invocation, self._confinement)
            )

    @property
    def alive(self) -> bool:
        """Return whether it may take another order, as far as is known."""
        return self._child is not None

    async def order(
        self, edits: Mapping[str, bytes], ids: Sequence[str], seconds: float, output: Path
    ) -> Answer | Refusal:
        """Edit files of the room and judge *ids*, in *seconds* at most; *output* gets the printed text."""
        mark = secrets.token_hex(16)
        request = {
            "edits": {path: base64.b64encode(content).decode() for path, content in edits.items()},
            "ids": list(ids),
            "mark": mark,
        }
        answer: Answer | Refusal = Refusal(f"no answer in {seconds:g} s")
        stays = False
        try:
            with anyio.move_on_after(seconds):
                answer = await self._settle() or await self._send_order(request)
            # Without its end, what it prints next could not be told from this.
            stays = isinstance(answer, Answer) and await self._printed.copy(mark, output)
        finally:
            if not stays:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(self.end)
        return answer

    def end(self) -> None:
        """End the process, and remove its room."""
        child, self._child = self._child, None
        if child is not None:
            child.end()
            discard(self._confinement.private)
            discard(self._confinement.room)

    async def _send_order(self, request: Mapping[str, object]) -> Answer | Refusal:
        child, records = self._child, list[Record]()
        if child is None:
            return Refusal("it is gone")
        await child.send(request)
        while (record := await child.receive()) is not None:
            match record:
                case ["hello", *_]:
                    self._hello = record
                case ["served", list(held)] if self._hello and not child.anomalies:
                    self._pending = True
                    return Answer([self._hello, *records], frozenset(map(str, held)))
                case ["declined", str(why), bool(lasting)]:
                    return Refusal(why, lasting)
                case _:
                    records.append(record)
        return Refusal("; ".join(child.anomalies) or f"it ended: {child.detail}")

    async def _settle(self) -> Refusal | None:
        """Wait for its search for leftovers of the last order; return a refusal if it found any."""
        if not self._pending or self._child is None:
            return None
        self._pending = False
        match await self._child.receive():
            case ["kept", ""]:
                return None
            case ["kept", str(why)]:
                return Refusal(why)
        return Refusal(f"it ended: {self._child.detail}")
