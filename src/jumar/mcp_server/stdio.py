"""MCP over standard input and output. Nothing else reads or writes there, and a signal never waits for a line."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from select import PIPE_BUF
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

CHUNK = 1 << 16


async def serve(server: Server[Any]) -> None:
    """Serve the one client on standard input until it closes its end."""
    with _claim_streams() as (wire_in, wire_out):
        async with _open_streams(wire_in, wire_out) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


@contextmanager
def _claim_streams() -> Iterator[tuple[int, int]]:
    """Yield standard input and output as private descriptors.

    Meanwhile a stray read finds nothing, and a stray print goes to standard error: it would tear the protocol.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield wire_in, wire_out
    finally:
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
        os.close(wire_in)
        os.close(wire_out)


Pair = tuple["MemoryObjectReceiveStream[SessionMessage | Exception]", "MemoryObjectSendStream[SessionMessage]"]


@asynccontextmanager
async def _open_streams(wire_in: int, wire_out: int) -> AsyncIterator[Pair]:
    """Open the streams that the SDK reads and writes.

    Its own transport blocks a thread in `read`, which no signal ends.
    """
    into, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    outgoing, out_of = anyio.create_memory_object_stream["SessionMessage"](0)
    writer = _Writer(wire_out)
    async with anyio.create_task_group() as group, into, incoming, outgoing, out_of:
        group.start_soon(_read, wire_in, into, writer)
        group.start_soon(_write, out_of, writer)
        yield incoming, outgoing
        group.cancel_scope.cancel()


class _Writer:
    """Writes whole lines, one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lock = fd, anyio.Lock()

    async def write_line(self, text: str) -> None:
        """Write *text* and a line feed; if the client is gone, do nothing."""
        data = memoryview(text.encode() + b"\n")
        async with self._lock:
            while data:
                await _wait_ready(anyio.wait_writable(self._fd))
                try:
                    data = data[os.write(self._fd, data[:PIPE_BUF]) :]
                except BrokenPipeError:
                    return


async def _read(fd: int, into: MemoryObjectSendStream[SessionMessage | Exception], writer: _Writer) -> None:
    """Pass on each line that is a message; answer any other one with an error."""
    from mcp.shared.message import SessionMessage  # noqa: PLC0415  an extra
    from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415  as above
    from pydantic import ValidationError  # noqa: PLC0415  comes with that

    async with into:
        async for line in _read_lines(fd):
            try:
                # Bytes: what is no UTF-8 is refused, not replaced, for it may be the text of a file.
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                await writer.write_line(_explain_unreadable(str(error.errors()[0]["msg"])))
            else:
                await into.send(SessionMessage(message))


async def _write(out_of: MemoryObjectReceiveStream[SessionMessage], writer: _Writer) -> None:
    async with out_of:
        async for sent in out_of:
            await writer.write_line(sent.message.model_dump_json(by_alias=True, exclude_unset=True))


async def _read_lines(fd: int) -> AsyncIterator[bytes]:
    parts: list[bytes] = []
    while True:
        await _wait_ready(anyio.wait_readable(fd))
        if not (data := os.read(fd, CHUNK)):
            break
        *whole, rest = data.split(b"\n")
        for line in whole:
            joined = b"".join([*parts, line])
            parts = []
            if joined.strip():
                yield joined
        parts.append(rest)
    if (last := b"".join(parts)).strip():
        yield last


async def _wait_ready(waiting: Awaitable[None]) -> None:
    try:
        await waiting
    except PermissionError:  # a file, or the null device: it cannot be waited for, and is always ready
        await anyio.lowlevel.checkpoint()


def _explain_unreadable(why: str) -> str:
    from mcp_types import PARSE_ERROR  # noqa: PLC0415  an extra

    error = {"code": PARSE_ERROR, "message": f"this line is no message of JSON-RPC in UTF-8: {why}"}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
