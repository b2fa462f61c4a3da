"""Bridge of an external agent: makes the git history for its use, starts the agent, and reports its end.

Its config names the argv, the text for the agent's standard input, the git that is used, if there is one, and the door
to the model: where the agent has a loopback of its own, what comes to that port of it is passed on to a socket. The
agent knows neither the channel nor its key, and cannot look into this process.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any

from jumar.child import runner_bridge

NOT_FOUND = 127

HOST = "127.0.0.1"

CONNECTIONS = 64
"""Connections forwarded at a time; further ones wait."""

CHUNK = 1 << 16

INERT = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.attributesFile=/dev/null",
    "-c", "diff.ignoreSubmodules=all",
)  # fmt: skip
"""The agent may have left repositories in folders of the workspace, whose settings name programs."""

STEPS = (
    ("init", "--quiet", "--template="),
    ("config", "user.name", "agent"),
    ("config", "user.email", "agent@localhost"),
    ("config", "commit.gpgsign", "false"),
    ("add", "--all", "--force"),
    ("commit", "--quiet", "--no-verify", "--allow-empty", "--message", "as the turn began"),
)


def commit_tree(git: str) -> None:
    """Commit the tree as it is. Where git refuses, the agent works without a history."""
    for step in STEPS:
        done = subprocess.run([git, *INERT, *step], stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  our words
        if done.returncode != 0:
            return


def bridge(port: int, door: str) -> None:
    """Forward connections on *port* to the socket *door*. Where the port is taken, the loopback is jumar's own."""
    with contextlib.suppress(OSError):
        listener = socket.create_server((HOST, port))
        threading.Thread(target=_serve_connections, args=(listener, door), daemon=True).start()


def _serve_connections(listener: socket.socket, door: str) -> None:
    free = threading.BoundedSemaphore(CONNECTIONS)
    while True:
        free.acquire()
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve_connection, args=(client, door, free), daemon=True).start()


def _serve_connection(client: socket.socket, door: str, free: threading.BoundedSemaphore) -> None:
    with contextlib.suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
        server.connect(door)
        back = threading.Thread(target=_copy_bytes, args=(server, client), daemon=True)
        back.start()
        _copy_bytes(client, server)
        back.join()
    free.release()


def _copy_bytes(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def run_job(config: dict[str, Any], send: runner_bridge.Send) -> int:
    """Start the agent, wait for it; its exit status."""
    send(["hello"])
    if config["door"]:
        bridge(*config["door"])
    if config["git"]:
        commit_tree(config["git"])
    with tempfile.TemporaryFile() as stdin:
        stdin.write(config["stdin"].encode("utf-8", "replace"))
        stdin.seek(0)
        try:
            code = subprocess.run(config["argv"], stdin=stdin, check=False).returncode  # noqa: S603  as the person wrote it
        except OSError as error:
            sys.stdout.write(f"jumar: cannot start {config['argv'][0]}: {error.strerror}\n")
            return NOT_FOUND
    return runner_bridge.build_shell_status(code)


def main() -> None:
    """Run the external agent that one order on standard input names."""
    with contextlib.suppress(BrokenPipeError):
        runner_bridge.serve(run_job)
