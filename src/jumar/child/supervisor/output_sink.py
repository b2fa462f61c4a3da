"""Writes what a process prints to a file, head and tail."""

from __future__ import annotations

import collections
import contextlib
import os

CHUNK = 1 << 18


class OutputSink:
    """Output of the process, head and tail: the middle is counted and dropped, whatever its size."""

    def __init__(self, fd: int, cap: int) -> None:
        self._fd = fd
        self._cap = cap
        self._head = 0
        self._tail: collections.deque[bytes] = collections.deque()
        self._held = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take *data*: the head is written at once, the rest is held until it is pushed out."""
        room = self._cap - self._head
        if room > 0:
            self._write(data[:room])
            self._head += len(data[:room])
            data = data[room:]
        if data:
            self._tail.append(data)
            self._held += len(data)
        while self._tail and self._held - len(self._tail[0]) >= self._cap:
            gone = len(self._tail.popleft())
            self._held -= gone
            self.dropped += gone

    def drain(self, pipe: int) -> None:
        """Take what the dead left in the pipe. A survivor may still write, so this does not wait for the end."""
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1 << 10):
                data = os.read(pipe, CHUNK)
                if not data:
                    return
                self.add(data)

    def close(self) -> None:
        """Write the tail, after a line that says how much is missing."""
        if self.dropped:
            self._write(b"\n[jumar: %d bytes of output dropped here]\n" % self.dropped)
        for data in self._tail:
            self._write(data)

    def _write(self, data: bytes) -> None:
        # A full disk must not cost the verdict: the output is for people, the records are the evidence.
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._fd, data) :]
