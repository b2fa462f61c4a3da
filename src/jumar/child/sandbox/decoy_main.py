"""Decoy process outside every sandbox: it holds a secret and reports what was done to it.

Its config names the secret and the paths of its sockets and files; it answers `["ready", {...}]` with where all of it
is to be found, and to each request `["seen", {...}]`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from jumar.child.channel import join

LIBC = ctypes.CDLL(None)

PRIVATE, CREATE, REMOVE = 0, 0o1000, 0
"""IPC_PRIVATE, IPC_CREAT, IPC_RMID of sys/ipc.h."""


def _answer_connections(listener: socket.socket, token: bytes) -> None:
    listener.listen(8)

    def serve() -> None:
        while True:
            with listener.accept()[0] as caller:
                caller.sendall(token)

    threading.Thread(target=serve, daemon=True).start()


def _note_datagrams(listener: socket.socket, token: bytes, seen: dict[str, bool]) -> None:

    def serve() -> None:
        while True:
            seen["send_udp"] = seen["send_udp"] or token in listener.recv(200)

    threading.Thread(target=serve, daemon=True).start()


def create_segment(token: bytes) -> int:
    """Return the number of a segment of shared memory that holds the secret and is gone with this process."""
    LIBC.shmat.restype = ctypes.c_void_p
    number = int(LIBC.shmget(PRIVATE, ctypes.c_size_t(4096), CREATE | 0o600))
    if number >= 0:
        place = LIBC.shmat(number, None, 0)
        ctypes.memmove(place, token, len(token))
        LIBC.shmctl(number, REMOVE, None)
    return number


def main() -> None:
    """Set everything up, say where it is, and answer until the channel ends."""
    config, send, requests = join()
    send(["hello"])
    token = config["token"].encode()
    seen = {"signal_process": False, "signal_group": False, "send_udp": False, "write_memory": False}
    signal.signal(signal.SIGUSR1, lambda *_: seen.update(signal_process=True))
    signal.signal(signal.SIGUSR2, lambda *_: seen.update(signal_group=True))
    held, scratch = ctypes.create_string_buffer(token), ctypes.create_string_buffer(b"untouched")
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    for bound in (tcp, udp):
        bound.bind(("127.0.0.1", 0))
    unix = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for bound, address in zip(unix, ("\0" + config["abstract"], config["socket"], config["home_socket"]), strict=True):
        folder, _, name = address.rpartition("/")
        os.chdir(folder or "/")  # the address of a socket holds 108 bytes: its name alone always fits
        bound.bind(name)
    Path(config["socket"]).chmod(0o777)
    for bound in (tcp, *unix):
        _answer_connections(bound, token)
    _note_datagrams(udp, token, seen)
    with Path(config["journal"]).open("a", encoding="utf-8") as journal, Path(config["secret"]).open("rb") as secret:
        send(["ready", {
            "decoy": os.getpid(), "started_as": sys.argv[0],
            "address": ctypes.addressof(held), "scratch": ctypes.addressof(scratch),
            "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "segment": create_segment(token),
            "descriptor": secret.fileno(), "journal_descriptor": journal.fileno(),
        }])  # fmt: skip
        for _ in requests:
            told: dict[str, Any] = {**seen, "write_memory": scratch.value != b"untouched"}
            send(["seen", told])
    send(["end", 0])
    sys.stdout.flush()
    os._exit(0)
