"""MCP over HTTP, on loopback alone. Refuses clients without the token or with another host name."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from jumar.errors import BadInput
from jumar.mcp_server.server import SESSION_HEADER

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

HOST = "127.0.0.1"

LINGER_SECONDS = 1
"""For answers that are on their way when a signal comes."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def open_socket(port: int) -> socket.socket:
    """Return a socket on loopback at *port*; 0 is any free one.

    Raises:
        BadInput: if the port cannot be had.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        found.listen()
    except OSError as error:
        found.close()
        raise BadInput(f"--http {port}: {error.strerror}; name another port, or 0 for a free one") from None
    return found


async def serve(server: Server[Any], at: socket.socket, token: str, left: Callable[[str], Awaitable[None]]) -> None:
    """Serve HTTP clients until it is cancelled. *left* gets each session that its client ended.

    An empty *token* lets everybody in who can reach the port.
    """
    import uvicorn  # noqa: PLC0415  comes with the extra
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415  the extra

    port = at.getsockname()[1]
    # A page in a browser sends its origin: none has any business here. A name that was rebound to this address
    # comes in as another host.
    security = TransportSecuritySettings(allowed_hosts=[f"{HOST}:{port}", f"localhost:{port}"], allowed_origins=[])
    app = server.streamable_http_app(transport_security=security)
    config = uvicorn.Config(
        guard_app(app, token, left),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=LINGER_SECONDS,
        ws="none",
    )

    class Quiet(uvicorn.Server):
        """HTTP server that installs no signal handlers."""

        @contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

    web = Quiet(config)

    async def served() -> None:
        with anyio.CancelScope(shield=True):  # it ends by itself, and answers what can be answered
            await web.serve(sockets=[at])

    async with anyio.create_task_group() as group:
        group.start_soon(served)
        try:
            await anyio.sleep_forever()
        finally:
            web.should_exit = True


def guard_app(app: App, token: str, left: Callable[[str], Awaitable[None]]) -> App:
    """Return *app* with a check for *token*; *left* gets each session that its client ended."""

    async def entered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if token and not hmac.compare_digest(headers.get(b"authorization", b""), f"Bearer {token}".encode()):
            await _refuse(send)
            return
        await app(scope, receive, send)
        if scope["method"] == "DELETE":
            await left(headers.get(SESSION_HEADER.encode(), b"").decode("latin-1"))

    return entered


async def _refuse(send: Send) -> None:
    body = b"jumar mcp printed a token when it started: send it as `Authorization: Bearer TOKEN`\n"
    headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
