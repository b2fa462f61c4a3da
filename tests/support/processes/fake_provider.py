"""A provider on loopback that speaks OpenAI's, Anthropic's and Google's wire by a script, and keeps what it is sent."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Tokens:
    """What a reply took. *input* is all of the prompt; *cached* and *written* are parts of it."""

    input: int = 100
    output: int = 20
    cached: int = 0
    written: int = 0


USUAL = Tokens()


@dataclass(frozen=True)
class Step:
    """How one request is answered. Make one with a function below."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments: a mapping, or the raw text that OpenAI's wire carries."""
    tokens: Tokens | None = USUAL
    """None: the answer reports no usage."""
    thinking: str = ""
    refusal: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """The body as it is sent; None: made for the wire that asks."""
    cut: str = ""
    """`before`: the connection is dropped instead of an answer; `within`: after half of it."""
    until: threading.Event | None = None
    """The answer waits for this."""
    code: str = ""
    """Of an error."""


def reply(text: str = "", *calls: tuple[str, Any], tokens: Tokens | None = USUAL, thinking: str = "") -> Step:
    """An answer with text, tool calls (name, arguments), usage and thinking."""
    return Step(text=text, calls=calls, tokens=tokens, thinking=thinking)


def failing(status: int, message: str = "it failed", code: str = "", headers: Mapping[str, str] | None = None) -> Step:
    """An error with a status, in the shape of the wire that asks."""
    return Step(text=message, status=status, code=code, headers=headers or {})


def rate_limited(retry_after: str = "3") -> Step:
    """HTTP 429 with `Retry-After`."""
    return failing(429, "slow down", code="rate_limit_exceeded", headers={"Retry-After": retry_after})


def dropped(cut: str = "before") -> Step:
    """No answer, or half of one."""
    return Step(text="never seen", cut=cut)


def garbled(raw: bytes = b'{"choices": [{') -> Step:
    """A body that is no JSON."""
    return Step(raw=raw)


def refused(why: str = "I cannot help with that") -> Step:
    """The model declines."""
    return Step(refusal=why)


def slow(until: threading.Event, text: str = "at last") -> Step:
    """An answer that waits for *until*."""
    return Step(text=text, until=until)


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Json:
        """The request, decoded."""
        decoded: Json = json.loads(self.raw)
        return decoded


class Server:
    """Answers by *steps*, one a request; when they are used up, by *last* (by default with a `final` call).

    *steps* may be a function of the request too. `url` is a base URL as `--base-url` takes it, for every wire.
    """

    def __init__(self, steps: Sequence[Step] | Callable[[Received], Step] = (), last: Step | None = None) -> None:
        self._steps = steps
        self._last = last or reply("", ("final", {"message": "the script is used up"}))
        self.requests: list[Received] = []
        self.arrived = threading.Event()
        """Set when a request has come in."""
        self.gone = threading.Event()
        """Set when the client hung up on an answer that waited."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Listener(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def taken(self, received: Received) -> Step:
        """The step that answers *received*, which is kept."""
        with self._lock:
            at = len(self.requests)
            self.requests.append(received)
        self.arrived.set()
        if callable(self._steps):
            return self._steps(received)
        return self._steps[at] if at < len(self._steps) else self._last

    def waited(self, until: threading.Event, connection: socket.socket) -> bool:
        """Whether *until* came before the client or this server went away."""
        connection.settimeout(0.02)
        while not until.wait(0.02):
            if self._closing.is_set():
                return False
            try:
                if not connection.recv(1, socket.MSG_PEEK):
                    self.gone.set()
                    return False
            except TimeoutError:
                continue
            except OSError:
                self.gone.set()
                return False
        connection.settimeout(None)
        return True


class _Listener(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is what some tests are about."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            received = Received(self.path, {k.lower(): v for k, v in self.headers.items()}, raw)
            step = server.taken(received)
            self.close_connection = True
            if step.until is not None and not server.waited(step.until, self.connection):
                return
            if step.cut == "before":
                _reset(self.connection)
                return
            body = step.raw if step.raw is not None else json.dumps(_body(step, self.path, received.body)).encode()
            self.send_response(step.status)
            for name, value in {"Content-Type": "application/json", **step.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if step.cut == "within" else body)
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's name
            """Requests are kept, not printed."""

    return Handler


def _reset(connection: socket.socket) -> None:
    """Hang up without a word of goodbye, as a crash does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _body(step: Step, path: str, asked: Json) -> Json:
    if "generateContent" in path:
        return _google(step)
    if path.rstrip("/").endswith("/messages"):
        return _anthropic(step, asked)
    return _openai(step, asked)


def _openai(step: Step, asked: Json) -> Json:
    """As https://platform.openai.com/docs/api-reference/chat has it."""
    if step.status != 200:
        return {"error": {"message": step.text, "type": "error", "code": step.code or None}}
    message: Json = {"role": "assistant", "content": step.text or None}
    if step.refusal:
        message["refusal"] = step.refusal
    if step.thinking:
        message["reasoning_content"] = step.thinking
    if step.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
            }
            for n, (name, args) in enumerate(step.calls)
        ]
    finish = "tool_calls" if step.calls else "stop"
    body: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked.get("model", ""),
        "provider": "loopback",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if step.tokens is not None:
        body["usage"] = {
            "prompt_tokens": step.tokens.input,
            "completion_tokens": step.tokens.output,
            "total_tokens": step.tokens.input + step.tokens.output,
            "prompt_tokens_details": {"cached_tokens": step.tokens.cached},
        }
    return body


def _anthropic(step: Step, asked: Json) -> Json:
    """As https://docs.anthropic.com/en/api/messages has it."""
    if step.status != 200:
        kind = "invalid_request_error" if step.code == "context_length_exceeded" else step.code or "api_error"
        return {"type": "error", "error": {"type": kind, "message": step.text}}
    content: list[Json] = []
    if step.thinking:
        content.append({"type": "thinking", "thinking": step.thinking, "signature": f"signed {step.thinking}"})
    if step.text:
        content.append({"type": "text", "text": step.text})
    content += [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": args}
        for n, (name, args) in enumerate(step.calls)
    ]
    body: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", ""),
        "content": content,
        "stop_reason": "refusal" if step.refusal else "tool_use" if step.calls else "end_turn",
        "stop_sequence": None,
    }
    if step.tokens is not None:
        body["usage"] = {
            "input_tokens": step.tokens.input - step.tokens.cached - step.tokens.written,
            "cache_read_input_tokens": step.tokens.cached,
            "cache_creation_input_tokens": step.tokens.written,
            "output_tokens": step.tokens.output,
        }
    return body


def _google(step: Step) -> Json:
    """As https://ai.google.dev/api/generate-content has it."""
    if step.status != 200:
        return {"error": {"code": step.status, "message": step.text, "status": step.code or "UNKNOWN"}}
    parts: list[Json] = [{"text": step.thinking, "thought": True}] if step.thinking else []
    if step.text:
        parts.append({"text": step.text})
    parts += [{"functionCall": {"name": name, "args": args}} for name, args in step.calls]
    finish = "PROHIBITED_CONTENT" if step.refusal else "STOP"
    body: Json = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}]}
    if step.tokens is not None:
        body["usageMetadata"] = {
            "promptTokenCount": step.tokens.input,
            "cachedContentTokenCount": step.tokens.cached,
            "candidatesTokenCount": step.tokens.output,
            "totalTokenCount": step.tokens.input + step.tokens.output,
        }
    return body
