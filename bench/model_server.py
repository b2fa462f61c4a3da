"""A model of the benches: an HTTP server on loopback that answers with one action after another, after a while."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Action = dict[str, Any]
"""Name and arguments of a tool call."""


class Server(ThreadingHTTPServer):
    """Answers every request by *choose*, given how often the model of that run has answered; after *seconds*."""

    request_queue_size = 256

    def __init__(self, choose: Callable[[int], Action], seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.choose, self.seconds = choose, seconds

    @property
    def options(self) -> list[str]:
        """The options of `jumar` that name this model."""
        return ["--model", "openai:simulated", "--base-url", f"http://127.0.0.1:{self.server_port}/v1"]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Log nothing."""

    def do_POST(self) -> None:
        """Answer with the action that is due."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.server.seconds)  # it is what the server stands for
        action = self.server.choose(sum(message["role"] == "assistant" for message in asked["messages"]))
        function = {"name": action["name"], "arguments": json.dumps(action["arguments"])}
        call = {"id": "call", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice]}
        data = json.dumps({**body, "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serve(choose: Callable[[int], Action], seconds: float) -> Iterator[Server]:
    """Serve the model on loopback."""
    server = Server(choose, seconds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
