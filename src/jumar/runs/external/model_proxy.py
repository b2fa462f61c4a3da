"""Model proxy on loopback for one run's agent: refuses clients without its token or with another host name."""

from __future__ import annotations

import hmac
import json
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from jumar.models.metered_forward import ForwardedReply
from jumar.models.wire.request_formats import RequestFormat, find_form
from jumar.runs.external.agent_requests import KINDS

if TYPE_CHECKING:
    import h11

HOST = "127.0.0.1"

BODY_BYTES = 32 << 20
"""All requests that are being read may be as long together; what goes beyond is refused."""

VALUES = 1_000_000
"""A request with more commas than this is no conversation: each could cost a hundred times its bytes once decoded."""

AGAIN_SECONDS = 0.1
"""After a connection could not be taken."""

CONNECTIONS = 100
"""Number of connections served at a time; further ones wait, as descriptors are few."""

IDLE_SECONDS = 300.0
"""A connection that says nothing for so long is closed."""

CHUNK = 1 << 16


class ProxyRequest(msgspec.Struct, frozen=True):
    """A request with the token: for a model (*form* is its wire format), or to the run itself (None)."""

    form: RequestFormat | None
    headers: Mapping[str, str]
    body: bytes
    gone: Callable[[], bool]
    """Function that returns whether the client has hung up."""
    wish: str = ""
    """Request of `jumar.runs.external.agent_requests` that is made to the run itself; empty: none."""


Answering = Callable[[ProxyRequest], Awaitable[ForwardedReply]]


class ProxyEndpoints(msgspec.Struct, frozen=True):
    """Addresses of the proxy."""

    port: int
    token: str
    socket: Path | None = None
    """A second way in, for who has a loopback of their own; None: there is none."""

    @property
    def root(self) -> str:
        """Base URL of the proxy."""
        return f"http://{HOST}:{self.port}"

    @property
    def claims(self) -> str:
        """The URL of claims and escalations. It holds the token: a shell has no other place for it."""
        return f"{self.root}/{self.token}"


Listeners = Sequence[SocketListener]


@asynccontextmanager
async def open_listeners(token: str, *, beside: bool = False) -> AsyncIterator[tuple[Listeners, ProxyEndpoints]]:
    """Yield a free port on loopback for clients with *token*, and a socket *beside* it, if one is wanted.

    Raises:
        OSError: if the machine has none left.
    """
    # A path of few bytes: sockets have no room for more.
    with TemporaryDirectory(prefix="jumar-") if beside else nullcontext("") as folder:
        door = Path(folder, "door") if folder else None
        async with (
            await anyio.create_tcp_listener(local_host=HOST, local_port=0) as loopback,
            AsyncExitStack() as stack,
        ):
            listeners = [one for one in loopback.listeners if isinstance(one, SocketListener)]
            if door is not None:
                listeners.append(await stack.enter_async_context(await anyio.create_unix_listener(door, mode=0o600)))
            yield listeners, ProxyEndpoints(loopback.extra(SocketAttribute.local_port), token, door)  # noqa: S610  no Django here


async def serve(listeners: Listeners, doors: ProxyEndpoints, answering: Answering, model: str) -> None:
    """Serve clients that have the token, by *answering*, until cancelled. *model* is the listed name."""
    visits, free = _Visits(doors, answering, model), anyio.Semaphore(CONNECTIONS)

    async def welcome(stream: SocketStream) -> None:
        try:
            await visits.welcome(stream)
        finally:
            free.release()

    async def accept(listener: SocketListener) -> None:
        while True:
            await free.acquire()
            try:
                tasks.start_soon(welcome, await listener.accept())
            except OSError:  # a client that is gone already, or no descriptor: neither is a reason to close the door
                free.release()
                await anyio.sleep(AGAIN_SECONDS)

    async with anyio.create_task_group() as tasks:
        for listener in listeners:
            tasks.start_soon(accept, listener)


def build_error(status: int, kind: str, message: str) -> ForwardedReply:
    """Return an error that clients of either wire can read."""
    body = {"type": "error", "error": {"type": kind, "message": f"jumar: {message}", "code": kind}}
    return _build_document(status, body)


def _build_document(status: int, body: object) -> ForwardedReply:
    return ForwardedReply(status, {"content-type": "application/json"}, json.dumps(body).encode())


