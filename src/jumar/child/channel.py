"""Both ends of the record channel: a line without the right number and MAC is rejected."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Send = Callable[..., None]
    """Takes records, each a list. All of one call are written at once: whoever reads them wakes up for that."""

RECORD_BYTES = 1 << 20
"""A longer line is junk: it bounds what one record can cost the reader."""

TOTAL_BYTES = 256 << 20
"""More than this on one channel is junk: it bounds what one process can cost the reader."""

ANOMALIES = 10
"""Most anomalies that are kept; the first one already voids the verdict."""

HIGH_FD = 200
"""The channel moves above the numbers that tests open, close and hand on."""

ENDLESS = 70
"""Exit status of a process that said its goodbye on the channel and did not end then."""


class Reader:
    """Reading end of the channel: turns bytes into authenticated records; everything else is an anomaly."""

    def __init__(self, key: bytes) -> None:
        import hmac  # noqa: PLC0415  not for the other end: code under test may look whether it imports that itself

        self.anomalies: list[str] = []
        self._key, self._digest, self._is_same = key, hmac.digest, hmac.compare_digest
        self._tail = b""
        self._bytes = 0
        self._expected = 1

    def feed(self, data: bytes) -> list[list[object]]:
        """Return the records that *data* completes."""
        self._bytes += len(data)
        if self._bytes > TOTAL_BYTES:
            self._tail = b""
            self._note_anomaly("the channel carried too much")
            return []
        *lines, self._tail = (self._tail + data).split(b"\n")
        records = [record for record in map(self._decode_record, lines) if record is not None]
        if len(self._tail) > RECORD_BYTES:
            self._tail = b""
            self._note_anomaly("a line on the channel has no end")
        return records

    def close(self) -> None:
        """End the reading of a process that ended well: half a line is then an anomaly."""
        if self._tail:
            self._tail = b""
            self._note_anomaly("half a line on the channel")

    def _decode_record(self, line: bytes) -> list[object] | None:
        mac, _, body = line.partition(b" ")
        if not self._is_same(mac, self._digest(self._key, body, "sha256").hex().encode()):
            self._note_anomaly("a line on the channel has a wrong MAC")
            return None
        try:
            number, record = json.loads(body)
        except (ValueError, TypeError):  # the code under test may have changed what wrote it
            self._note_anomaly("a line on the channel is no record")
            return None
        if number != self._expected:
            self._note_anomaly(f"record {self._expected} is missing from the channel or came twice")
            return None
        self._expected += 1
        return list(record)

    def _note_anomaly(self, what: str) -> None:
        if len(self.anomalies) < ANOMALIES and what not in self.anomalies:
            self.anomalies.append(what)


def join() -> tuple[dict[str, Any], Send, Iterator[object]]:
    """Join the channel from inside the tested process: its config, a sender of records, and the requests to it.

    The config is read from standard input and wiped there, so that code loaded later finds no key in a file.
    """
    with os.fdopen(os.dup(0), "rb") as stream:
        config = json.loads(stream.read())
    os.ftruncate(0, 0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    wire = config.pop("channel")
    given = (wire["records"], wire["requests"])
    # Both before either is closed, so that no number that was handed on is taken again.
    records, requests = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD) for fd in given)
    for fd in given:
        os.close(fd)
    return config, _build_sender(bytes.fromhex(wire["key"]), records), _read_requests(requests)


def _read_requests(fd: int) -> Iterator[object]:
    with os.fdopen(fd, "rb") as stream:
        for line in stream:
            yield json.loads(line)


def build_mac(key: bytes) -> Callable[[bytes], bytes]:
    """Return what computes the HMAC (RFC 2104) of a text, with SHA-256, in hexadecimal digits; *key* is no block long.

    As `hmac.digest` does.
    """
    block = key.ljust(hashlib.sha256().block_size, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))

    def compute_mac(body: bytes) -> bytes:
        one, two = inner.copy(), outer.copy()
        one.update(body)
        two.update(one.digest())
        return two.hexdigest().encode()

    return compute_mac


def _build_sender(key: bytes, fd: int) -> Send:
    """Return a sender that forked children cannot use and that looks up nothing which tests may have replaced."""
    write, dumps, compute_mac, getpid, leave = os.write, json.dumps, build_mac(key), os.getpid, os._exit
    owner, count = getpid(), 0

    def send(*records: list[object]) -> None:
        nonlocal count
        if getpid() != owner:
            return
        lines = b""
        for record in records:
            count += 1
            body = dumps([count, record]).encode()
            lines += compute_mac(body) + b" " + body + b"\n"
        try:
            while lines:
                lines = lines[write(fd, lines) :]
        except OSError:
            leave(70)

    return send
