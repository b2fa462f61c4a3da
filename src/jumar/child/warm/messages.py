"""Messages between jumar, a zygote and its forks: one JSON object, with descriptors, on a pair of sockets."""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Sequence
from typing import Any

SIZE_BYTES = 8

CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
DESCRIPTORS = 200
"""Most that come with one message; the kernel passes 253."""


def send(to: socket.socket, message: dict[str, Any], fds: Sequence[int]) -> None:
    """Send *message* and *fds*."""
    body = json.dumps(message).encode()
    to.sendmsg([len(body).to_bytes(SIZE_BYTES, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    to.sendall(body)


def receive(by: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its descriptors; an empty one: there are no more."""
    size, ancillary, _, _ = by.recvmsg(SIZE_BYTES, socket.CMSG_LEN(4 * DESCRIPTORS), CLOEXEC)
    if len(size) < SIZE_BYTES:
        return {}, []
    fds = array.array("i")
    for _, _, content in ancillary:
        fds.frombytes(content)
    left, pieces = int.from_bytes(size, "big"), []
    while left:
        piece = by.recv(left)
        if not piece:
            return {}, []
        pieces.append(piece)
        left -= len(piece)
    return json.loads(b"".join(pieces)), list(fds)