class _Visits:
    def __init__(self, doors: ProxyEndpoints, answering: Answering, model: str) -> None:
        self._doors, self._answering, self._model = doors, answering, model
        self._held = 0

    async def welcome(self, stream: SocketStream) -> None:
        """Serve one connection. A client that hangs up or sends nonsense is not an error of jumar."""
        import h11  # noqa: PLC0415  comes with the clients, which are not part of the core install

        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError, h11.ProtocolError):
                connection = h11.Connection(h11.SERVER)
                while await self._answer_one(connection, stream):
                    connection.start_next_cycle()

    async def _answer_one(self, connection: h11.Connection, stream: SocketStream) -> bool:
        """Answer one request; return whether another may follow on this connection."""
        import h11  # noqa: PLC0415  as above

        body = bytearray()
        request: h11.Request | None = None
        refused: ForwardedReply | None = None
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    if connection.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        await stream.send(connection.send(go_on) or b"")
                    with anyio.fail_after(IDLE_SECONDS):
                        connection.receive_data(await _receive(stream))
                elif isinstance(event, h11.Request):
                    request, refused = event, self._refuse_stranger(event)
                elif isinstance(event, h11.Data):
                    if refused is None:  # a stranger's is not even kept
                        body += event.data
                        self._held += len(event.data)
                    if self._held > BODY_BYTES:
                        await _send(connection, stream, build_error(413, "too_large", "too much is asked at a time"))
                        return False
                elif isinstance(event, h11.EndOfMessage) and request is not None:
                    await _send(connection, stream, refused or await self._answer_request(request, bytes(body), stream))
                    return connection.our_state is h11.DONE and connection.their_state is h11.DONE
                else:
                    return False
        finally:
            self._held -= len(body)

    def _refuse_stranger(self, request: h11.Request) -> ForwardedReply | None:
        """Return the refusal of a client without the token or with a foreign host name, or None."""
        headers = _decode_headers(request)
        if not self._is_ours(headers.get("host", "")):
            return build_error(421, "wrong_host", "this is a door of one run's agent, not a server of that name")
        if not self._find_wish(request) and not self._has_token(headers):
            return build_error(401, "unauthorized", "the token of this run is missing or wrong")
        return None

    def _find_wish(self, request: h11.Request) -> str:
        """Return which request to the run itself this is, by its path, which holds the token; empty: it is none."""
        path = request.target.partition(b"?")[0]
        ours = {kind: f"/{self._doors.token}/{kind}".encode() for kind in KINDS}
        return next((kind for kind, own in ours.items() if hmac.compare_digest(path, own)), "")

    async def _answer_request(self, request: h11.Request, body: bytes, stream: SocketStream) -> ForwardedReply:
        method, target = request.method.decode(), request.target.decode("latin-1")
        path, wish = target.partition("?")[0], self._find_wish(request)
        if method == "GET" and path.rstrip("/").removeprefix("/v1") == "/models":
            return _build_document(
                200, {"object": "list", "data": [{"id": self._model, "object": "model", "created": 0}]}
            )
        form = None if wish else find_form(target)
        if method != "POST" or (form is None and not wish):
            return build_error(404, "not_found", f"there is no {method} {wish or path} here")
        if body.count(b",") > VALUES:
            return build_error(413, "too_large", f"a request of more than {VALUES:,} values is no conversation")
        raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610  as above
        return await self._answering(
            ProxyRequest(form, _decode_headers(request), body, lambda: _has_hung_up(raw), wish)
        )

    def _is_ours(self, host: str) -> bool:
        """Return whether the client addressed this machine; a name rebound to this address is refused."""
        name, _, port = host.rpartition(":")
        try:
            here = name == "localhost" or ip_address(name).is_loopback
        except ValueError:
            here = False
        return here and port == str(self._doors.port)

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode(), self._doors.token.encode())


def _decode_headers(request: h11.Request) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}


async def _receive(stream: SocketStream) -> bytes:
    try:
        return await stream.receive(CHUNK)
    except anyio.EndOfStream:
        return b""


async def _send(connection: h11.Connection, stream: SocketStream, given: ForwardedReply) -> None:
    import h11  # noqa: PLC0415  as above

    length = ("content-length", str(len(given.body)))
    head = h11.Response(status_code=given.status, headers=[*given.headers.items(), length])
    events = (head, h11.Data(data=given.body), h11.EndOfMessage())
    await stream.send(b"".join(connection.send(event) or b"" for event in events))


def _has_hung_up(raw: socket.socket) -> bool:
    if raw.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))
