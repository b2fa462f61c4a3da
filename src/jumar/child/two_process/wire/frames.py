"""Messages between the tests' process and the product's: JSON in frames with a size. An error ends the connection."""

from __future__ import annotations

import fcntl
import json
import os
from select import POLLIN, poll
from typing import Any

FRAME_BYTES = 32 << 20
"""No message may be longer: it bounds what the other side can cost this one."""

HEAD_BYTES = 8

DIGITS = 24
"""No number is written with more; longer ones travel as text."""

HIGH_FD = 210
"""The pipes move above the numbers that tests open, close and hand on."""


class ConnectionLost(Exception):  # noqa: N818  named for what happened
    """The remote process is gone, or does not keep to the format."""


class FrameConnection:
    """A pair of pipes. It survives no error: half a message cannot be taken back."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = _raise_descriptor(reads), _raise_descriptor(writes)
        self._pieces: list[bytes] = []
        """Bytes of a message that is read in part: a reader that is interrupted goes on from there."""

    def close(self) -> None:
        """Close the pipes; doing it twice changes nothing."""
        ends, self._reads, self._writes = {self._reads, self._writes} - {-1}, -1, -1
        for end in ends:
            os.close(end)

    def send(self, message: object) -> None:
        """Send *message* to the other process.

        Raises:
            ValueError: if it is too long; nothing was sent then.
            ConnectionLost: if nobody reads.
        """
        body = ENCODER.encode(message).encode()
        if len(body) > FRAME_BYTES:
            raise ValueError(f"a message of {len(body)} bytes")
        frame = memoryview(len(body).to_bytes(HEAD_BYTES, "big") + body)
        try:
            while frame:
                frame = frame[os.write(self._writes, frame) :]
        except OSError as error:
            raise ConnectionLost("the other process does not read any more") from error

    def receive(self) -> list[Any]:
        """Wait for the next message of the other process and return it: the same again, until it is `drop_message`.

        Raises:
            ConnectionLost: if there comes none, or something that is none.
        """
        size = int.from_bytes(self._fill(HEAD_BYTES)[:HEAD_BYTES], "big")
        if size > FRAME_BYTES:
            raise ConnectionLost(f"the other process sends a message of {size} bytes")
        body = self._fill(HEAD_BYTES + size)[HEAD_BYTES:]
        try:
            message = DECODER.decode(body.decode())
        except (ValueError, RecursionError) as error:
            raise ConnectionLost("the other process sends what is no message") from error
        if type(message) is not list or not message:
            raise ConnectionLost("the other process sends what is no message")
        return message

    def wait(self, seconds: float) -> bool:
        """Return whether there is something to receive in *seconds*."""
        poller = poll()
        poller.register(self._reads, POLLIN)
        return bool(self._pieces or poller.poll(1000 * seconds))

    def drop_message(self) -> None:
        """Make room for the next message."""
        self._pieces.clear()

    def _fill(self, size: int) -> bytes:
        """Read until *size* bytes are held, and return what is held.

        A time limit may ring at any step: what is read is stored in the same step of the interpreter.
        """
        while (lacking := size - sum(map(len, self._pieces))) > 0:
            try:
                self._pieces.extend(map(os.read, (self._reads,), (min(lacking, 1 << 20),)))
            except OSError as error:
                raise ConnectionLost("the connection is closed") from error
            if not self._pieces[-1]:
                raise ConnectionLost("the other process is gone")
        return b"".join(self._pieces)


def _parse_number(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError("a number that is too long")
    return int(text)


ENCODER = json.JSONEncoder(separators=(",", ":"))
DECODER = json.JSONDecoder(parse_int=_parse_number)
"""Made once: `json.dumps` and `json.loads` make their own for each message that is not of the usual form."""


def _raise_descriptor(fd: int) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    os.close(fd)
    return high
