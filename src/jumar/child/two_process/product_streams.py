"""Standard streams of the product's process, forwarded to those of the tests' process.

Loaded by path in the product's process; standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import io
from typing import Any


class RemoteOutput(io.TextIOBase):
    """Standard output stream that the tests' process prints."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, side: Any, number: int) -> None:
        self._side, self._number = side, number

    def writable(self) -> bool:
        """Return True: the stream can be written to."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the stream below it."""
        return self._number

    def write(self, text: str) -> int:
        """Send *text* to the tests' process, buffered."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._side.print(self._number, text)
        return len(text)


class RemoteInput(io.TextIOBase):
    """Standard input, read from that of the tests' process."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def read(self, *size: Any) -> Any:
        """Read text from the tests' process."""
        return self._peer.ask("stdin", "read", *size)

    def readline(self, *size: Any) -> Any:
        """Read one line from the tests' process."""
        return self._peer.ask("stdin", "readline", *size)
