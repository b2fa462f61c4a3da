"""Stand-in for a test runner that can be kept: it reads the outcome of each test from `answers.src` in its room.

What `quirk.txt` says is done by the kept process alone.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import runner_bridge

if TYPE_CHECKING:
    from collections.abc import Iterator


def judge(ids: list[str]) -> list[list[object]]:
    """The records of a verification of *ids*."""
    outcomes = dict(line.split() for line in Path("answers.src").read_text("utf-8").splitlines())
    return [["collected", ids], *(["result", i, outcomes[i], 1, "", "code", ""] for i in ids)]


def keep(send: runner_bridge.Send, requests: Iterator[object]) -> int:
    """Serve *requests* as the quirk says."""
    send(["hello", {}])
    first: list[list[object]] = []
    for request in requests:
        assert isinstance(request, dict)
        for path, text in request["edits"].items():
            Path(path).write_bytes(base64.b64decode(text))
        quirk = Path("quirk.txt").read_text("utf-8")
        match quirk:
            case "declines" | "declines for good":
                send(["declined", "it will not", quirk == "declines for good"])
                return 0
            case "dies":
                os._exit(9)
            case "hangs":
                next(requests)
        records = judge(request["ids"])
        first = first or records
        sys.stdout.write(f"pid {os.getpid()}\n\n{request['mark']}\n")
        sys.stdout.flush()
        send(*(first if quirk == "is stale" else records), ["served", ["held.src"]])
        send(["kept", "a file was left" if quirk == "leaves" else ""])
    return 0


def serve(config: dict[str, Any], send: runner_bridge.Send, requests: Iterator[object]) -> int:
    """Keep going, or judge once."""
    if "ids" not in config:
        return keep(send, requests)
    send(["hello", {}])
    sys.stdout.write(f"pid {os.getpid()}\n")
    for record in judge(config["ids"]):
        send(record)
    return 0


def main() -> None:
    """Join the channel and judge."""
    runner_bridge.serve_requests(serve)
